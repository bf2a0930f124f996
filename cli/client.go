package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// maxAnswer bounds what is read of an answer that is no body or stream.
const maxAnswer = 64 << 20

// client talks to the running server over its socket, or to one elsewhere.
type client struct {
	app   *app
	http  *http.Client
	base  string // address of the server
	token string // empty on the socket
}

func (a *app) client() *client {
	return &client{app: a, base: "http://localhost", http: &http.Client{Transport: &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return a.dial(ctx) },
		DisableCompression: true,
	}}}
}

// open sends a request and returns the answer when its status is 2xx; the caller
// closes the body. in nil: no body is sent; a reader: its bytes as they come.
func (c *client) open(ctx context.Context, method, path string, in any, header ...string) (*http.Response, error) {
	var body io.Reader
	stream, streams := in.(io.Reader)
	if streams {
		body = stream
	} else if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if in != nil && !streams {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.app.unreachable(ctx, err)
	}
	if resp.StatusCode/100 != 2 {
		defer func() { _ = resp.Body.Close() }() // was only read
		return nil, c.app.refused(resp)
	}
	return resp, nil
}

// call is open with the answer's JSON decoded into out; out nil: it is not looked at.
func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	resp, err := c.open(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // was only read
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return c.app.unreachable(ctx, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return &failure{code: exitFailed, what: c.app.w("answer.unknown"), why: path}
	}
	return nil
}

// unreachable is the failure of a request that got no answer.
func (a *app) unreachable(ctx context.Context, err error) error {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &failure{code: exitFailed, what: a.w("answer.cut"), why: reason(err), todo: a.w("answer.cut.todo")}
}

// refused is the failure that a problem document tells.
func (a *app) refused(resp *http.Response) error {
	var p struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil || json.Unmarshal(b, &p) != nil {
		p.Title = resp.Status
	}
	f := &failure{code: exitFailed, what: clean(p.Title), why: clean(p.Detail), status: resp.StatusCode}
	if resp.StatusCode == http.StatusNotFound {
		f.code = exitNotFound
	}
	slug := p.Type[strings.LastIndexByte(p.Type, ':')+1:]
	if s, ok := a.words["problem."+slug]; ok {
		f.what, f.why = s, ""
	}
	f.todo = a.words["todo."+slug]
	return f
}

// address is a path with its query, if there is any.
func address(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// pages calls f for each element of a list, newest first, page by page, until there
// are no more or f says stop.
func (c *client) pages(ctx context.Context, path, field string, query url.Values, f func(json.RawMessage) (more bool, err error)) error {
	for {
		var page map[string]json.RawMessage
		if err := c.call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		var list []json.RawMessage
		var next string
		if err := errors.Join(json.Unmarshal(page[field], &list), json.Unmarshal(page["next"], &next)); err != nil {
			return &failure{code: exitFailed, what: c.app.w("answer.unknown"), why: path}
		}
		for _, one := range list {
			if more, err := f(one); err != nil || !more {
				return err
			}
		}
		if next == "" || len(list) == 0 {
			return nil
		}
		query.Set("before", next)
	}
}
