package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"acuse/store"
)

// resendWait is how long the answer to a resend waits for the outcome, so that a
// page without a script shows it too.
const resendWait = 1500 * time.Millisecond

type resendView struct {
	D            *store.Delivery
	Destination  string // chosen; empty: all of them
	Destinations []option
	Names        string // of the chosen ones
	Planned      string // when the retry was planned that this replaces
	Running      bool   // a chosen job is being worked on: cannot be resent now
	Delivered    bool   // a chosen job was delivered already
	Reason       string
	Passthrough  bool
	AsNew        bool
	MayNew       bool
	Error        string
	Back         string
	Button       string
	OptionsOpen  bool
}

func (a *Admin) resendForm(w http.ResponseWriter, r *http.Request) error {
	d, err := a.deliveryOf(r)
	if err != nil {
		return err
	}
	return a.showResend(w, r, http.StatusOK, a.resendView(a.localeOf(r), &d, r.URL.Query()))
}

func (a *Admin) deliveryOf(r *http.Request) (store.Delivery, error) {
	id, ok := readID(r.PathValue("id"))
	if !ok {
		return store.Delivery{}, store.ErrNotFound
	}
	return a.opt.Archive.Delivery(r.Context(), id)
}

func (a *Admin) showResend(w http.ResponseWriter, r *http.Request, status int, v resendView) error {
	title := a.localeOf(r).T("resend.title", "#"+strconv.FormatInt(v.D.ID, 10))
	return a.show(w, r, status, "resend", frame{Title: title, Nav: "/deliveries", Help: "help.resend", Body: v})
}

// resendView reads what the form said, or what an address says that fills it.
func (a *Admin) resendView(l *locale, d *store.Delivery, f url.Values) resendView {
	now := a.opt.Now()
	v := resendView{D: d, Destination: f.Get("destination"), Reason: visible(f.Get("reason"), false), Passthrough: f.Get("signature") == "passthrough",
		AsNew: f.Get("as_new") == "1", MayNew: a.opt.NewKey != nil, Back: safePath(f.Get("back"))}
	if v.Back == "/" {
		v.Back = "/deliveries/" + strconv.FormatInt(d.ID, 10)
	}
	if len(d.Jobs) > 1 {
		v.Destinations = append(v.Destinations, option{"", l.T("resend.all"), v.Destination == ""})
	}
	var names []string
	for i := range d.Jobs {
		j := &d.Jobs[i]
		chosen := v.Destination == "" || v.Destination == j.Destination
		v.Destinations = append(v.Destinations, option{j.Destination, j.Destination, chosen && (v.Destination != "" || len(d.Jobs) == 1)})
		if !chosen {
			continue
		}
		names = append(names, j.Destination)
		v.Running = v.Running || j.State == store.Leased
		v.Delivered = v.Delivered || j.State == store.Delivered
		if j.State == store.Queued && j.DueAt.After(now) && v.Planned == "" {
			v.Planned = l.at(j.DueAt, now, clockFor(j.DueAt, now))
		}
	}
	v.Names = strings.Join(names, ", ")
	v.Button = l.T("resend.button", v.Names)
	v.OptionsOpen = v.AsNew || v.Passthrough || v.Reason != ""
	return v
}

func (a *Admin) resend(w http.ResponseWriter, r *http.Request) error {
	ctx, l := r.Context(), a.localeOf(r)
	d, err := a.deliveryOf(r)
	if err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	view := a.resendView(l, &d, r.PostForm)
	if view.AsNew && strings.TrimSpace(view.Reason) == "" {
		view.Error = l.T("resend.needs_reason")
		return a.showResend(w, r, http.StatusUnprocessableEntity, view)
	}
	changes, stop := a.hub.watch(d.ID)
	defer stop()
	done, err := a.doResend(ctx, &d, store.Resend{Destination: view.Destination, AsNew: view.AsNew, Passthrough: view.Passthrough,
		Reason: strings.TrimSpace(r.PostForm.Get("reason")), By: actor(r, visitOf(ctx).grant)})
	if key := actError(err); key != "" {
		view.Error = l.T(key)
		return a.showResend(w, r, http.StatusConflict, view)
	}
	if err != nil {
		return err
	}
	if len(done.Jobs) > 0 && !view.AsNew {
		a.await(ctx, changes, done.Jobs[0], d.ID)
	}
	to := url.Values{}
	if len(done.Jobs) > 0 {
		to.Set("resent", strconv.FormatInt(done.Jobs[0], 10))
	}
	if back, err := url.Parse(view.Back); err == nil && back.Query().Has("from") {
		to.Set("from", back.Query().Get("from"))
	}
	a.redirect(w, r, "/deliveries/"+strconv.FormatInt(done.Delivery, 10)+"?"+to.Encode())
	return nil
}

// doResend is the one way in which pages and API queue a delivery again.
func (a *Admin) doResend(ctx context.Context, d *store.Delivery, s store.Resend) (store.Resent, error) {
	s.Delivery, s.At = d.ID, a.opt.Now().UTC()
	if s.AsNew {
		if a.opt.NewKey == nil {
			return store.Resent{}, errAbsent
		}
		s.NewKeys = func(eventID, destination string) string { return a.opt.NewKey(d.Source, eventID, destination) }
	}
	if s.Destination != "" && !slices.ContainsFunc(d.Jobs, func(j store.Job) bool { return j.Destination == s.Destination }) {
		return store.Resent{}, errNoJob
	}
	done, err := a.opt.Operator.Resend(ctx, s)
	if err != nil {
		return done, err
	}
	a.opt.Wake(destinationsOf(d, s.Destination))
	a.Changed(done.Delivery)
	return done, nil
}

