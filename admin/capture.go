package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"acuse/access"
	"acuse/problem"
	"acuse/store"
)

// CaptureState is how far a source has come that learns its secret from a handshake.
type CaptureState struct {
	Until   time.Time // of the open window; zero: none is open
	Value   string    // what came, in clear, until somebody decides; empty: nothing
	From    string    // who sent it
	At      time.Time
	Snippet string // after a confirmation that could not be written: what to write by hand
}

// Errors of Options.Capture.
var (
	ErrNoCapture       = errors.New("this source does not learn its secret from a handshake")
	ErrNothingCaptured = errors.New("nothing has been captured")
)

// CaptureInfo is a CaptureState for programs.
type CaptureInfo struct {
	OpenUntil *string `json:"open_until"`
	Value     *string `json:"value"`
	From      *string `json:"from"`
	At        *string `json:"at"`
	Snippet   *string `json:"snippet"`
}

// captureInfo is the answer for programs.
func captureInfo(s CaptureState) CaptureInfo {
	return CaptureInfo{OpenUntil: stamp(s.Until), Value: orNull(s.Value), From: orNull(s.From), At: stamp(s.At), Snippet: orNull(s.Snippet)}
}

// captureActs are what a person can do.
var captureActs = map[string]string{"open": "capture_open", "confirm": "capture_confirm", "discard": "capture_discard"}

func (a *Admin) doCapture(r *http.Request, by store.Actor, act string) (CaptureState, error) {
	source := r.PathValue("name")
	if a.opt.Capture == nil {
		return CaptureState{}, errAbsent
	}
	word, ok := captureActs[act]
	if !ok {
		return CaptureState{}, badInput("action: want open, confirm or discard")
	}
	state, err := a.opt.Capture(r.Context(), source, act)
	switch {
	case errors.Is(err, ErrNoCapture):
		return state, store.ErrNotFound
	case errors.Is(err, ErrNothingCaptured):
		return state, apiError{http.StatusConflict, "nothing-captured", "open the window, then have the provider send its handshake"}
	case err != nil:
		a.opt.Log.Warn("capture", "source", source, "action", act, "err", err.Error())
		return state, apiError{http.StatusConflict, "capture", err.Error()}
	}
	a.note(r.Context(), store.AuditEntry{By: by, Act: word, Subject: source})
	return state, nil
}

func (a *Admin) apiCapture(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Action string `json:"action"`
	}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	s, err := a.doCapture(r, actor(r, grantOf(r)), in.Action)
	if err != nil {
		return err
	}
	problem.WriteJSON(w, http.StatusOK, captureInfo(s))
	return nil
}

// longestWait bounds a call that waits for a handshake.
const longestWait = 60 * time.Second

// apiCaptureState tells how far a source has come; with wait_seconds as soon as its open
// window is over.
func (a *Admin) apiCaptureState(w http.ResponseWriter, r *http.Request) error {
	if a.opt.Capture == nil {
		return errAbsent
	}
	ctx, act, wait := r.Context(), "", time.Duration(0)
	if s := r.URL.Query().Get("wait_seconds"); s != "" {
		n, err := strconv.Atoi(s)
		if wait = time.Duration(n) * time.Second; err != nil || n < 0 || wait > longestWait {
			return badInput("wait_seconds: want 0 to 60")
		}
	}
	if wait > 0 {
		act = "await"
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + 30*time.Second))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	s, err := a.opt.Capture(ctx, r.PathValue("name"), act)
	if errors.Is(err, ErrNoCapture) {
		return store.ErrNotFound
	}
	if err != nil {
		return err
	}
	problem.WriteJSON(w, http.StatusOK, captureInfo(s))
	return nil
}

// captureView is the block on the page of a source.
type captureView struct {
	CaptureState
	Error string
}

// captureOf is what the page shows; nil where there is nothing to capture or the person
// may not.
func (a *Admin) captureOf(r *http.Request, s *Source) (*captureView, error) {
	if a.opt.Capture == nil || !s.Captures || !visitOf(r.Context()).grant.May(access.Admin) {
		return nil, nil
	}
	state, err := a.opt.Capture(r.Context(), s.Name, "")
	if err != nil {
		return nil, err
	}
	return &captureView{CaptureState: state}, nil
}

// captureAct does what a person chose on the page.
func (a *Admin) captureAct(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	ctx, l, act := r.Context(), a.localeOf(r), r.PostForm.Get("action")
	s, err := a.doCapture(r, actor(r, visitOf(ctx).grant), act)
	var refused apiError
	switch {
	case errors.As(err, &refused) && refused.status == http.StatusConflict:
		visitOf(ctx).flash(ctx, "bad", l.T("capture.failed", l.known("capture.why.", refused.slug)))
	case err != nil:
		return err
	case s.Snippet != "":
		visitOf(ctx).flash(ctx, "wait", l.T("capture.snippet"))
		v, err := a.sourcePage(r, l)
		if err != nil {
			return err
		}
		v.Capture.Snippet = s.Snippet
		return a.show(w, r, http.StatusOK, "source", frame{Title: v.Name, Nav: "/sources", Help: "help.source", Body: v})
	default:
		visitOf(ctx).flash(ctx, "ok", l.T("capture.done_"+act))
	}
	a.redirect(w, r, "/sources/"+url.PathEscape(r.PathValue("name"))+"#capture")
	return nil
}
