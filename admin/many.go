package admin

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"acuse/store"
)

// readIDs are the deliveries that were ticked in a list, at most a page of them.
func readIDs(f url.Values) []int64 {
	var out []int64
	for _, s := range f["id"] {
		if id, ok := readID(s); ok && len(out) < pageSize {
			out = append(out, id)
		}
	}
	return out
}

// resendManyForm says which deliveries would be sent again, and where.
func (a *Admin) resendManyForm(w http.ResponseWriter, r *http.Request) error {
	v, err := a.manyView(r, r.URL.Query())
	if err != nil {
		return err
	}
	return a.confirm(w, r, http.StatusOK, "/deliveries", v)
}

func (a *Admin) manyView(r *http.Request, f url.Values) (confirmView, error) {
	l, ids := a.localeOf(r), readIDs(f)
	v := confirmView{Back: safePath(f.Get("back")), Count: int64(len(ids))}
	if v.Back == "/" {
		v.Back = "/deliveries"
	}
	jobs, to := int64(0), map[string]int64{}
	var names []string
	for _, id := range ids {
		d, err := a.opt.Archive.Delivery(r.Context(), id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return v, err
		}
		v.Hidden = append(v.Hidden, option{Value: strconv.FormatInt(id, 10)})
		for i := range d.Jobs {
			dst := d.Jobs[i].Destination
			if to[dst] == 0 {
				names = append(names, dst)
			}
			to[dst]++
			jobs++
		}
	}
	n := int64(len(v.Hidden))
	v.Title, v.Text, v.Button = l.N("many.title", n), l.T("many.text"), l.N("many.button", n)
	for _, name := range names {
		v.Lines = append(v.Lines, l.N("many.line", to[name], name))
	}
	if n == 0 {
		v.Error = l.T("many.none")
	}
	return v, nil
}

// resendMany queues each again by itself: one that cannot be sent now does not hold
// the others, and is counted.
func (a *Admin) resendMany(w http.ResponseWriter, r *http.Request) error {
	ctx, l := r.Context(), a.localeOf(r)
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	ids := readIDs(r.PostForm)
	by, reason := actor(r, visitOf(ctx).grant), r.PostForm.Get("reason")
	queued, left := 0, 0
	for _, id := range ids {
		d, err := a.opt.Archive.Delivery(ctx, id)
		if err == nil {
			_, err = a.doResend(ctx, &d, store.Resend{Reason: reason, By: by})
		}
		switch {
		case err == nil:
			queued++
		case actError(err) != "" || errors.Is(err, store.ErrNotFound):
			left++
		default:
			return err
		}
	}
	role, text := "ok", l.N("many.done", int64(queued))
	if left > 0 {
		role, text = "wait", text+" "+l.N("many.left", int64(left))
	}
	visitOf(ctx).flash(ctx, role, text)
	back := safePath(r.PostForm.Get("back"))
	if back == "/" {
		back = "/deliveries"
	}
	a.redirect(w, r, back)
	return nil
}