// errNoJob reports that a delivery has no job for a destination.
var errNoJob = errors.New("admin: the delivery does not go to that destination")

func destinationsOf(d *store.Delivery, only string) []string {
	var out []string
	for i := range d.Jobs {
		if only == "" || only == d.Jobs[i].Destination {
			out = append(out, d.Jobs[i].Destination)
		}
	}
	return out
}

// actError is the key of the words for an act that is not possible now.
func actError(err error) string {
	switch {
	case errors.Is(err, store.ErrRunning):
		return "resend.running"
	case errors.Is(err, store.ErrPayloadGone):
		return "resend.gone"
	case errors.Is(err, store.ErrState):
		return "resend.state"
	case errors.Is(err, errNoJob):
		return "resend.no_job"
	}
	return ""
}

// await waits until the job has been tried, at most resendWait.
func (a *Admin) await(ctx context.Context, changes <-chan struct{}, job, delivery int64) {
	ctx, cancel := context.WithTimeout(ctx, resendWait)
	defer cancel()
	for {
		d, err := a.opt.Archive.Delivery(ctx, delivery)
		if err != nil {
			return
		}
		i := slices.IndexFunc(d.Jobs, func(j store.Job) bool { return j.ID == job })
		if i < 0 || d.Jobs[i].State != store.Leased && d.Jobs[i].Spent > 0 || d.Jobs[i].State == store.Delivered {
			return
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return
		}
	}
}

// confirmView is a page that says what will happen before it happens.
type confirmView struct {
	Title, Text string
	Lines       []string
	Button      string
	Danger      bool
	Back        string
	Error       string
	Hidden      []option
	NeedReason  bool
	Reason      string
	Count       int64
}

func (a *Admin) confirm(w http.ResponseWriter, r *http.Request, status int, nav string, v confirmView) error {
	return a.show(w, r, status, "confirm", frame{Title: v.Title, Nav: nav, Help: "help.confirm", Body: v})
}

func (a *Admin) cancelView(l *locale, d *store.Delivery) confirmView {
	n := "#" + strconv.FormatInt(d.ID, 10)
	v := confirmView{Title: l.T("cancel.title", n), Text: l.T("cancel.text"), Button: l.T("cancel.button", n), Danger: true,
		Back: "/deliveries/" + strconv.FormatInt(d.ID, 10)}
	for i := range d.Jobs {
		if s := d.Jobs[i].State; s == store.Queued || s == store.Dead {
			v.Lines = append(v.Lines, d.Jobs[i].Destination+": "+l.T("state."+stateWords[s]))
		}
	}
	return v
}

func (a *Admin) cancelForm(w http.ResponseWriter, r *http.Request) error {
	d, err := a.deliveryOf(r)
	if err != nil {
		return err
	}
	return a.confirm(w, r, http.StatusOK, "/deliveries", a.cancelView(a.localeOf(r), &d))
}

func (a *Admin) cancel(w http.ResponseWriter, r *http.Request) error {
	ctx, l := r.Context(), a.localeOf(r)
	d, err := a.deliveryOf(r)
	if err != nil {
		return err
	}
	n, err := a.opt.Operator.Cancel(ctx, d.ID, "", actor(r, visitOf(ctx).grant), a.opt.Now().UTC())
	if errors.Is(err, store.ErrState) {
		v := a.cancelView(l, &d)
		v.Error = l.T("cancel.nothing")
		return a.confirm(w, r, http.StatusConflict, "/deliveries", v)
	}
	if err != nil {
		return err
	}
	a.Changed(d.ID)
	visitOf(ctx).flash(ctx, "ok", l.N("cancel.done", int64(n)))
	a.redirect(w, r, "/deliveries/"+strconv.FormatInt(d.ID, 10))
	return nil
}

func (a *Admin) releaseForm(w http.ResponseWriter, r *http.Request) error {
	d, err := a.deliveryOf(r)
	if err != nil {
		return err
	}
	return a.confirm(w, r, http.StatusOK, "/deliveries", a.releaseView(a.localeOf(r), &d))
}

func (a *Admin) releaseView(l *locale, d *store.Delivery) confirmView {
	n := "#" + strconv.FormatInt(d.ID, 10)
	return confirmView{Title: l.T("release.title", n), Text: l.T("release.text"), Button: l.T("release.button", n),
		Back: "/deliveries/" + strconv.FormatInt(d.ID, 10), Lines: []string{l.T("release.why", visible(d.Quarantine, false))}}
}

func (a *Admin) release(w http.ResponseWriter, r *http.Request) error {
	ctx, l := r.Context(), a.localeOf(r)
	d, err := a.deliveryOf(r)
	if err != nil {
		return err
	}
	if a.opt.Release == nil {
		return errAbsent
	}
	ok, dup, err := a.opt.Release(ctx, d.Source, []int64{d.ID}, false, actor(r, visitOf(ctx).grant))
	if errors.Is(err, store.ErrState) || err == nil && ok+dup == 0 {
		v := a.releaseView(l, &d)
		v.Error = l.T("release.still")
		return a.confirm(w, r, http.StatusConflict, "/deliveries", v)
	}
	if err != nil {
		return err
	}
	a.Changed(d.ID)
	key := "release.done"
	if dup > 0 {
		key = "release.duplicate"
	}
	visitOf(ctx).flash(ctx, "ok", l.T(key))
	a.redirect(w, r, "/deliveries/"+strconv.FormatInt(d.ID, 10))
	return nil
}
