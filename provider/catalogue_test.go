package provider

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// base is a good file; each case below changes one thing of it.
const base = `{"name":"x","title":"X","auth":{"kind":"hmac","alg":"sha256","message":"{body}",
"signature":{"from":"header:X-Sig","format":"plain","encoding":"hex"}},"id":{"key":"{json:id}"},
"type":"{json:type}","version":{"key":"{json:v}","unit":"s"},"handshake":{"kind":"h","match":{"method":"GET"},
"respond":{"status":200,"headers":{},"body":"ok"}},"response":{"success":"2xx"}}`

func TestABrokenFileNamesFileFieldAndReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ old, new, want string }{
		"unknown field":            {`"title":"X"`, `"titel":"X"`, "titel: unknown field"},
		"field in another case":    {`"title":"X"`, `"Title":"X"`, "Title: unknown field"},
		"field twice":              {`"title":"X"`, `"title":"X","title":"Y"`, "title: written twice"},
		"unknown field deep":       {`"format":"plain"`, `"format":"plain","fromat":1`, "auth.signature.fromat: unknown field"},
		"unknown kind":             {`"kind":"hmac"`, `"kind":"hmca"`, `auth.kind: unknown kind "hmca"`},
		"field of another kind":    {`"alg":"sha256"`, `"alg":"sha256","issuer":"i"`, "auth.issuer: not a field of kind hmac"},
		"unknown algorithm":        {`"alg":"sha256"`, `"alg":"sha3"`, `auth.alg: unknown algorithm "sha3"`},
		"unknown filter":           {`"{body}"`, `"{body|reverse}"`, `auth.message: template "{body|reverse}": unknown filter "reverse"`},
		"unknown source":           {`"{json:id}"`, `"{cookie:id}"`, `id.key: template "{cookie:id}": unknown source "cookie"`},
		"unknown format":           {`"plain"`, `"csv"`, `auth.signature.format: unknown format "csv"`},
		"unknown encoding":         {`"hex"`, `"base32"`, `auth.signature.encoding: unknown encoding "base32"`},
		"unknown unit":             {`"unit":"s"`, `"unit":"h"`, `version.unit: unknown unit "h"`},
		"wrong type":               {`"title":"X"`, `"title":7`, "title: want string, not a number"},
		"wrong type deep":          {`"status":200`, `"status":"200"`, "handshake.respond.status: want int, not a string"},
		"open placeholder":         {`"{json:id}"`, `"{json:id"`, "id.key: template \"{json:id\": a { without its }"},
		"open group":               {`"{json:id}"`, `"[{json:id}"`, "a [ without its ]"},
		"group in a group":         {`"{json:id}"`, `"[[{json:id}]]"`, "an optional part inside an optional part"},
		"empty step":               {`"{json:id}"`, `"{json:a..b}"`, "empty step"},
		"item outside a batch":     {`"{json:id}"`, `"{item:id}"`, "{item:…} may stand inside a batch only"},
		"sig in an id":             {`"{json:id}"`, `"{sig:t}"`, "{sig:…} may stand beside a signature only"},
		"secret in an id":          {`"{json:id}"`, `"{secret}"`, "{secret} may stand in a signed message only"},
		"secret in a reply":        {`"body":"ok"`, `"body":"{secret}"`, "handshake.respond.body: template \"{secret}\": {secret} may stand in a signed message only"},
		"keyed hash for strangers": {`"body":"ok"`, `"body":"{query:c|hmac:sha256:hex}"`, "handshake.respond.body: a keyed hash in an answer needs auth: true"},
		"a reply that is an error": {`"status":200`, `"status":404`, "handshake.respond.status"},
		"place of a signature":     {`"header:X-Sig"`, `"body"`, "auth.signature.from: \"body\": a header, query, form or json field is wanted"},
		"another name":             {`"name":"x"`, `"name":"y"`, `name: "y" is not the name of the file`},
		"success":                  {`"2xx"`, `"3xx"`, `response.success: want "2xx" or a list of codes`},
		"two documents":            {`"response":{"success":"2xx"}}`, `"response":{"success":"2xx"}} {}`, "more than one JSON document"},
		"no JSON":                  {`{"name"`, `{name`, "line 1: invalid character"},
		"a comma too many":         {`"status":200,`, `"status":200,,`, "line 4: invalid character ','"},
		"an end too early":         {`"response":{"success":"2xx"}}`, `"response":{"success":"2xx"}`, "line 4: it ends before its last brace"},
		"reply condition":          {`"response":{"success":"2xx"}`, `"response":[{"match":{"cookie":1},"success":"2xx"}]`, "response[0].match.cookie: unknown field"},
	} {
		text := strings.Replace(base, tc.old, tc.new, 1)
		if text == base {
			t.Fatalf("%s: nothing changed", name)
		}
		_, err := Load(fstest.MapFS{"x.json": {Data: []byte(text)}})
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "x.json: ") {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if _, err := Load(fstest.MapFS{"x.json": {Data: []byte(base)}}); err != nil {
		t.Errorf("the base itself: %v", err)
	}
}

func TestAllBrokenFilesAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Load(fstest.MapFS{"x.json": {Data: []byte(`{}`)}, "y.json": {Data: []byte(`[]`)}})
	if err == nil || !strings.Contains(err.Error(), "x.json") || !strings.Contains(err.Error(), "y.json") {
		t.Errorf("got %v", err)
	}
}

// An unknown condition of a handshake counts as not met, and is said.
func TestAnUnknownHandshakeConditionIsNotMet(t *testing.T) {
	t.Parallel()
	text := strings.Replace(base, `"match":{"method":"GET"}`, `"match":{"method":"GET","moon":"full"}`, 1)
	p := mustParse(t, text)
	if w := p.Warnings(); len(w) != 1 || !strings.Contains(w[0], "handshake.match.moon") {
		t.Errorf("warnings: %q", w)
	}
	for text, want := range map[string]bool{base: true, text: false} {
		c, err := mustParse(t, text).Compile(Settings{Secrets: []string{"s"}})
		if err != nil {
			t.Fatal(err)
		}
		r := post(nil)
		r.Method = "GET"
		res, err := c.Receive(r, caseNow)
		if got := err == nil && res.Handshake != nil; got != want {
			t.Errorf("answered %v, want %v", got, want)
		}
	}
}

func TestKindsOfLaterVersionsParseAndDoNotCompile(t *testing.T) {
	t.Parallel()
	for _, a := range []string{`{"kind":"mtls"}`, `{"kind":"any","of":[{"kind":"token","from":"query:t"},{"kind":"mtls"}]}`} {
		p := mustParse(t, `{"name":"x","auth":`+a+`,"id":{"key":null},"response":{"success":"2xx"}}`)
		_, err := p.Compile(Settings{})
		if err == nil || !strings.Contains(err.Error(), "auth kind mtls is not supported by this version") {
			t.Errorf("%v", err)
		}
	}
}

