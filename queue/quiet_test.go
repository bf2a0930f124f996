package queue

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/queue/forward"
	"acuse/store"
)

var discard = slog.New(slog.DiscardHandler)

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestP9 reads the log at debug level and the metrics of everything that can go
// wrong with jobs that are full of secrets.
func TestP9LogsAndMetricsHoldNoPayloadAndNoSecret(t *testing.T) {
	t.Parallel()
	app, err := forward.New(forward.Options{URL: "http://user:case-SECRET-C@127.0.0.1:1/hook?key=case-SECRET-D", Headers: map[string]string{"X": "case-SECRET-E"}})
	if err != nil {
		t.Fatal(err)
	}
	log, set := &buffer{}, metrics.NewSet()
	queued, dead := make(chan int64, 100), make(chan struct{}, 10)
	jobs := newShelf()
	q := New(Options{Jobs: jobs, Metrics: set, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Changed: func(d int64) { queued <- d }, Died: func() { dead <- struct{}{} }})
	once := Retry{Schedule: []time.Duration{}}
	q.SetLanes([]Lane{
		{Name: "app", Sender: app, Retry: once},
		{Name: "ok", Sender: answers(200)},
		{Name: "later", Sender: answers(503)},
		{Name: "boom", Sender: sender(func(context.Context, store.Lease) store.Result { panic("case-SECRET-F") }), Retry: once},
		{Name: "index", Sender: sender(func(_ context.Context, l store.Lease) store.Result {
			return store.Result{Status: int(l.Payload.Body[len(l.Payload.Body)])}
		}), Retry: once},
	})
	for id, d := range []string{"app", "ok", "later", "boom", "index"} {
		jobs.add(int64(id), d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- q.Run(ctx, context.WithoutCancel(ctx)) }()
	for range 3 {
		<-dead
	}
	for range 10 { // a lease and a settlement each
		<-queued
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var figures bytes.Buffer
	set.WritePrometheus(&figures)
	for name, text := range map[string]string{"log": log.String(), "metrics": figures.String()} {
		if strings.Contains(text, "SECRET") {
			t.Errorf("the %s holds a secret:\n%s", name, text)
		}
	}
	for _, want := range []string{"sender panicked", "index out of range", "level=DEBUG", "class=refused", "delivery=10000"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	for _, want := range []string{
		`acuse_attempts_total{destination="ok",outcome="delivered"} 1`, `acuse_attempts_total{destination="later",outcome="failed"} 1`,
		`acuse_attempts_total{destination="app",outcome="dead"} 1`, `acuse_receipt_to_delivered_seconds_count 1`, `acuse_attempts_running{destination="ok"} 0`,
	} {
		if !strings.Contains(figures.String(), want) {
			t.Errorf("the metrics lack %q:\n%s", want, figures.String())
		}
	}
}
