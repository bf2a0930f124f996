package provider

import (
	"bytes"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func byName(p *pairs) url.Values {
	out := url.Values{}
	for _, one := range p.list {
		out.Add(strings.Clone(one.name), strings.Clone(one.value))
	}
	return out
}

func same(a, b url.Values) bool {
	return maps.EqualFunc(a, b, func(x, y []string) bool { return slices.Equal(x, y) })
}

// FuzzForm: a form is read as the standard library reads it, whatever it holds.
func FuzzForm(f *testing.F) {
	for _, s := range []string{"", "a=b&c=d", "a=1&a=2&&b", "a=%41+b&%61=x", "a=%4", "a=%zz&b=c", "a;b=c&d=e", "=x&y", "a=b=c", "%", "a=%ff%00"} {
		f.Add(s)
	}
	f.Add(strings.Repeat("a&", maxFields-1))
	f.Add(strings.Repeat("a&", maxFields))
	f.Fuzz(func(t *testing.T, text string) {
		var p pairs
		whole := p.parse(text)
		want, err := url.ParseQuery(text)
		if whole != (err == nil) || !same(byName(&p), want) {
			t.Errorf("%q: got %v %v, want %v %v", text, byName(&p), whole, want, err)
		}
	})
}

// FuzzMultipart: what is read the short way is what the standard library reads.
func FuzzMultipart(f *testing.F) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("xx")
	_ = w.WriteField("json", `{"a":1}`)
	file, _ := w.CreateFormFile("file", "a.pdf")
	_, _ = file.Write([]byte("%PDF\r\n--x"))
	_ = w.WriteField("empty", "")
	_ = w.Close()
	const ct = "multipart/form-data; boundary=xx"
	f.Add(ct, b.String())
	f.Add(`multipart/form-data; boundary="xx"`, "--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--xx--\r\n")
	f.Add(ct, "--xx\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--xx\r\n\r\n2\r\n--xx--")
	f.Add(ct, "preamble\r\n--xx\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--xx--")
	f.Add(ct, "--xx\nContent-Disposition: form-data; name=\"a\"\n\n1\n--xx--")
	f.Add(ct, "--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--xxy\r\n--xx--")
	f.Add(ct, "--xx\r\nContent-Disposition: form-data; name=\"a\"; filename=\"\"\r\n\r\n1\r\n--xx--")
	f.Add(ct, "--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--xx--\n\r")
	f.Add(ct, "--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--xx--\r\nepilogue")
	f.Add(ct, "--xx\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Type: a\x01b\r\n\r\n1\r\n--xx--")
	f.Fuzz(func(t *testing.T, contentType, text string) {
		var p pairs
		if !p.plainParts(contentType, text) {
			return
		}
		_, params, err := mime.ParseMediaType(contentType)
		if err != nil {
			t.Fatalf("%q was read: %v", contentType, err)
		}
		want := url.Values{}
		for r := multipart.NewReader(strings.NewReader(text), params["boundary"]); ; {
			part, err := r.NextRawPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%q was read: %v", text, err)
			}
			value, err := io.ReadAll(part)
			if err != nil {
				t.Fatalf("%q was read: %v", text, err)
			}
			if part.FileName() == "" && part.FormName() != "" {
				want.Add(part.FormName(), string(value))
			}
		}
		if got := byName(&p); !same(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	})
}
