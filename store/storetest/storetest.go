// Package storetest is the suite that every storage engine passes. A case states one
// promise of package store, or of the design, as a sentence; time is an argument, so
// nothing sleeps.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"acuse/store"
)

// Opener opens the store that lives in dir and makes it when there is none.
type Opener func(dir string) (store.Store, error)

// Background is the context of an Opener, which outlives the test's own.
var Background = context.Background()

// Main is the engine's TestMain: it runs the tests, or is the child that they kill.
func Main(m *testing.M, open Opener) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(child(open, dir, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// test is one case; promise is "P1" and so on, or "" for the rest of the contract.
type test struct {
	promise, name string
	run           func(e *env)
}

func all() (list []test) {
	for _, part := range [][]test{acceptTests, dedupTests, jobTests, leaseTests, operatorTests, quarantineTests, archiveTests, recordTests, lifeTests, concurrentTests, crashTests, clockTests, retentionTests, orderTests, versionTests, outageTests} {
		list = append(list, part...)
	}
	return list
}

// Run runs every case that belongs to no numbered promise.
func Run(t *testing.T, open Opener) { run(t, open, "") }

// Promise runs the cases of one promise of the design: "P1". The engine's package has a
// test for each, so that they are found by name.
func Promise(t *testing.T, open Opener, promise string) { run(t, open, promise) }

// Promises are those with cases here: an engine's tests must call each.
var Promises = []string{"P1", "P2", "P3", "P4", "P6", "P8"}

func run(t *testing.T, open Opener, promise string) {
	var list []test
	for _, c := range all() {
		if c.promise == promise {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		t.Fatalf("no case for %q", promise)
	}
	runList(t, open, list)
}

func runList(t *testing.T, open Opener, list []test) {
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := &env{T: t, dir: t.TempDir(), open: open}
			e.start()
			c.run(e)
		})
	}
}

// env is a store under test and what the cases do with it.
type env struct {
	*testing.T
	s    store.Store
	dir  string
	open Opener
}

func (e *env) start() {
	e.Helper()
	s, err := e.open(e.dir)
	if err != nil {
		e.Fatal(err)
	}
	e.s = s
	e.Cleanup(func() {
		if err := s.Close(); err != nil && e.s == s {
			e.Error(err)
		}
	})
}

// reopen is an orderly restart.
func (e *env) reopen() {
	e.Helper()
	e.ok(e.s.Close())
	e.start()
}

// t0 is when the cases begin.
var t0 = time.UnixMilli(1767225600123).UTC()

func at(d time.Duration) time.Time { return t0.Add(d) }

// arrival is a request of a source with one event for each id, each with a job for app.
func arrival(source string, ids ...string) store.Arrival {
	a := store.Arrival{
		Source: source, Provider: "stripe", ReceivedAt: t0, Remote: "203.0.113.7", Method: "POST", Target: "/in/" + source + "?x=1",
		Header: []byte(`{"Content-Type":["application/json"]}`), Body: []byte(`{"ids":"` + strings.Join(ids, " ") + `"}`), Slot: 1, AckMicros: 250,
	}
	for i, id := range ids {
		e := event(source, id, "app")
		if len(ids) > 1 {
			e.Part = i
		}
		a.Events = append(a.Events, e)
	}
	return a
}

func event(source, id string, destinations ...string) store.Event {
	e := store.Event{ID: id, Type: "invoice.paid", Resource: "in_1", Part: -1, Size: 10, Digest: 1, Window: 7 * 24 * time.Hour}
	for _, d := range destinations {
		e.Jobs = append(e.Jobs, store.NewJob{Destination: d, Key: source + ":" + id + ":" + d, State: store.Queued})
	}
	return e
}

// to replaces the destinations of an arrival's events.
func to(a store.Arrival, destinations ...string) store.Arrival {
	for i := range a.Events {
		a.Events[i].Jobs = event(a.Source, a.Events[i].ID, destinations...).Jobs
	}
	return a
}

func later(a store.Arrival, d time.Duration) store.Arrival {
	a.ReceivedAt = t0.Add(d)
	return a
}

