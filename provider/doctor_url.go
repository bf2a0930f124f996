package provider

import (
	"slices"
	"strings"
)

// maxURLs bounds the addresses that are tried.
const maxURLs = 96

// otherURL tries the addresses under which the provider may know this source: where its
// proof covers the URL, one that is configured otherwise never fits.
func (d *doctor) otherURL(*Refusal) Diagnosis {
	signsURL, signsPath := false, false
	d.c.plan.each(func(p *placeholder) {
		switch p.src {
		case srcURL, srcURLNoQuery:
			signsURL = true
		case srcPath, srcURLPathQuery, srcHost:
			signsPath = true
		}
	})
	if signsURL {
		own := address(d.r.URL)
		for _, u := range d.addresses() {
			r := *d.r
			r.URL = u
			if d.passes(d.c, &r) {
				bare, _, _ := strings.Cut(u, "?")
				return Diagnosis{Cause: OtherURL, How: strings.Join(own.differs(address(u)), ","), URL: bare}
			}
		}
	}
	if own := address(d.r.URL); signsPath && own.host != "" {
		r := *d.r
		r.Target, r.Host = own.path+own.query, own.host
		if (r.Target != d.r.Target || r.Host != d.r.Host) && d.passes(d.c, &r) {
			bare, _, _ := strings.Cut(d.r.URL, "?")
			return Diagnosis{Cause: OtherURL, How: "rewritten", URL: bare}
		}
	}
	return Diagnosis{}
}

// parts of an absolute URL; the query has its "?".
type urlParts struct{ scheme, host, port, path, query string }

func address(u string) (a urlParts) {
	scheme, rest, ok := strings.Cut(u, "://")
	if !ok {
		return a
	}
	a.scheme = scheme
	if i := strings.IndexByte(rest, '?'); i >= 0 {
		rest, a.query = rest[:i], rest[i:]
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		rest, a.path = rest[:i], rest[i:]
	}
	a.host, a.port = splitHost(rest)
	return a
}

func splitHost(s string) (host, port string) {
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		return s[:i], s[i:]
	}
	return s, ""
}

func (a urlParts) String() string { return a.scheme + "://" + a.host + a.port + a.path + a.query }

// differs names the parts in which b is another address.
func (a urlParts) differs(b urlParts) (out []string) {
	add := func(name string, is bool) {
		if is {
			out = append(out, name)
		}
	}
	if a.host == "" {
		return []string{"unknown"} // none is configured
	}
	add("scheme", a.scheme != b.scheme)
	add("host", a.host != b.host)
	add("port", a.port != b.port)
	slash := a.path != b.path && strings.TrimSuffix(a.path, "/") == strings.TrimSuffix(b.path, "/")
	add("slash", slash)
	add("path", a.path != b.path && !slash)
	add("query", a.query != b.query)
	return out
}

// addresses are the URLs to try, those that differ least from the configured one first.
func (d *doctor) addresses() []string {
	own := address(d.r.URL)
	path, query, _ := strings.Cut(d.r.Target, "?")
	if query != "" {
		query = "?" + query
	}
	type end struct{ host, port string }
	var ends []end
	host := func(s string) {
		if s = strings.TrimSpace(s); s == "" || len(s) > 255 || strings.ContainsAny(s, "/?# ") {
			return
		}
		h, p := splitHost(s)
		for _, port := range []string{p, ""} {
			if e := (end{h, port}); !slices.Contains(ends, e) {
				ends = append(ends, e)
			}
		}
	}
	host(own.host + own.port)
	host(d.r.Host)
	forwarded, _, _ := strings.Cut(d.r.Header.Get("X-Forwarded-Host"), ",")
	host(forwarded)
	_, asked := splitHost(d.r.Host)
	if own.host != "" && asked != "" {
		host(own.host + asked)
	}
	paths := []string{own.path, toggled(own.path), path, toggled(path)}
	var out []string
	for _, p := range paths {
		for _, e := range ends {
			for _, scheme := range []string{own.scheme, "https", "http"} {
				for _, q := range []string{query, ""} {
					if scheme == "" || len(out) >= maxURLs {
						continue
					}
					u := urlParts{scheme, e.host, e.port, p, q}.String()
					if u != d.r.URL && !slices.Contains(out, u) {
						out = append(out, u)
					}
				}
			}
		}
	}
	return out
}

// toggled is the path with its slash at the end taken away or added.
func toggled(path string) string {
	if p, had := strings.CutSuffix(path, "/"); had {
		return p
	}
	return path + "/"
}
