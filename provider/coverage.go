package provider

import "strings"

// coverage works out what each of several message templates covers, and which values
// stand under two names. One message needs none of that.
func coverage(list []*template) (out []message, aliases [][2]place) {
	sets := make([]map[string]bool, len(list))
	for i, t := range list {
		sets[i] = map[string]bool{}
		t.each(func(p *placeholder) { cover(sets[i], p) })
		out = append(out, message{template: t, whole: sets[i]["body"], urls: sets[i]["url"]})
	}
	for i := range out {
		out[i].hidden = hide(i, sets)
	}
	for j := 1; j < len(list); j++ {
		aliases = append(aliases, pairUp(list[0].parts, list[j].parts)...)
	}
	return out, aliases
}

func cover(set map[string]bool, p *placeholder) {
	switch p.src {
	case srcBody:
		set["body"] = true
	case srcURL, srcURLNoQuery:
		set["url"] = true
		set["query"] = set["query"] || p.src == srcURL
	case srcURLPathQuery, srcRawQuery:
		set["query"] = true
	case srcHeader, srcForm, srcQuery:
		set[p.key()] = true
	}
}

// hide lists what another message covers and message i does not: when i verified, such
// a value is anybody's and counts as absent.
func hide(i int, sets []map[string]bool) *hidden {
	mine := sets[i]
	h := &hidden{names: map[string]bool{}, exempts: mine}
	any := false
	for j, other := range sets {
		if j == i {
			continue
		}
		for name := range other {
			switch {
			case mine[name] || name == "url":
				continue
			case name == "body":
				h.body = true
			case name == "query":
				h.query = true
			case strings.HasPrefix(name, "form:") && mine["body"], strings.HasPrefix(name, "query:") && mine["query"]:
				continue // covered as a part
			default:
				h.names[name] = true
			}
			any = true
		}
	}
	if !any {
		return nil
	}
	return h
}

// pairUp finds headers that stand at the same place of two messages alike otherwise:
// svix-id and webhook-id. They are two names of one value.
func pairUp(a, b []part) (pairs [][2]place) {
	if len(a) != len(b) {
		return nil
	}
	for i := range a {
		p, q := a[i].ph, b[i].ph
		if a[i].lit != b[i].lit || (p == nil) != (q == nil) || len(a[i].opt) != len(b[i].opt) {
			return nil
		}
		if p == nil || p.text == q.text {
			continue
		}
		if p.src != srcHeader || q.src != srcHeader || len(p.filters)+len(q.filters) > 0 {
			return nil
		}
		pairs = append(pairs, [2]place{{placeholder: p}, {placeholder: q}})
	}
	return pairs
}

// urlVariants are the forms of the public URL that are tried, always in this order:
// as configured, then with the default port of its scheme added or taken away. Another
// port is part of the URL and is never taken away.
func urlVariants(buf []string, u string, wanted bool) []string {
	buf = append(buf, u)
	scheme, rest, ok := strings.Cut(u, "://")
	port := map[string]string{"https": ":443", "http": ":80"}[scheme]
	if !wanted || !ok || port == "" {
		return buf
	}
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if bare, had := strings.CutSuffix(host, port); had {
		return append(buf, scheme+"://"+bare+path)
	}
	if i := strings.LastIndexByte(host, ':'); i < 0 || host[len(host)-1] == ']' {
		return append(buf, scheme+"://"+host+port+path)
	}
	return buf
}