func TestCompileErrorsNameTheFieldAndHideTheValue(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	const hidden = "hunter2-not-base64!"
	for name, tc := range map[string]struct {
		provider string
		s        Settings
		want     string
	}{
		"not base64":          {"standard-webhooks", Settings{Secrets: []string{"whsec_AAAA", hidden}}, "secrets[1]: is not base64"},
		"only a prefix":       {"standard-webhooks", Settings{Secrets: []string{"whsec_"}}, "secrets[0]: is empty"},
		"no password":         {"basic-auth", Settings{Secrets: []string{hidden}}, "secrets[0]: is not user:password"},
		"param missing":       {"braintree", Settings{Secrets: []string{hidden}}, "params.public_key: missing"},
		"param unknown":       {"stripe", Settings{Secrets: []string{"s"}, Params: map[string]string{"nope": hidden}}, "params.nope: provider stripe has no such parameter"},
		"auth of the source":  {"stripe", Settings{Secrets: []string{"s"}, Auth: []byte(`{"kind":"token","form":"x"}`)}, "auth.form: unknown field"},
		"auth and unsigned":   {"stripe", Settings{Unsigned: true, Auth: []byte(`{}`)}, "unsigned"},
		"id of two kinds":     {"stripe", Settings{Secrets: []string{"s"}, ID: &IDRule{Template: "a", Join: []string{"b"}}}, "id: want a template, first or join"},
		"id of none":          {"stripe", Settings{Secrets: []string{"s"}, ID: &IDRule{}}, "id: want a template, first or join"},
		"id is broken":        {"stripe", Settings{Secrets: []string{"s"}, ID: &IDRule{First: []string{"{json:a}", "{x}"}}}, "id.first[1]: "},
		"batch":               {"stripe", Settings{Secrets: []string{"s"}, Batch: "both"}, "batch: want split or whole"},
		"none without a word": {"stripe", Settings{Auth: []byte(`{"kind":"none"}`)}, "say unsigned: true"},
		"none inside any":     {"stripe", Settings{Secrets: []string{"s"}, Auth: []byte(`{"kind":"any","of":[{"kind":"none"}]}`)}, "auth.of[0]: kind none inside any would let everything in"},
		"negative tolerance":  {"stripe", Settings{Secrets: []string{"s"}, Tolerance: -1}, "tolerance: negative"},
	} {
		p, _ := cat.Get(tc.provider)
		_, err := p.Compile(tc.s)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if _, err := Custom().Compile(Settings{}); err == nil {
		t.Error("a source with neither provider nor auth compiles")
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		retry, id    string
		window, hash time.Duration
	}{
		"nothing known":          {`{}`, ``, 7 * day, day},
		"short horizon":          {`{"horizon_hours":24}`, ``, 7 * day, day},
		"long horizon":           {`{"horizon_hours":240}`, ``, 15 * day, 10 * day},
		"resends for a month":    {`{"horizon_hours":72,"manual_resend_days":30}`, ``, 31 * day, 3 * day},
		"the file's own":         {`{"horizon_hours":72,"manual_resend_days":30}`, `,"dedup_window_hours":3.5`, 210 * time.Minute, 210 * time.Minute},
		"horizon under one hour": {`{"horizon_hours":0.5}`, ``, 7 * day, 30 * time.Minute},
	} {
		p := mustParse(t, `{"name":"x","auth":{"kind":"none"},"id":{"key":null`+tc.id+`},"retry":`+tc.retry+`,"response":{"success":"2xx"}}`)
		if got, hash := p.Window(false, 0), p.Window(true, 0); got != tc.window || hash != tc.hash {
			t.Errorf("%s: %v and %v, want %v and %v", name, got, hash, tc.window, tc.hash)
		}
		// Only a window that nobody chose lasts as long as the delivery does.
		_, why := p.WindowWhy(false, 0)
		_, hash := p.WindowWhy(true, 0)
		if got, want := [2]bool{why.WithRow(), hash.WithRow()}, [2]bool{tc.window >= 7*day, false}; got != want || WindowOwn.WithRow() {
			t.Errorf("%s: with the row %v, want %v", name, got, want)
		}
	}
}

// A key outlives its delivery's row, so that what is shown as stored cannot come again.
func TestAKeyOutlivesTheRow(t *testing.T) {
	t.Parallel()
	p, _ := folder(t).Get("github")
	const year = 365 * 24 * time.Hour
	if got := p.Window(false, year); got != year {
		t.Errorf("got %v", got)
	}
	if got := p.Window(true, year); got == year {
		t.Error("a digest of the body is remembered for the horizon only")
	}
}

func TestTheCatalogue(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	if names := cat.Names(); len(names) != 97 || !slices.IsSorted(names) {
		t.Errorf("%d names", len(names))
	}
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		if s := p.RejectStatus(); s < 400 || s > 499 {
			t.Errorf("%s rejects with %d", name, s)
		}
		if len(p.Warnings()) > 0 {
			t.Errorf("%s: %q", name, p.Warnings())
		}
	}
	own, err := Load(fstest.MapFS{"stripe.json": {Data: []byte(strings.Replace(base, `"x"`, `"stripe"`, 1))}})
	if err != nil {
		t.Fatal(err)
	}
	both := cat.With(own)
	if p, _ := both.Get("stripe"); p.Title != "X" {
		t.Error("a user's file does not win")
	}
	if p, _ := cat.Get("stripe"); p.Title == "X" {
		t.Error("the embedded catalogue was changed")
	}
}
