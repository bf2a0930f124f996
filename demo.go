package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"acuse/access"
	"acuse/config"
	"acuse/demo"
	"acuse/provider"
	"acuse/store"
)

// errDemo reports that an order was missing or done twice.
var errDemo = errors.New("the demo found a fault")

// demoSources are the simulated providers, by source.
var demoSources = []string{"github", "standard-webhooks", "stripe", "telegram"}

// drainTime is how long the demo waits at its end for what is still queued.
const drainTime = 60 * time.Second

// runDemo shows the main job in a folder of its own: senders that sign, repeat and
// race, acuse, and an app that fails. It runs for d, or until ctx ends when d is 0,
// then prints what was counted.
func runDemo(ctx context.Context, d time.Duration, lang string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "acuse-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	begin := time.Now()
	app := &demo.App{Down: func(now time.Time) bool { // for 4 s in every 20
		return now.Sub(begin)%(20*time.Second) > 5*time.Second && now.Sub(begin)%(20*time.Second) < 9*time.Second
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	appServer := &http.Server{Handler: app, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	go appServer.Serve(l)
	defer appServer.Close()

	cfg, err := demoConfig(dir, l.Addr().String())
	if err != nil {
		return err
	}
	logFile, err := os.OpenFile(filepath.Join(dir, "acuse.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	s, err := newServer(ctx, cfg, newLog(logFile, cfg.Log))
	if err != nil {
		return err
	}
	app.Verify = s.demoVerify
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	up, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.run(serving, func() { close(up) }) }()
	select {
	case <-up:
	case err := <-ended:
		return err
	}
	words := demo.WordsOf(lang)
	say := func(key string, args ...any) { fmt.Fprintf(out, words[key]+"\n", args...) }
	say("folder", dir)
	report, err := s.play(ctx, d, app, "http://"+l.Addr().String()+"/webhooks", say)
	stop()
	if err = errors.Join(err, <-ended); err != nil {
		return err
	}
	report.Print(out, words)
	if !report.Good() {
		return errDemo
	}
	return nil
}

// demoConfig writes a configuration with fresh secrets and loads it as serve would.
func demoConfig(dir, app string) (*config.Config, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "name: demo\ndata_dir: ./data\nlisten: \"127.0.0.1:0\"\nadmin:\n  listen: \"127.0.0.1:0\"\nsources:\n")
	for _, name := range demoSources {
		secret := rand.Text()
		switch name {
		case "stripe":
			secret = "whsec_" + secret
		case "standard-webhooks":
			secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(secret))
		}
		fmt.Fprintf(&b, "  %s:\n    provider: %s\n    secrets: [%q]\n    deliver_to: [app]\n", name, name, secret)
	}
	fmt.Fprintf(&b, "destinations:\n  app:\n    url: http://%s/webhooks\n    concurrency: 8\n    timeout: 5s\n"+
		"    retry: {schedule: [1s, 1s, 1s, 2s, 2s, 2s, 3s, 3s, 3s, 5s, 5s]}\n", app)
	path := filepath.Join(dir, "acuse.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	cfg, _, err := config.Load(path, nil)
	return cfg, err
}

// demoVerify judges what the app was given as the provider's own library would: by
// the signature, made afresh for this attempt.
func (s *server) demoVerify(r *http.Request, body []byte) error {
	src := s.live.Load().sources[r.Header.Get("Acuse-Source")]
	if src == nil {
		return errors.New("unknown source")
	}
	_, err := src.checker.Receive(&provider.Request{Method: r.Method, Target: r.URL.RequestURI(), Header: r.Header, Body: body}, time.Now())
	return err
}

// play runs the senders and waits until the queue is empty.
func (s *server) play(ctx context.Context, d time.Duration, app *demo.App, appURL string, say func(key string, args ...any)) (demo.Report, error) {
	senders, err := s.demoSenders()
	if err != nil {
		return demo.Report{}, err
	}
	link, err := s.demoLink(ctx)
	if err != nil {
		return demo.Report{}, err
	}
	say("in", "http://"+s.publicAddr.String()+"/in/{"+strings.Join(demoSources, ",")+"}")
	say("app", appURL)
	say("dashboard", link)
	say("once")
	sending, stop := context.WithCancel(ctx)
	defer stop()
	if d > 0 {
		say("for", d)
		sending, stop = context.WithTimeout(ctx, max(d-d/3, time.Second))
		defer stop()
	} else {
		say("until")
	}
	var wg sync.WaitGroup
	faults := make(chan error, len(senders))
	for _, sender := range senders {
		wg.Go(func() { faults <- sender.Run(sending, 400*time.Millisecond) })
	}
	wg.Wait()
	say("drain")
	if err := s.drain(drainTime); err != nil {
		return demo.Report{}, err
	}
	delivered, dead, err := s.countStates()
	if err != nil {
		return demo.Report{}, err
	}
	close(faults)
	for err := range faults {
		if err != nil {
			return demo.Report{}, err
		}
	}
	return demo.Compare(senders, app.Tally(), delivered, dead), nil
}

func (s *server) demoSenders() ([]*demo.Sender, error) {
	var out []*demo.Sender
	sources := s.live.Load().sources
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		src := sources[name]
		types := src.provider.Types()
		if len(types) == 0 {
			return nil, fmt.Errorf("no samples of %s", name)
		}
		out = append(out, &demo.Sender{
			Source:  name,
			URL:     "http://" + s.publicAddr.String() + "/in/" + name,
			Checker: src.checker,
			Make: func(n int64) (string, provider.Request, error) {
				return src.demoEvent(types[int(n)%len(types)], n)
			},
		})
	}
	return out, nil
}

// demoEvent is an unsigned sample with an id of its own.
func (src *source) demoEvent(typ string, n int64) (id string, r provider.Request, err error) {
	sample, err := src.provider.Sample(typ, src.provider.SampleID(uint64(n)))
	if err != nil {
		return "", r, err
	}
	r = provider.Request{Method: sample.Method, Target: "/in/" + src.name, Header: sample.Header, Body: sample.Body}
	res := src.checker.Identify(&r)
	if len(res.Events) != 1 || res.Events[0].ID == "" {
		return "", r, fmt.Errorf("sample %s has no id", typ)
	}
	return res.Events[0].ID, r, nil
}

// demoLink makes a person and a link that logs that person in.
func (s *server) demoLink(ctx context.Context) (string, error) {
	if err := s.users.Create(ctx, "demo", rand.Text(), access.RoleOwner); err != nil {
		return "", err
	}
	link, _, err := s.setupLink(ctx)
	return link, err
}

// drain waits until no job is queued or leased.
func (s *server) drain(most time.Duration) error {
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		t, err := s.store.Totals(context.Background())
		if err != nil {
			return err
		}
		if t.Queued+t.Leased == 0 {
			return nil
		}
	}
	return nil // what is missing shows in the report
}

// countStates walks the archive.
func (s *server) countStates() (delivered, dead int64, err error) {
	f := store.DeliveryFilter{Limit: 500}
	for {
		list, next, err := s.store.Deliveries(context.Background(), f)
		if err != nil {
			return 0, 0, err
		}
		for _, d := range list {
			switch d.State {
			case store.StateDelivered:
				delivered++
			case store.StateDead:
				dead++
			}
		}
		if next == 0 {
			return delivered, dead, nil
		}
		f.Before = next
	}
}
