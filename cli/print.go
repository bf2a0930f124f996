package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes text from outside safe to print: control characters, the escape
// sequences of a terminal and marks that turn the reading direction are taken out.
func clean(s string) string {
	if !strings.ContainsFunc(s, unsafe) && utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r':
			return ' '
		case unsafe(r), r == utf8.RuneError:
			return '·'
		}
		return r
	}, s)
}

// unsafe tells whether a character could do something else than stand there.
func unsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// cleanLines is clean for a text of several lines.
func cleanLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = clean(l)
	}
	return strings.Join(lines, "\n")
}

// columns prints rows so that columns stand under one another, with two spaces
// between. The last cell of a row is not padded. paint colours a padded cell.
func (a *app) columns(rows [][]string, paint func(row, col int, cell string) string) {
	width := []int{}
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for r, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			pad := width[i] - utf8.RuneCountInString(cell)
			if paint != nil {
				cell = paint(r, i, cell)
			}
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", pad+2))
			}
		}
		a.say("%s", strings.TrimRight(b.String(), " "))
	}
}

// painted is a cell in the colour of a state.
func (a *app) painted(state, cell string) string {
	switch state {
	case "dead", "rejected":
		return a.color.Red(cell)
	case "delivered":
		return a.color.Green(cell)
	case "queued", "quarantined":
		return a.color.Yellow(cell)
	case "leased":
		return a.color.Cyan(cell)
	}
	return cell
}

// state is a state as people read it.
func (a *app) state(s string) string {
	if w, ok := a.words["state."+s]; ok {
		return w
	}
	return clean(s)
}

// line prints the API's own JSON of one object on one line.
func (a *app) line(raw json.RawMessage) {
	var b bytes.Buffer
	if json.Compact(&b, raw) == nil {
		a.say("%s", b.String())
	}
}

// when is an instant of the API in local time; a dash for none.
func (a *app) when(at *string) string {
	if at == nil || *at == "" {
		return "–"
	}
	t, err := time.Parse(time.RFC3339, *at)
	if err != nil {
		return clean(*at)
	}
	return t.In(a.opt.Zone).Format("2006-01-02 15:04:05")
}

// ago is how long an instant of the API lies back, in words of one unit.
func (a *app) ago(at *string) string {
	if at == nil {
		return ""
	}
	t, err := time.Parse(time.RFC3339, *at)
	if err != nil {
		return ""
	}
	return a.span(a.opt.Now().Sub(t))
}

func (a *app) span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// lasted is a duration of an attempt: "84 ms", "1.2 s".
func (a *app) lasted(us int64) string {
	switch d := time.Duration(us) * time.Microsecond; {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return a.number(d.Seconds(), 1) + " s"
	default:
		return a.span(d)
	}
}

// number is a decimal as the language writes it.
func (a *app) number(f float64, digits int) string {
	s := fmt.Sprintf("%.*f", digits, f)
	if a.lang == "es" {
		s = strings.ReplaceAll(s, ".", ",")
	}
	return s
}

// size is a number of bytes for people, in two or three digits: "1.2 GiB", "361 KiB".
func (a *app) size(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	digits := 0
	if f < 10 && f != math.Trunc(f) {
		digits = 1
	}
	return a.number(f, digits) + " " + units[i:i+1] + "iB"
}
