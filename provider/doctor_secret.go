package provider

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// secretText tries what people make of a secret on its way into a file: each configured
// one as it may have stood at the provider.
func (d *doctor) secretText(*Refusal) Diagnosis {
	for i, s := range d.c.settings.Secrets {
		for _, v := range spellings(s) {
			secrets := slices.Clone(d.c.settings.Secrets)
			secrets[i] = v.text
			if c := d.c.with(secrets); c != nil && d.passes(c, d.r) {
				return Diagnosis{Cause: SecretText, How: v.how}
			}
		}
	}
	return Diagnosis{}
}

// spelling is another text of a secret, and what was wrong with the configured one.
type spelling struct{ how, text string }

// prefixes stand before secrets and get lost, or are pasted with them.
var prefixes = []string{"whsec_", "v1,whsec_", "v1,", "Bearer ", "Token ", "Basic ", "sha256="}

// spellings are at most some twenty; none is empty or the secret itself.
func spellings(s string) (out []spelling) {
	add := func(how, text string) {
		if text != "" && text != s && !slices.ContainsFunc(out, func(o spelling) bool { return o.text == text }) {
			out = append(out, spelling{how, text})
		}
	}
	blank := func(r rune) bool { return unicode.IsSpace(r) || r == 0 || r == 0xfeff || r == 0x200b }
	trimmed := strings.TrimFunc(s, blank)
	if strings.Trim(s, "\r\n") == trimmed {
		add("newline", trimmed)
	}
	add("space", trimmed)
	for _, end := range []string{`\r\n`, `\n`, `\r`} {
		if t, ok := strings.CutSuffix(trimmed, end); ok {
			add("newline", t)
			break
		}
	}
	quoted := strings.TrimFunc(trimmed, func(r rune) bool { return blank(r) || strings.ContainsRune("\"'`“”‘’«»,;<>", r) })
	add("quotes", quoted)
	add("space", strings.Map(func(r rune) rune {
		if blank(r) {
			return -1
		}
		return r
	}, s))
	if name, value, ok := strings.Cut(trimmed, "="); ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" {
		add("name", strings.TrimFunc(value, func(r rune) bool { return blank(r) || strings.ContainsRune("\"'`", r) }))
	}
	if plain, err := url.QueryUnescape(s); err == nil {
		add("escaped", plain)
	}
	if plain, err := url.PathUnescape(s); err == nil {
		add("escaped", plain)
	}
	for _, p := range prefixes {
		if t, ok := strings.CutPrefix(quoted, p); ok {
			add("prefix_extra", t)
		}
	}
	for _, cut := range []int{strings.IndexByte(quoted, '_'), strings.LastIndexByte(quoted, '_')} {
		if cut > 0 && cut < 24 {
			add("prefix_extra", quoted[cut+1:])
		}
	}
	for _, p := range prefixes {
		if !strings.HasPrefix(quoted, p) {
			add("prefix_missing", p+quoted)
		}
	}
	return out
}
