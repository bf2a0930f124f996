package admin

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed words/en.json words/es.json
var wordFiles embed.FS

// message is one entry of a catalogue: a text, or its two plural forms.
type message struct{ one, other string }

func (m *message) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &m.other)
	}
	var forms map[string]string
	if err := json.Unmarshal(b, &forms); err != nil {
		return err
	}
	m.one, m.other = forms["one"], forms["other"]
	if len(forms) != 2 || m.one == "" || m.other == "" {
		return fmt.Errorf("plural needs one and other: %s", b)
	}
	return nil
}

// locale is a language with its words, number and date forms.
type locale struct {
	code  string
	words map[string]message
	zone  *time.Location
}

func loadLocale(code string, zone *time.Location) (*locale, error) {
	b, err := wordFiles.ReadFile("words/" + code + ".json")
	if err != nil {
		return nil, err
	}
	l := &locale{code: code, zone: zone}
	if err := json.Unmarshal(b, &l.words); err != nil {
		return nil, fmt.Errorf("words/%s.json: %w", code, err)
	}
	return l, nil
}

// missing marks a key that the catalogue lacks, for a test to find.
func missing(key string) string { return "⟦" + key + "⟧" }

// T is the text of key with {0}, {1}… replaced. Whole numbers are written as the
// language writes them.
func (l *locale) T(key string, args ...any) string {
	m, ok := l.words[key]
	if !ok {
		return missing(key)
	}
	return l.fill(m.other, args)
}

// N is the form of key for n; {0} is n, the args follow.
func (l *locale) N(key string, n int64, args ...any) string {
	m, ok := l.words[key]
	if !ok || m.one == "" {
		return missing(key)
	}
	args = append([]any{n}, args...)
	if n == 1 {
		return l.fill(m.one, args)
	}
	return l.fill(m.other, args)
}

// B is T for text with **bold** parts. The bold marks of the catalogue become
// elements; those that come with an argument do not.
func (l *locale) B(key string, args ...any) template.HTML {
	m, ok := l.words[key]
	if !ok {
		return template.HTML(template.HTMLEscapeString(missing(key)))
	}
	safe := make([]any, len(args))
	for i, a := range args {
		safe[i] = template.HTMLEscapeString(l.arg(a))
	}
	parts := strings.Split(template.HTMLEscapeString(m.other), "**")
	var b strings.Builder
	for i, p := range parts {
		p = l.fill(p, safe)
		if i%2 == 1 {
			p = "<strong>" + p + "</strong>"
		}
		b.WriteString(p)
	}
	return template.HTML(b.String()) // escaped above, word by word
}

var placeholder = regexp.MustCompile(`\{[0-9]\}`)

func (l *locale) fill(s string, args []any) string {
	if !strings.Contains(s, "{") {
		return s
	}
	return placeholder.ReplaceAllStringFunc(s, func(p string) string {
		if i := int(p[1] - '0'); i < len(args) {
			return l.arg(args[i])
		}
		return p
	})
}

func (l *locale) arg(a any) string {
	switch v := a.(type) {
	case string:
		return v
	case int:
		return l.num(int64(v))
	case int64:
		return l.num(v)
	default:
		return fmt.Sprint(v)
	}
}

// num groups thousands: "1,284" or "1 284" with a narrow space that does not break.
func (l *locale) num(n int64) string {
	sep := ","
	if l.code == "es" {
		sep = "\u202f"
	}
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + sep + s[i:]
	}
	return s
}

// decimal writes f with one digit after the mark, none when it is zero or f ≥ 100.
func (l *locale) decimal(f float64) string {
	s := strconv.FormatFloat(f, 'f', 1, 64)
	if f >= 100 {
		s = strconv.FormatFloat(f, 'f', 0, 64)
	}
	s = strings.TrimSuffix(s, ".0")
	if l.code == "es" {
		s = strings.Replace(s, ".", ",", 1)
	}
	return s
}

// size writes bytes for people; 1 KB is 1024 bytes, as in the config.
func (l *locale) size(n int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return l.decimal(f) + "\u00a0" + units[i]
}

// span writes a duration with the unit that fits: "0.4 ms", "1.2 s", "2 h 5 min".
func (l *locale) span(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return l.decimal(float64(d.Microseconds())/1000) + "\u00a0ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "\u00a0ms"
	case d < time.Minute:
		return l.decimal(d.Seconds()) + "\u00a0s"
	case d < time.Hour:
		return pair(int64(d.Minutes()), "min", int64(d.Seconds())%60, "s")
	case d < 48*time.Hour:
		return pair(int64(d.Hours()), "h", int64(d.Minutes())%60, "min")
	default:
		return l.N("unit.days", int64(d.Hours()/24))
	}
}

func pair(a int64, ua string, b int64, ub string) string {
	s := strconv.FormatInt(a, 10) + "\u00a0" + ua
	if b != 0 {
		s += "\u00a0" + strconv.FormatInt(b, 10) + "\u00a0" + ub
	}
	return s
}

// ago says how long before now: "2 min ago", "hace 2 min".
func (l *locale) ago(t, now time.Time) string {
	d := now.Sub(t)
	if d < time.Second {
		return l.T("time.now")
	}
	switch {
	case d >= time.Hour:
		d = d.Truncate(time.Hour)
	case d >= time.Minute:
		d = d.Truncate(time.Minute)
	default:
		d = d.Truncate(time.Second)
	}
	return l.T("time.ago", l.span(d))
}

var months = map[string][]string{
	"en": {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
	"es": {"ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sep", "oct", "nov", "dic"},
}

func (l *locale) day(t time.Time, year bool) string {
	s := strconv.Itoa(t.Day()) + " " + months[l.code][t.Month()-1]
	if year {
		s += " " + strconv.Itoa(t.Year())
	}
	return s
}

// at writes an instant as short as it can be read: with the day when it is not
// today's, with the year when it is not this year's.
func (l *locale) at(t, now time.Time, clock string) string {
	t, now = t.In(l.zone), now.In(l.zone)
	switch {
	case t.YearDay() == now.YearDay() && t.Year() == now.Year():
		return t.Format(clock)
	case t.Year() == now.Year():
		return l.day(t, false) + ", " + t.Format("15:04")
	default:
		return l.day(t, true) + ", " + t.Format("15:04")
	}
}

// full writes an instant with date and seconds.
func (l *locale) full(t time.Time) string {
	t = t.In(l.zone)
	return l.day(t, true) + ", " + t.Format("15:04:05")
}
