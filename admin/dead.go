package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"acuse/store"
)

// groupID names a group of dead letters in addresses: the same for the same
// destination, reason, status and class, on every machine.
func groupID(g store.DeadGroup) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %d %q", g.Destination, g.Reason, g.Status, g.Class))
	return hex.EncodeToString(sum[:6])
}

func (a *Admin) groupOf(ctx context.Context, id string) (store.DeadGroup, error) {
	groups, err := a.opt.Archive.DeadGroups(ctx)
	if err != nil {
		return store.DeadGroup{}, err
	}
	for _, g := range groups {
		if groupID(g) == id {
			return g, nil
		}
	}
	return store.DeadGroup{}, store.ErrNotFound
}

func inGroup(j *store.Job, g store.DeadGroup) bool {
	return j.State == store.Dead && j.Destination == g.Destination && j.Reason == g.Reason && j.LastStatus == g.Status && j.LastClass == g.Class
}

// groupLimit is how many of a group one act takes; what is over stays and is said.
const groupLimit = 1000

// members reads the deliveries of a group, newest first, at most n.
func (a *Admin) members(ctx context.Context, g store.DeadGroup, n int) ([]store.Delivery, error) {
	f := store.DeliveryFilter{State: store.StateDead, Destination: g.Destination, Limit: min(500, max(n, 100))}
	var out []store.Delivery
	for {
		list, next, err := a.opt.Archive.Deliveries(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			for i := range d.Jobs {
				if inGroup(&d.Jobs[i], g) {
					if out = append(out, d); len(out) == n {
						return out, nil
					}
				}
			}
		}
		if next == 0 {
			return out, nil
		}
		f.Before = next
	}
}

type deadGroupView struct {
	ID          string
	Destination string
	Reason      string
	Answer      string
	Jobs        int64
	First, Last time.Time
	Hint        string
	Trial       bool // the trial is the main button
	Rows        []row
	All         string // address of the list of all of them
}

type deadView struct {
	Groups []deadGroupView
	May    bool
}

// deadRows is how many of a group stand on the page.
const deadRows = 5

func (a *Admin) dead(w http.ResponseWriter, r *http.Request) error {
	ctx, l, now := r.Context(), a.localeOf(r), a.opt.Now()
	groups, err := a.opt.Archive.DeadGroups(ctx)
	if err != nil {
		return err
	}
	hosts := map[string]string{}
	for _, d := range a.opt.Destinations() {
		hosts[d.Name] = hostOf(d.URL)
	}
	v := deadView{May: visitOf(ctx).grant.May("resend")}
	budgets := a.budgets()
	for _, g := range groups {
		view := deadGroupView{ID: groupID(g), Destination: g.Destination, Reason: l.T("reason." + reasonWords[g.Reason]),
			Answer: l.class(g.Status, g.Class), Jobs: g.Jobs, First: g.First, Last: g.Last, Trial: g.Jobs > 5,
			Hint: l.hint(g.Status, g.Class, hosts[g.Destination]),
			All:  "/deliveries?destination=" + url.QueryEscape(g.Destination) + "&state=dead"}
		list, err := a.members(ctx, g, deadRows)
		if err != nil {
			return err
		}
		for i := range list {
			view.Rows = append(view.Rows, a.row(l, &list[i], budgets, now))
		}
		v.Groups = append(v.Groups, view)
	}
	return a.show(w, r, http.StatusOK, "dead", frame{Title: l.T("nav.dead"), Nav: "/dead", Help: "help.dead", Body: v})
}

// act is what is done to all letters of a group.
type act string

const (
	actResend act = "resend"
	actCancel act = "cancel"
)

func (a *Admin) deadConfirm(l *locale, g store.DeadGroup, what act, trial bool) confirmView {
	n := g.Jobs
	if trial {
		n = 1
	}
	v := confirmView{Back: "/dead", Count: n, Danger: what == actCancel, NeedReason: what == actResend,
		Title: l.N("dead."+string(what)+".title", n, g.Destination), Text: l.T("dead." + string(what) + ".text"),
		Button: l.N("dead."+string(what)+".button", n, g.Destination)}
	if trial {
		v.Lines = append(v.Lines, l.T("dead.trial", g.Jobs))
		v.Hidden = append(v.Hidden, option{Label: "trial", Value: "1"})
	}
	if n > groupLimit {
		v.Lines = append(v.Lines, l.T("dead.limit", groupLimit))
	}
	return v
}

func (a *Admin) deadForm(what act) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		g, err := a.groupOf(r.Context(), r.PathValue("group"))
		if err != nil {
			return err
		}
		v := a.deadConfirm(a.localeOf(r), g, what, r.URL.Query().Get("trial") == "1")
		v.Reason = visible(r.URL.Query().Get("reason"), false)
		return a.confirm(w, r, http.StatusOK, "/dead", v)
	}
}

func (a *Admin) deadAct(what act) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, l := r.Context(), a.localeOf(r)
		g, err := a.groupOf(ctx, r.PathValue("group"))
		if err != nil {
			return err
		}
		if err := r.ParseForm(); err != nil {
			return errBadForm
		}
		n := groupLimit
		if r.PostForm.Get("trial") == "1" {
			n = 1
		}
		done, left, first, err := a.actOn(ctx, g, what, n, r.PostForm.Get("reason"), actor(r, visitOf(ctx).grant))
		if err != nil {
			return err
		}
		role, text := "ok", l.N("dead."+string(what)+".done", int64(done), g.Destination)
		if left > 0 {
			role, text = "wait", text+" "+l.N("many.left", int64(left))
		}
		visitOf(ctx).flash(ctx, role, text)
		if n == 1 && first != 0 {
			a.redirect(w, r, "/deliveries/"+strconv.FormatInt(first, 10))
			return nil
		}
		a.redirect(w, r, "/dead")
		return nil
	}
}

// actOn resends or cancels up to n dead letters of a group, each by itself; left are
// those that could not be.
func (a *Admin) actOn(ctx context.Context, g store.DeadGroup, what act, n int, reason string, by store.Actor) (done, left int, first int64, err error) {
	list, err := a.members(ctx, g, n)
	if err != nil {
		return 0, 0, 0, err
	}
	for i := range list {
		d := &list[i]
		if what == actResend {
			_, err = a.doResend(ctx, d, store.Resend{Destination: g.Destination, Reason: reason, By: by})
		} else {
			_, err = a.opt.Operator.Cancel(ctx, d.ID, g.Destination, by, a.opt.Now().UTC())
			a.Changed(d.ID)
		}
		switch {
		case err == nil:
			if done++; first == 0 {
				first = d.ID
			}
		case actError(err) != "" || errors.Is(err, store.ErrNotFound):
			left++
		default:
			return done, left, first, err
		}
	}
	return done, left, first, nil
}
