// Package admin is what people see: the dashboard, rendered on the server and
// whole without a script, and the operations API under /api/v1.
package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"acuse/store"
)

// Admin is the handler of the private listener: pages at /, the API under /api/v1/.
type Admin struct {
	opt     Options
	base    string // "" or "/acuse"
	locales map[string]*locale
	pages   *pages
	assets  *assets
	icons   map[string]bool
	hub     *hub
	made    madeTokens
	looks   looks
	tests   testRuns
	secure  *scs.SessionManager
	plain   *scs.SessionManager
	handler http.Handler
}

var _ http.Handler = (*Admin)(nil)

// New parses templates and catalogues; a broken one is an error here, not on the page.
func New(o Options) (*Admin, error) {
	o.fill()
	a := &Admin{opt: o, base: strings.TrimSuffix("/"+strings.Trim(o.BasePath, "/"), "/"), locales: map[string]*locale{}}
	a.hub = newHub()
	for _, code := range []string{"en", "es"} {
		l, err := loadLocale(code, o.Zone)
		if err != nil {
			return nil, fmt.Errorf("admin: %w", err)
		}
		a.locales[code] = l
	}
	var err error
	if a.assets, err = loadAssets(o.Files); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	if a.icons, err = loadIcons(o.Files); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	if a.pages, err = a.parsePages(); err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	a.secure, a.plain = a.sessions(true), a.sessions(false)
	a.handler = a.routes()
	return a, nil
}

func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Changed tells the pages and the API's listeners that a delivery changed. It
// never blocks.
func (a *Admin) Changed(delivery int64) { a.hub.publish(delivery) }

// Close ends the streams of GET /api/v1/events, which would hold a shutdown.
func (a *Admin) Close() { a.hub.close() }

// route is one page or call; the tables of pages and API are made of them.
type route struct {
	method, path string
	scope        string // of the grant that it needs; empty: none
	handle       func(w http.ResponseWriter, r *http.Request) error
}

func (a *Admin) routes() http.Handler {
	mux := http.NewServeMux()
	a.mount(mux, a.pageRoutes(), a.page)
	a.mount(mux, a.apiRoutes(), a.api)
	mux.Handle("GET "+a.base+"/static/{name}", a.assets)
	mux.HandleFunc(a.base+"/api/", a.apiNotFound)
	if a.base != "" {
		mux.HandleFunc("GET "+a.base, func(w http.ResponseWriter, r *http.Request) { a.redirect(w, r, "/") })
	}
	mux.Handle("/", a.page(route{handle: func(http.ResponseWriter, *http.Request) error { return store.ErrNotFound }}))
	return a.guard(mux)
}

// mount registers routes and, for each path, an answer to the methods it has not:
// 405 in our own words instead of the mux's.
func (a *Admin) mount(mux *http.ServeMux, list []route, wrap func(route) http.Handler) {
	allowed := map[string][]string{}
	for _, rt := range list {
		mux.Handle(rt.method+" "+a.base+rt.path, wrap(rt))
		allowed[rt.path] = append(allowed[rt.path], rt.method)
	}
	for path, methods := range allowed {
		refuse := wrap(route{path: path, handle: func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			return errMethod
		}})
		for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			if !slices.Contains(methods, m) {
				mux.Handle(m+" "+a.base+path, refuse)
			}
		}
	}
}

// policy lets a page use its own script, style, pictures and forms, nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'"

// guard stands around every route: the headers that every answer has, and the
// refusal of requests that another origin's page makes.
func (a *Admin) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(a.crossOrigin))
	inner := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin") // a POST from a form must carry its Origin
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		// Streams and waits set deadlines of their own.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(30 * time.Second))
		inner.ServeHTTP(w, r)
	})
}

// link is the address of a path of ours under the base path.
func (a *Admin) link(path string) string { return a.base + path }