func revive(a store.Arrival) store.Arrival {
	for i := range a.Events {
		a.Events[i].Revive = true
	}
	return a
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) is(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("got error %v, want %v", err, want)
	}
}

func same[T comparable](e *env, what string, got, want T) {
	e.Helper()
	if got != want {
		e.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func (e *env) accept(a store.Arrival) []store.Outcome {
	e.Helper()
	out, err := e.s.Accept(e.Context(), a)
	e.ok(err)
	same(e, "outcomes", len(out), len(a.Events))
	return out
}

// accepted accepts a request of one event, which must be new, and returns its number.
func (e *env) accepted(a store.Arrival) int64 {
	e.Helper()
	out := e.accept(a)[0]
	same(e, "kind of outcome", out.Kind, store.Accepted)
	return out.Delivery
}

func (e *env) query(destination string, now time.Time) store.LeaseQuery {
	return store.LeaseQuery{Destination: destination, Owner: "n1/run1/http", Max: 10, TTL: time.Minute, Now: now}
}

func (e *env) leases(q store.LeaseQuery) []store.Lease {
	e.Helper()
	list, err := e.s.Lease(e.Context(), q)
	e.ok(err)
	return list
}

// lease leases the one job that must be due for app.
func (e *env) lease(now time.Time) store.Lease {
	e.Helper()
	list := e.leases(e.query("app", now))
	if len(list) != 1 {
		e.Fatalf("leased %d jobs, want 1", len(list))
	}
	return list[0]
}

func (e *env) idle(destination string, now time.Time) {
	e.Helper()
	if list := e.leases(e.query(destination, now)); len(list) > 0 {
		e.Fatalf("leased job %d, want none", list[0].Job)
	}
}

// outcome is a settlement of a lease: 200 for Delivered, 500 for the others.
func outcome(l store.Lease, state store.JobState, at time.Time) store.Settlement {
	s := store.Settlement{Job: l.Job, Token: l.Token, At: at, State: state, Result: store.Result{Outcome: store.Failed, Status: 500, Class: "status", Error: "500", Duration: 30 * time.Millisecond}}
	switch state {
	case store.Delivered:
		s.Result = store.Result{Outcome: store.Succeeded, Status: 200, Duration: 20 * time.Millisecond}
	case store.Dead:
		s.Reason = store.Exhausted
	case store.Queued:
		s.Due = at.Add(10 * time.Second)
	}
	return s
}

func (e *env) settle(l store.Lease, state store.JobState, at time.Time) {
	e.Helper()
	e.ok(e.s.Settle(e.Context(), outcome(l, state, at)))
}

// dead makes the one due job of app a dead letter.
func (e *env) dead(now time.Time) {
	e.Helper()
	e.settle(e.lease(now), store.Dead, now)
}

func (e *env) delivery(id int64) store.Delivery {
	e.Helper()
	d, err := e.s.Delivery(e.Context(), id)
	e.ok(err)
	return d
}

func (e *env) state(id int64, want store.DeliveryState) {
	e.Helper()
	same(e, fmt.Sprintf("state of #%d", id), e.delivery(id).State, want)
}

func (e *env) attempts(delivery int64) []store.Attempt {
	e.Helper()
	list, err := e.s.Attempts(e.Context(), delivery)
	e.ok(err)
	return list
}

func (e *env) list(f store.DeliveryFilter) []store.Delivery {
	e.Helper()
	list, _, err := e.s.Deliveries(e.Context(), f)
	e.ok(err)
	return list
}

func numbers(list []store.Delivery) (ids []int64) {
	for _, d := range list {
		ids = append(ids, d.ID)
	}
	return ids
}

func (e *env) totals() store.Totals {
	e.Helper()
	t, err := e.s.Totals(e.Context())
	e.ok(err)
	return t
}

// sound asks the full check.
func (e *env) sound() {
	e.Helper()
	problems, err := e.s.Check(e.Context(), true)
	e.ok(err)
	if len(problems) > 0 {
		e.Fatalf("check: %q", problems)
	}
}

var ana = store.Actor{Name: "ana", From: "192.0.2.1"}
