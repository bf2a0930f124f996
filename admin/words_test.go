package admin

import (
	"bytes"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func locales(t testing.TB) (en, es *locale) {
	t.Helper()
	var err error
	if en, err = loadLocale("en", time.UTC); err != nil {
		t.Fatal(err)
	}
	if es, err = loadLocale("es", time.UTC); err != nil {
		t.Fatal(err)
	}
	return en, es
}

func TestBothCataloguesSayTheSameThings(t *testing.T) {
	t.Parallel()
	en, es := locales(t)
	for _, k := range slices.Sorted(maps.Keys(en.words)) {
		a, ok := en.words[k]
		b, also := es.words[k]
		if !ok || !also {
			t.Errorf("%s: only in one", k)
			continue
		}
		if (a.one == "") != (b.one == "") || a.other == "" || b.other == "" {
			t.Errorf("%s: forms differ", k)
		}
		for _, pair := range [][2]string{{a.other, b.other}, {a.one, b.one}} {
			x, y := placeholder.FindAllString(pair[0], -1), placeholder.FindAllString(pair[1], -1)
			slices.Sort(x)
			slices.Sort(y)
			if !slices.Equal(x, y) {
				t.Errorf("%s: %v against %v", k, x, y)
			}
		}
	}
	if len(en.words) != len(es.words) {
		t.Errorf("%d keys against %d", len(en.words), len(es.words))
	}
}

var (
	wordUse = regexp.MustCompile(`(?:[({ ](t|n|b) |\.(T|N|B)\()"([a-z0-9_.]+)"( ?\+)?`)
	anyWord = regexp.MustCompile(`"((?:[a-z0-9_]+\.)+[a-z0-9_]*)"`)
)

// Keys are found in the sources, so that none is missing and none is left over.
func TestEveryWordIsThereAndUsed(t *testing.T) {
	t.Parallel()
	en, _ := locales(t)
	var prefixes []string
	used := map[string]bool{}
	for _, pattern := range []string{"*.go", "templates/*.html"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range wordUse.FindAllSubmatch(src, -1) {
				key, verb := string(m[3]), strings.ToLower(string(m[1])+string(m[2]))
				if len(m[4]) > 0 {
					prefixes = append(prefixes, key)
					continue
				}
				used[key] = true
				w, ok := en.words[key]
				if !ok {
					t.Errorf("%s: %s is in no catalogue", f, key)
				} else if (verb == "n") != (w.one != "") {
					t.Errorf("%s: %s is used as %s", f, key, verb)
				}
			}
			for _, m := range anyWord.FindAllSubmatch(src, -1) {
				used[string(m[1])] = true // handed on as a value
				if strings.HasSuffix(string(m[1]), ".") {
					prefixes = append(prefixes, string(m[1]))
				}
			}
		}
	}
	for key := range en.words {
		if !used[key] && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			t.Errorf("%s is used nowhere", key)
		}
	}
	for _, kinds := range [][]string{slices.Collect(maps.Values(stateWords)), slices.Collect(maps.Values(outcomeWords)), slices.Collect(maps.Values(reasonWords))} {
		if slices.Contains(kinds, "") {
			t.Errorf("a state without a name: %v", kinds)
		}
	}
	for _, v := range stateWords {
		if _, ok := en.words["state."+v]; !ok {
			t.Errorf("state %s has no word", v)
		}
	}
	for _, v := range reasonWords {
		if _, ok := en.words["reason."+v]; !ok {
			t.Errorf("reason %s has no word", v)
		}
	}
}

// A page asked for in Spanish holds no English of ours.
func TestNoEnglishIsLeftInSpanishPages(t *testing.T) {
	t.Parallel()
	w := seeded(t, 2)
	c := w.owner(t)
	c.cookies["acuse_language"] = &http.Cookie{Name: "acuse_language", Value: "es"}
	stranger := newClient(t, w.admin)
	stranger.lang = "es-MX,es;q=0.9,en;q=0.5"
	en, es := locales(t)
	english := map[string]string{}
	for k, m := range en.words {
		for i, s := range []string{m.other, m.one} {
			s = strings.TrimSpace(placeholder.Split(strings.ReplaceAll(s, "**", ""), -1)[0])
			own := []string{es.words[k].other, es.words[k].one}[i]
			if len(s) > 2 && !strings.Contains(own, s) {
				english[s] = k
			}
		}
	}
	check := func(path, page string) {
		for line := range strings.SplitSeq(texts(t, page), "\n") {
			for s, k := range english {
				if line == s || len(s) > 12 && strings.Contains(line, s) {
					t.Errorf("%s: %q is the English of %s", path, line, k)
				}
			}
		}
	}
	for _, p := range w.everyPage() {
		check(p, c.get(p).Body.String())
	}
	for _, p := range []string{"/login", "/setup", "/setup?t=wrong"} {
		check(p, stranger.get(p).Body.String())
	}
}

