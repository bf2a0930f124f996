package admin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"acuse/access"
	"acuse/problem"
	"acuse/store"
)

//go:embed openapi.json
var openAPI []byte

// apiRoutes lists the calls; openapi.json describes exactly these.
func (a *Admin) apiRoutes() []route {
	const get, post, del = http.MethodGet, http.MethodPost, http.MethodDelete
	const v1 = "/api/v1"
	return []route{
		{get, v1 + "/openapi.json", "", a.apiDocument},
		{get, v1 + "/deliveries", access.Read, a.apiDeliveries},
		{get, v1 + "/deliveries/{id}", access.Read, a.apiDelivery},
		{get, v1 + "/deliveries/{id}/body", access.Body, a.apiBody},
		{post, v1 + "/deliveries/{id}/resend", access.Resend, a.apiResend},
		{post, v1 + "/deliveries/{id}/cancel", access.Resend, a.apiCancel},
		{post, v1 + "/deliveries/release", access.Resend, a.apiRelease},
		{get, v1 + "/dead", access.Read, a.apiDead},
		{post, v1 + "/dead/{group}/resend", access.Resend, a.apiDeadAct(actResend)},
		{post, v1 + "/dead/{group}/cancel", access.Resend, a.apiDeadAct(actCancel)},
		{get, v1 + "/sources", access.Read, a.apiSources},
		{get, v1 + "/destinations", access.Read, a.apiDestinations},
		{post, v1 + "/destinations/{name}/pause", access.Resend, a.apiLaneAct("pause")},
		{post, v1 + "/destinations/{name}/resume", access.Resend, a.apiLaneAct("resume")},
		{post, v1 + "/destinations/{name}/probe", access.Resend, a.apiLaneAct("probe")},
		{get, v1 + "/rejections", access.Read, a.apiRejections},
		{post, v1 + "/rejections/recheck", access.Resend, a.apiRecheck},
		{get, v1 + "/rejections/{id}", access.Read, a.apiRejection},
		{get, v1 + "/stats", access.Read, a.apiStats},
		{get, v1 + "/events", access.Read, a.apiEvents},
		{get, v1 + "/status", access.Read, a.apiStatus},
		{post, v1 + "/backup", access.Admin, a.apiBackup},
		{post, v1 + "/check", access.Admin, a.apiCheck},
		{post, v1 + "/erase", access.Admin, a.apiErase},
		{get, v1 + "/export", access.Admin, a.apiExport},
		{post, v1 + "/import", access.Admin, a.apiImport},
		{post, v1 + "/setup-link", access.Admin, a.apiSetupLink},
		{get, v1 + "/tokens", access.Admin, a.apiTokens},
		{post, v1 + "/tokens", access.Admin, a.apiTokenCreate},
		{del, v1 + "/tokens/{id}", access.Admin, a.apiTokenRevoke},
		{get, v1 + "/users", access.Admin, a.apiUsers},
		{post, v1 + "/users", access.Admin, a.apiUserCreate},
		{del, v1 + "/users/{name}", access.Admin, a.apiUserRemove},
		{post, v1 + "/users/{name}/password", access.Admin, a.apiUserPassword},
		{post, v1 + "/sources/{name}/test", access.Admin, a.apiTest},
		{get, v1 + "/sources/{name}/capture", access.Admin, a.apiCaptureState},
		{post, v1 + "/sources/{name}/capture", access.Admin, a.apiCapture},
	}
}

type apiGrantKey struct{}

func grantOf(r *http.Request) access.Grant {
	g, _ := r.Context().Value(apiGrantKey{}).(access.Grant)
	return g
}

// api wraps a call: who asks, the scope, and a problem document for every error.
func (a *Admin) api(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g, err := a.caller(r)
		switch {
		case rt.scope == "":
			err = nil
		case err == nil && !g.May(rt.scope):
			err = apiError{http.StatusForbidden, "scope", "this call needs the scope " + rt.scope}
		}
		if err == nil {
			r = r.WithContext(context.WithValue(r.Context(), apiGrantKey{}, g))
			err = rt.handle(w, r)
		}
		if err != nil {
			a.apiFail(w, r, err)
		}
	})
}

// caller is the grant in the context (the socket), a bearer token, or the session of
// a person who logged in. Writing with a session was held to this origin before.
func (a *Admin) caller(r *http.Request) (access.Grant, error) {
	if g, ok := access.GrantOf(r.Context()); ok {
		return g, nil
	}
	if r.Header.Get("Authorization") != "" {
		return a.opt.Tokens.Check(r)
	}
	m := a.manager(r)
	c, err := r.Cookie(m.Cookie.Name)
	if err != nil {
		return access.Grant{}, access.ErrNoToken
	}
	ctx, err := m.Load(r.Context(), c.Value)
	if err != nil {
		return access.Grant{}, err
	}
	v, err := a.loadVisit(ctx, m)
	if err != nil {
		return access.Grant{}, err
	}
	if !v.known {
		return access.Grant{}, access.ErrNoToken
	}
	return v.grant, nil
}

