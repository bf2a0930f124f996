package web

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"acuse/provider"
	"acuse/store"
)

// ErrSecret is the error of a recheck whose secret cannot be one of this source. Its text
// says why and hides the secret.
var ErrSecret = errors.New("the secret is of no use here")

// Refused is what a Rechecker needs of the store.
type Refused interface {
	RejectionList(ctx context.Context, source string, before int64, limit int) ([]store.Rejection, error)
	RejectionByID(ctx context.Context, id int64) (store.Rejection, error)
	RemoveRejection(ctx context.Context, id int64) error
	Audit(ctx context.Context, e store.AuditEntry) error
}

// Recheck asks for the refused requests of a source to be judged again.
type Recheck struct {
	Source    string
	Secret    string        // tried besides the configured ones; it is kept nowhere
	Tolerance time.Duration // instead of the source's; 0: the source's
	Deliver   bool          // let in what passes
	By        store.Actor
}

// Rechecked says what became of them.
type Rechecked struct {
	Checked     int // kept with their body
	WouldVerify int // of these
	Delivered   int // of these: let in now
	Duplicates  int // known already
	Quarantined int // verified, and not identified
}

// Rechecker judges refused requests again.
type Rechecker struct {
	edge  *Edge
	store Refused
	mu    sync.Mutex // one at a time: each may judge two thousand requests
}

// NewRechecker makes one that judges with the edge's present sources.
func NewRechecker(e *Edge, s Refused) *Rechecker { return &Rechecker{edge: e, store: s} }

// Recheck judges the kept rejections of a source again, oldest first: with the config of
// now, and by the clock of their arrival, since what was fresh then is old by now. What
// is let in takes the way of every accepted request; it keeps the time at which it
// came, and its key and its jobs count from now. Its rejection is taken out after that,
// so a crash in between leaves one that is a duplicate the next time.
//
// The error is store.ErrNotFound for a source that there is not, an ErrSecret, or one of
// the store; then the counts say how far it came.
func (r *Rechecker) Recheck(ctx context.Context, q Recheck) (done Rechecked, err error) {
	src := (*r.edge.sources.Load())[q.Source]
	if src == nil {
		return done, fmt.Errorf("recheck %s: %w", q.Source, store.ErrNotFound)
	}
	c := src.Checker
	if q.Secret != "" || q.Tolerance != 0 {
		if src.Besides == nil {
			return done, fmt.Errorf("%w: this source takes no other", ErrSecret)
		}
		if c, err = src.Besides(q.Secret, q.Tolerance); err != nil {
			return done, fmt.Errorf("%w: %w", ErrSecret, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ids, err := r.kept(ctx, q.Source)
	for _, id := range slices.Backward(ids) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			break
		}
		err = r.one(ctx, &q, src, c, id, &done)
	}
	return done, errors.Join(err, r.store.Audit(context.WithoutCancel(ctx), store.AuditEntry{
		At: r.edge.now().UTC(), By: q.By, Act: "recheck", Subject: q.Source, Reason: done.summary(&q),
	}))
}

func (d *Rechecked) summary(q *Recheck) string {
	text := fmt.Sprintf("%d checked, %d would verify", d.Checked, d.WouldVerify)
	if q.Deliver {
		text += fmt.Sprintf(", %d delivered, %d duplicates, %d quarantined", d.Delivered, d.Duplicates, d.Quarantined)
	}
	if q.Secret != "" {
		text += "; with another secret"
	}
	if q.Tolerance != 0 {
		text += "; with a tolerance of " + q.Tolerance.String()
	}
	return text
}

// kept lists the rejections of a source, newest first.
func (r *Rechecker) kept(ctx context.Context, source string) (ids []int64, err error) {
	for before := int64(0); ; {
		list, err := r.store.RejectionList(ctx, source, before, 500)
		if err != nil || len(list) == 0 {
			return ids, err
		}
		for _, row := range list {
			ids, before = append(ids, row.ID), row.ID
		}
	}
}

// one judges a rejection, and lets it in when that is asked for.
func (r *Rechecker) one(ctx context.Context, q *Recheck, src *source, c Checker, id int64, done *Rechecked) error {
	row, err := r.store.RejectionByID(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil // made room for another one meanwhile
	}
	if err != nil {
		return err
	}
	if row.Body == nil || row.Method != http.MethodPost {
		return nil
	}
	done.Checked++
	v, err := r.judge(ctx, src, c, &row)
	if err != nil || v == nil {
		return err
	}
	done.WouldVerify++
	if !q.Deliver {
		return nil
	}
	if q.Secret != "" {
		v.result.Slot = max(v.result.Slot-1, 0) // the one given is none of the configured ones
	}
	return r.letIn(context.WithoutCancel(ctx), q, v, &row, done)
}

// judge is the edge's own judgement over a kept request, at the time it came in. nil says
// that it does not pass, or is no event.
func (r *Rechecker) judge(ctx context.Context, src *source, c Checker, row *store.Rejection) (*visit, error) {
	h, err := store.DecodeHeader(row.Header)
	if err != nil {
		return nil, err
	}
	h = r.edge.rejects.restoreHeader(h, hiddenHeaders(src.Checker), c)
	target := r.edge.rejects.restoreTarget(row.Target, src.Checker.TokenQuery(), c)
	_, _, rest := route(pathOf(target))
	remote, _ := netip.ParseAddr(row.Remote) // the zero Addr for a socket
	v := &visit{start: time.Now(), now: row.FirstAt, source: src, rest: rest, remote: remote}
	v.request = provider.Request{
		Method: row.Method, Target: target, URL: src.url(rest, target), Host: h.Get("Host"), Header: h, Body: row.Body, Remote: remote, Context: ctx,
	}
	if len(src.AllowIPs) > 0 && !within(remote, src.AllowIPs) {
		return nil, nil
	}
	v.result, err = c.Receive(&v.request, row.FirstAt)
	if err != nil || v.result.Handshake != nil || v.result.Captured != "" || v.result.Empty || v.admissible() != nil {
		return nil, nil
	}
	return v, nil
}

// letIn accepts a request that passes now, notes it in the history of its deliveries, and
// takes its rejection out.
func (r *Rechecker) letIn(ctx context.Context, q *Recheck, v *visit, row *store.Rejection, done *Rechecked) (err error) {
	v.makeID = func(i int) string { return madeID(row, i) }
	a := r.edge.arrival(v)
	a.At, a.AckMicros = r.edge.now().UTC(), 0
	if v.outcomes, err = r.edge.inbox.Accept(ctx, a); err != nil {
		return err
	}
	r.edge.stored(v, http.StatusOK)
	for _, o := range v.outcomes {
		switch o.Kind {
		case store.Duplicate:
			done.Duplicates++
			continue
		case store.Quarantined:
			done.Quarantined++
		default:
			done.Delivered++
		}
		e := store.AuditEntry{At: a.At, By: q.By, Act: "recheck", Delivery: o.Delivery, Subject: row.Source, Reason: "refused on arrival: " + row.Reason}
		if err := r.store.Audit(ctx, e); err != nil {
			return err
		}
	}
	return r.store.RemoveRejection(ctx, row.ID)
}

// madeID is the id of an event whose sender gives none. It depends on the rejection alone:
// let in again after a crash it is a duplicate.
func madeID(row *store.Rejection, item int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %d", row.Source, row.ID, row.FirstAt.UnixMilli(), item))
	return "acuse-" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])[:26]
}