func TestNumbersAndDatesFollowTheLanguage(t *testing.T) {
	t.Parallel()
	en, es := locales(t)
	now := time.Date(2026, 11, 30, 14, 2, 11, 0, time.UTC)
	for _, c := range []struct{ got, want string }{
		{en.num(1284), "1,284"}, {es.num(1284), "1\u202f284"}, {es.num(-1234567), "-1\u202f234\u202f567"}, {en.num(12), "12"},
		{en.size(612), "612\u00a0B"}, {es.size(6396313), "6,1\u00a0MB"}, {en.size(5 << 20), "5\u00a0MB"},
		{en.span(84 * time.Millisecond), "84\u00a0ms"}, {es.span(1200 * time.Millisecond), "1,2\u00a0s"}, {en.span(14 * time.Minute), "14\u00a0min"},
		{en.span(400 * time.Microsecond), "0.4\u00a0ms"}, {es.span(49 * time.Hour), "2 días"}, {en.span(125 * time.Minute), "2\u00a0h\u00a05\u00a0min"},
		{en.at(now, now, "15:04:05"), "14:02:11"}, {es.at(now.AddDate(0, 0, -1), now, "15:04:05"), "29 nov, 14:02"},
		{en.at(now.AddDate(-1, 0, 0), now, "15:04"), "30 Nov 2025, 14:02"}, {es.full(now), "30 nov 2026, 14:02:11"},
		{es.ago(now.Add(-130*time.Second), now), "hace 2\u00a0min"}, {en.ago(now, now), "now"},
		{en.N("dup.mark", 1), "+1 duplicate"}, {es.N("dup.mark", 3), "+3 duplicados"}, {en.T("no.such.key"), "⟦no.such.key⟧"},
		{string(en.B("resend.text", "#1", "<b>**x**</b>")), "Resend #1 to <strong>&lt;b&gt;**x**&lt;/b&gt;</strong>. Same number, same key: an app that already did it will skip it. Signature: fresh."},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// The words of error pages and empty states, each rendered once.
func TestErrorPagesAndEmptyStatesSayWhatToDo(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	for _, p := range []struct {
		method, path string
		code         int
		en, es       string
	}{
		{"GET", "/nowhere", 404, "There is no such page.", "Esta página no existe."},
		{"GET", "/deliveries/10482", 404, "No delivery #10482 here. It may have been removed by retention.", "Aquí no hay entrega #10482. Puede haberla quitado la retención."},
		{"GET", "/deliveries?q=none", 200, "No delivery matches. Clear filters", "Ninguna entrega coincide. Quitar filtros"},
		{"PUT", "/deliveries", 405, "does not take that kind of request", "no admite ese tipo de petición"},
		{"GET", "/rejections?source=none", 200, "No rejections in the last 7 days.", "Sin rechazos en los últimos 7 días."},
		{"GET", "/settings/tokens", 200, "No tokens yet.", "Aún no hay tokens."},
		{"GET", "/resend", 200, "Nothing is selected.", "No hay nada marcado."},
		{"GET", "/deliveries?state=odd", 200, "“state” is not understood", "No se entiende «state»"},
	} {
		for lang, want := range map[string]string{"en": p.en, "es": p.es} {
			c.cookies["acuse_language"] = &http.Cookie{Name: "acuse_language", Value: lang}
			r := c.do(p.method, p.path, nil, "Sec-Fetch-Site", "same-origin")
			if got := strings.ReplaceAll(texts(t, r.Body.String()), "\n", " "); r.Code != p.code || !strings.Contains(got, want) {
				t.Errorf("%s %s: %d lacks %q", p.method, p.path, r.Code, want)
			}
		}
	}
}

func TestAFailingStoreIsSaidInWords(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	r := c.get("/deliveries")
	if r.Code != http.StatusServiceUnavailable && r.Code != http.StatusInternalServerError {
		t.Errorf("%d", r.Code)
	}
	if page := r.Body.Bytes(); bytes.Contains(page, []byte("sql")) || bytes.Contains(page, []byte("goroutine")) {
		t.Errorf("the cause is shown: %s", page)
	}
}
