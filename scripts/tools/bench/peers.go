package main

import (
	"bytes"
	"crypto/hmac"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"acuse/scripts/tools/load"
)

// serveVerifyOnly is the yardstick: it reads the body, checks the signature and
// answers like acuse, and keeps nothing.
func serveVerifyOnly(addr string) {
	var n atomic.Int64
	h := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "body", http.StatusBadRequest)
			return
		}
		head := r.Header.Get("Stripe-Signature")
		t, _, _ := bytes.Cut([]byte(head), []byte(","))
		sec, err := strconv.ParseInt(string(bytes.TrimPrefix(t, []byte("t="))), 10, 64)
		at := time.Unix(sec, 0)
		if err != nil || time.Since(at).Abs() > 5*time.Minute || !hmac.Equal([]byte(head), []byte(load.Sign(body, at))) {
			http.Error(w, "signature", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"status":"accepted","delivery":`+strconv.FormatInt(n.Add(1), 10)+"}\n")
	}
	srv := &http.Server{Addr: addr, Handler: http.HandlerFunc(h), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(srv.ListenAndServe())
}

// serveApp is the app behind acuse in the end-to-end run: it reads and answers 204,
// and tells at /count how many requests it got.
func serveApp(addr string) {
	var n atomic.Int64
	h := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/count" {
			io.WriteString(w, strconv.FormatInt(n.Load(), 10))
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			n.Add(1)
			w.WriteHeader(http.StatusNoContent)
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal((&http.Server{Handler: http.HandlerFunc(h), ReadHeaderTimeout: 5 * time.Second}).Serve(l))
}
