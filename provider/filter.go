package provider

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// filter writes its value of v behind dst; false: there is none.
type filter func(in *input, dst, v []byte) ([]byte, bool)

// hashes are the digests by their names in a file.
var hashes = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
}

// plainFilters take no argument.
var plainFilters = map[string]filter{
	"lower":     func(_ *input, dst, v []byte) ([]byte, bool) { return append(dst, strings.ToLower(view(v))...), true },
	"upper":     func(_ *input, dst, v []byte) ([]byte, bool) { return append(dst, strings.ToUpper(view(v))...), true },
	"trim":      func(_ *input, dst, v []byte) ([]byte, bool) { return append(dst, strings.TrimSpace(view(v))...), true },
	"base64":    func(_ *input, dst, v []byte) ([]byte, bool) { return base64.StdEncoding.AppendEncode(dst, v), true },
	"hex":       func(_ *input, dst, v []byte) ([]byte, bool) { return hex.AppendEncode(dst, v), true },
	"urlencode": func(_ *input, dst, v []byte) ([]byte, bool) { return append(dst, url.QueryEscape(view(v))...), true },
	"urldecode": func(_ *input, dst, v []byte) ([]byte, bool) { // a plus sign stays a plus
		s, err := url.PathUnescape(string(v))
		return append(dst, s...), err == nil
	},
	"unbase64": func(_ *input, dst, v []byte) ([]byte, bool) { // line ends inside are legal
		out, err := base64.StdEncoding.AppendDecode(dst, v)
		return out, err == nil
	},
	"crc32": func(_ *input, dst, v []byte) ([]byte, bool) {
		return strconv.AppendUint(dst, uint64(crc32.ChecksumIEEE(v)), 10), true
	},
	"sorted_pairs":         sortedPairs,
	"escape_unicode_slash": escapeUnicodeSlash,
	"bt_sign":              braintreeSign,
	"contentful_path":      contentfulPath,
	"contentful_headers":   contentfulHeaders,
}

func parseFilter(text string) (filter, error) {
	if f := digestFilter(text); f != nil {
		return f, nil
	}
	if f, ok := plainFilters[text]; ok {
		return f, nil
	}
	name, arg, _ := strings.Cut(text, ":")
	switch name {
	case "const":
		return func(_ *input, dst, _ []byte) ([]byte, bool) { return append(dst, arg...), true }, nil
	case "begins": // absent unless it does
		return func(_ *input, dst, v []byte) ([]byte, bool) {
			return append(dst, v...), strings.HasPrefix(view(v), arg)
		}, nil
	case "jsonpath":
		return jsonPathFilter(arg)
	case "xmltag":
		return xmlTag(arg)
	case "hmac":
		return hmacFilter(arg)
	}
	return nil, fmt.Errorf("unknown filter %q", text)
}

// digestFilter knows sha256, sha256:base64 and their like; nil: it is another filter.
func digestFilter(text string) filter {
	name, enc, has := strings.Cut(text, ":")
	newHash, ok := hashes[name]
	if !ok || (has && enc != "hex" && enc != "base64") {
		return nil
	}
	if name == "sha256" && enc != "base64" { // the usual one, without a hash state on the heap
		return func(_ *input, dst, v []byte) ([]byte, bool) {
			sum := sha256.Sum256(v)
			return hex.AppendEncode(dst, sum[:]), true
		}
	}
	return func(_ *input, dst, v []byte) ([]byte, bool) {
		h := newHash()
		h.Write(v)
		return encode(dst, h.Sum(nil), enc), true
	}
}

func encode(dst, v []byte, enc string) []byte {
	switch enc {
	case "base64":
		return base64.StdEncoding.AppendEncode(dst, v)
	case "base64url":
		return base64.RawURLEncoding.AppendEncode(dst, v)
	}
	return hex.AppendEncode(dst, v)
}

// hmacFilter is keyed with the first configured secret as it is written.
func hmacFilter(arg string) (filter, error) {
	alg, enc, _ := strings.Cut(arg, ":")
	newHash, ok := hashes[alg]
	if !ok || (enc != "hex" && enc != "base64" && enc != "base64url") {
		return nil, fmt.Errorf("filter hmac:%s: want hmac:sha256:hex or the like", arg)
	}
	return func(in *input, dst, v []byte) ([]byte, bool) {
		if in.first == "" {
			return dst, false
		}
		h := hmac.New(newHash, []byte(in.first))
		h.Write(v)
		return encode(dst, h.Sum(nil), enc), true
	}, nil
}

func jsonPathFilter(arg string) (filter, error) {
	path, err := gjsonPath(arg)
	if err != nil {
		return nil, err
	}
	p := &placeholder{arg: path}
	return func(_ *input, dst, v []byte) ([]byte, bool) {
		if !soundJSON(view(v)) {
			return dst, false
		}
		return appendJSON(dst, view(v), p)
	}, nil
}

// soundJSON reports whether s is one JSON document that is not nested absurdly deep:
// the parser recurses, and a megabyte of brackets must not take the stack.
func soundJSON(s string) bool {
	const maxDepth = 512
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			n := textEnd(s[i+1:])
			if n < 0 {
				return false
			}
			i += 1 + n
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
		case '}', ']':
			depth--
		}
	}
	return gjson.Valid(s)
}

// textEnd is where the JSON text ends that s goes on with: the index of its closing
// quote, or -1.
func textEnd(s string) int {
	for at := 0; ; {
		n := strings.IndexByte(s[at:], '"')
		if n < 0 {
			return -1
		}
		n += at
		escapes := 0
		for n-escapes > at && s[n-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return n
		}
		at = n + 1
	}
}
