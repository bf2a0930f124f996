package provider

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// xmlTag takes the text of the first element of a name.
func xmlTag(name string) (filter, error) {
	if name == "" || strings.Trim(name, tokenChars) != "" {
		return nil, fmt.Errorf("filter xmltag: want xmltag:name")
	}
	return func(_ *input, dst, v []byte) ([]byte, bool) {
		if text, ok := plainElement(view(v), name); ok {
			return append(dst, text...), true
		}
		return decodeElement(dst, v, name)
	}, nil
}

// plainElement is the short way through a document of nothing but elements, quoted
// attributes and plain text, to an element that holds text alone. false: the long way
// decides. Whether what stands before it is well nested is not looked at: it is signed.
func plainElement(doc, name string) (string, bool) {
	for {
		before, rest, ok := strings.Cut(doc, "<")
		tag, after, closed := strings.Cut(rest, ">")
		if !ok || !closed || !plainXML(before) {
			return "", false
		}
		doc = after
		closing := strings.HasPrefix(tag, "/")
		element, attributes, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " ")
		if element == "" || !letter(element[0]) || strings.Trim(element, tokenChars) != "" || !plainAttributes(attributes) || (closing && attributes != "") {
			return "", false
		}
		if element != name || closing {
			continue
		}
		text, rest, ok := strings.Cut(after, "</")
		end, _, closed := strings.Cut(rest, ">")
		return text, ok && closed && end == name && plainXML(text)
	}
}

// plainAttributes accepts one attribute with a quoted plain value, or none.
func plainAttributes(s string) bool {
	if s == "" {
		return true
	}
	name, value, ok := strings.Cut(s, `="`)
	value, closed := strings.CutSuffix(value, `"`)
	return ok && closed && name != "" && letter(name[0]) && strings.Trim(name, tokenChars) == "" &&
		plainXML(value) && !strings.Contains(value, `"`)
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// plainXML tells whether a text stands for itself.
func plainXML(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c > '~' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

func decodeElement(dst, doc []byte, name string) ([]byte, bool) {
	d := xml.NewDecoder(bytes.NewReader(doc))
	for {
		tok, err := d.Token()
		if err != nil {
			return dst, false
		}
		if start, ok := tok.(xml.StartElement); ok && start.Name.Local == name {
			var value string
			err := d.DecodeElement(&value, &start)
			return append(dst, value...), err == nil
		}
	}
}
