package web

import (
	"net/http"
	"strings"
)

// The public listener knows two things.
const (
	placeNone = iota
	placeIn
	placeHealth
)

// rawPath is the path as the sender wrote it, undecoded and without the query.
func rawPath(r *http.Request) string {
	p := r.RequestURI
	if !strings.HasPrefix(p, "/") { // absolute form, or a request made by a test
		p = r.URL.EscapedPath()
	}
	return pathOf(p)
}

// pathOf cuts the query off.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}

// rawTarget is path and query as the sender wrote them.
func rawTarget(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	return r.URL.RequestURI()
}

// route reads a raw path. Nothing is decoded and nothing redirects: a sender takes a
// 3xx for a failure, and a segment that needs decoding is no source name, so that
// "%69n" or "strip%65" reach nothing that a rule in front of acuse forbids. Empty and
// "." segments before the source are passed over, since an address pasted with a
// slash too many is still meant for us; ".." is never followed.
//
// rest is what follows the source, with its slash: "" for "/in/x", "/" for "/in/x/".
func route(path string) (place int, source, rest string) {
	first, after := segment(path)
	switch {
	case first == "in":
		source, rest = segment(after)
		if source == "" {
			return placeNone, "", ""
		}
		return placeIn, source, rest
	case path == "/healthz":
		return placeHealth, "", ""
	}
	return placeNone, "", ""
}

// segment cuts the first segment that is neither empty nor "." off a path.
func segment(path string) (first, rest string) {
	for strings.HasPrefix(path, "/") {
		path = path[1:]
		n := strings.IndexByte(path, '/')
		if n < 0 {
			n = len(path)
		}
		if s := path[:n]; s != "" && s != "." {
			return s, path[n:]
		}
		path = path[n:]
	}
	return "", ""
}
