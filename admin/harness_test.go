package admin

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"acuse/access"
	"acuse/store"
)

// serveHarness serves a full and an empty dashboard on loopback and says where, in
// one line of JSON, until standard input closes. A small worker takes what is resent
// to app, so that a browser sees a resend end.
func serveHarness(addr string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "acuse-harness")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temp folder
	full, err := newWorld(ctx, dir+"/full", time.Now, "")
	if err != nil {
		return err
	}
	if err := full.seed(ctx, 240); err != nil {
		return err
	}
	if err := full.users.Create(ctx, ownerName, ownerPassword, access.RoleOwner); err != nil {
		return err
	}
	empty, err := newWorld(ctx, dir+"/empty", time.Now, "")
	if err != nil {
		return err
	}
	token, _, err := empty.users.NewSetupLink(ctx)
	if err != nil {
		return err
	}
	go full.work(ctx)
	out := map[string]any{"name": ownerName, "password": ownerPassword, "deliveries": full.id, "rejections": full.rejected}
	for name, h := range map[string]http.Handler{"full": full, "empty": empty} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
		defer func() { _ = srv.Close() }() // the process ends
		go func() { _ = srv.Serve(l) }()
		out[name] = "http://" + l.Addr().String()
	}
	out["setup"] = out["empty"].(string) + "/setup?t=" + token
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// ServeHTTP lets a browser test make an event arrive while a page is open.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/harness/arrive":
	case "/harness/handshake":
		w.mu.Lock()
		w.captured = CaptureState{Value: "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl", From: "203.0.113.24", At: w.now()}
		w.mu.Unlock()
		rw.WriteHeader(http.StatusNoContent)
		return
	default:
		w.admin.ServeHTTP(rw, r)
		return
	}
	id, err := w.accept(r.Context(), arrival{source: "stripe", provider: "stripe", id: "evt_live_" + r.URL.Query().Get("n"), typ: "invoice.paid", at: w.now(),
		body: []byte(invoice), to: []string{"app"}, slot: 1})
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	w.admin.Changed(id)
	rw.WriteHeader(http.StatusNoContent)
}

// work delivers what becomes due for app, 80 ms each.
func (w *world) work(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		ls, err := w.db.Lease(ctx, store.LeaseQuery{Destination: "app", Owner: "n1/4f2a/http", Max: 1, TTL: time.Minute, Now: w.now()})
		if err != nil || len(ls) == 0 {
			continue
		}
		w.admin.Changed(ls[0].Delivery.ID)
		time.Sleep(80 * time.Millisecond)
		_ = w.db.Settle(ctx, store.Settlement{Job: ls[0].Job, Token: ls[0].Token, At: w.now(), State: store.Delivered, Result: good})
		w.admin.Changed(ls[0].Delivery.ID)
	}
}