// apiError is an answer that a handler decided on itself.
type apiError struct {
	status       int
	slug, detail string
}

func (e apiError) Error() string { return e.slug + ": " + e.detail }

func badInput(format string, args ...any) error {
	return apiError{http.StatusBadRequest, "bad-request", fmt.Sprintf(format, args...)}
}

// apiFail is the only place where an error becomes a problem document.
func (a *Admin) apiFail(w http.ResponseWriter, r *http.Request, err error) {
	var own apiError
	var tooLarge *http.MaxBytesError
	p := problem.New(http.StatusInternalServerError, "internal", "the cause is in the log")
	switch {
	case errors.As(err, &own):
		p = problem.New(own.status, own.slug, own.detail)
	case errors.Is(err, access.ErrNoToken), errors.Is(err, access.ErrBadToken):
		w.Header().Set("WWW-Authenticate", `Bearer realm="acuse"`)
		p = problem.New(http.StatusUnauthorized, "unauthorized", "send Authorization: Bearer with a token that is valid")
	case errors.Is(err, errMethod):
		p = problem.New(http.StatusMethodNotAllowed, "method-not-allowed", "the Allow header names what can be done here")
	case errors.Is(err, errAbsent):
		p = problem.New(http.StatusNotImplemented, "not-available", "this installation has no such function")
	case errors.Is(err, store.ErrNotFound):
		p = problem.New(http.StatusNotFound, "not-found", "nothing is kept under that name or number")
	case errors.Is(err, store.ErrRunning):
		p = problem.New(http.StatusConflict, "running", "a job of it is being worked on; try again when its lease ended")
	case errors.Is(err, store.ErrPayloadGone):
		p = problem.New(http.StatusConflict, "payload-gone", "the body was removed by retention")
	case errors.Is(err, store.ErrState):
		p = problem.New(http.StatusConflict, "state", "not possible in the state it is in")
	case errors.Is(err, ErrSecret):
		p = problem.New(http.StatusUnprocessableEntity, "bad-secret", strings.TrimPrefix(err.Error(), "admin: "))
	case errors.Is(err, errNoJob):
		p = problem.New(http.StatusNotFound, "no-job", "the delivery does not go to that destination")
	case errors.Is(err, access.ErrScopes), errors.Is(err, access.ErrName), errors.Is(err, access.ErrPassword), errors.Is(err, access.ErrRole):
		p = problem.New(http.StatusBadRequest, "bad-request", strings.TrimPrefix(err.Error(), "access: "))
	case errors.Is(err, access.ErrExists):
		p = problem.New(http.StatusConflict, "exists", "a user of that name exists")
	case errors.Is(err, access.ErrLastOwner):
		p = problem.New(http.StatusConflict, "last-owner", "without this user nobody could manage acuse")
	case errors.As(err, &tooLarge):
		p = problem.New(http.StatusRequestEntityTooLarge, "too-large", "a request has at most 64 KiB")
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrClosed):
		w.Header().Set("Retry-After", "10")
		p = problem.New(http.StatusServiceUnavailable, "storage", "storage does not take writes now")
		a.opt.Log.Warn("api", "path", r.URL.Path, "err", err)
	case r.Context().Err() != nil:
		return // the caller left
	default:
		a.opt.Log.Error("api", "path", r.URL.Path, "err", err)
	}
	p.Write(w)
}

func (a *Admin) apiNotFound(w http.ResponseWriter, _ *http.Request) {
	problem.Write(w, http.StatusNotFound, "not-found", "no such call; see /api/v1/openapi.json")
}

func (a *Admin) apiCrossOrigin(w http.ResponseWriter) {
	problem.Write(w, http.StatusForbidden, "cross-origin", "a page of another origin may not do this")
}

// readInput reads the JSON object of a request, strictly: an unknown field, a wrong
// type or something after the object is refused. No body is an empty object.
func readInput(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err != nil {
		return err
	}
	if len(strings.TrimSpace(string(body))) == 0 {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return apiError{http.StatusUnsupportedMediaType, "media-type", "send Content-Type: application/json"}
	}
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return badInput("%s", plain(err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return badInput("something stands after the object")
	}
	return nil
}

// plain says what is wrong with the input without Go's words for it.
func plain(err error) string {
	var typ *json.UnmarshalTypeError
	var syn *json.SyntaxError
	switch {
	case errors.As(err, &typ):
		return fmt.Sprintf("%s: a %s does not fit here", typ.Field, typ.Value)
	case errors.As(err, &syn), errors.Is(err, io.ErrUnexpectedEOF):
		return "the body is not valid JSON"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// stamp is an instant in the API's form, null when there is none.
func stamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.000Z")
	return &s
}

// orNull is a value, or null where zero means none.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func (a *Admin) apiDocument(w http.ResponseWriter, _ *http.Request) error {
	problem.WriteJSON(w, http.StatusOK, json.RawMessage(openAPI))
	return nil
}
