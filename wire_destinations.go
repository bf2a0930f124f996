package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"acuse/admin"
	"acuse/config"
	"acuse/queue"
	"acuse/queue/command"
	"acuse/queue/forward"
	"acuse/store"
	"acuse/web"
)

// lanes turns the destinations of the configuration into lanes.
func lanes(cfg *config.Config, client *http.Client, signers func(string) (forward.Signer, string)) ([]queue.Lane, config.Problems) {
	var out []queue.Lane
	var problems config.Problems
	for _, name := range slices.Sorted(maps.Keys(cfg.Destinations)) {
		d := cfg.Destinations[name]
		l := queue.Lane{
			Name:        name,
			Concurrency: d.Concurrency,
			HardLimit:   d.HardLimit,
			Retry:       retryOf(d),
			MaxAge:      d.MaxAge,
			Rate:        perSecond(d.Rate),
		}
		sender, err := senderOf(cfg, d, client, signers)
		if err != nil {
			problems = append(problems, cfg.Problem("destinations."+name, "%v", err))
			continue
		}
		if l.Sender = sender; d.Exec != nil {
			l.Kind = "exec"
		}
		out = append(out, l)
	}
	return out, problems
}

// senderOf is what hands events to a destination; nil for pull.
func senderOf(cfg *config.Config, d *config.Destination, client *http.Client, signers func(string) (forward.Signer, string)) (queue.Sender, error) {
	switch {
	case d.Pull != nil:
		return nil, nil
	case d.Exec != nil:
		return command.New(command.Options{
			Args: d.Exec, Dir: d.Dir, User: d.User, Env: plain(d.Env), Groups: groupsDir(cfg),
			Item: func(source string, body []byte, part int) ([]byte, error) {
				signer, _ := signers(source)
				if signer == nil {
					return nil, fmt.Errorf("source %s is not configured any more: its batches cannot be split", source)
				}
				return signer.Item(body, part)
			},
		})
	}
	return forward.New(forward.Options{
		URL: string(d.URL), Method: d.Method, Headers: plain(d.Headers), Signature: d.Signature, Secret: string(d.Secret),
		IdempotencyHeader: d.IdempotencyHeader, Timeout: d.Timeout, Client: client, Signers: signers,
	})
}

// groupsDir is where the process groups of running commands are recorded.
func groupsDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "exec") }

// pullDestinations are those whose workers come and ask.
func pullDestinations(cfg *config.Config) map[string]web.PullDestination {
	out := map[string]web.PullDestination{}
	for name, d := range cfg.Destinations {
		if d.Pull != nil {
			retry := retryOf(d).Filled()
			out[name] = web.PullDestination{
				Lease:     d.Pull.Lease,
				HardLimit: d.HardLimit,
				MaxAge:    d.MaxAge,
				Budget:    retry.Budget(),
				Wait:      func(spent int) time.Duration { return retry.Wait(spent, 0, rand.Float64()) },
			}
		}
	}
	return out
}

// destinationNames are the configured destinations.
func (s *server) destinationNames() []string {
	return slices.Sorted(maps.Keys(s.live.Load().cfg.Destinations))
}

// shownDestinations are the destinations as people see them.
func shownDestinations(cfg *config.Config) []admin.Destination {
	var out []admin.Destination
	for _, name := range slices.Sorted(maps.Keys(cfg.Destinations)) {
		d := cfg.Destinations[name]
		kind := "http"
		switch {
		case d.Pull != nil:
			kind = "pull"
		case d.Exec != nil:
			kind = "exec"
		}
		shown := admin.Destination{Name: name, Kind: kind, URL: string(d.URL), Budget: retryOf(d).Filled().Budget()}
		if d.Exec != nil {
			shown.Program = d.Exec[0]
		}
		out = append(out, shown)
	}
	return out
}

// retryOf is when a destination's failed jobs are tried again. The file's jitter of 0
// means none, which a lane writes as a negative one.
func retryOf(d *config.Destination) queue.Retry {
	r := queue.Retry{Schedule: d.Retry.Schedule, Jitter: d.Retry.Jitter, GiveUpOn: d.Retry.GiveUpOn}
	if r.Jitter == 0 {
		r.Jitter = -1
	}
	return r
}

func plain(m map[string]config.Secret) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

// laneState is how a destination stands, for people.
func (s *server) laneState(name string) admin.LaneState {
	st, ok := s.queue.Status(name)
	if !ok {
		return admin.LaneState{}
	}
	return admin.LaneState{Paused: st.Paused, Down: st.Down, Status: st.Status, Class: st.Class, Probes: st.Probes, ProbeAt: st.ProbeAt, Probing: st.Probing,
		HoldUntil: st.HoldUntil, Sends: st.Limit, Concurrency: st.Concurrency, Rate: st.Rate, MaxAge: st.MaxAge, Pull: st.Pull}
}

// laneAct pauses, resumes or probes a destination.
func (s *server) laneAct(ctx context.Context, name, act string) (changed bool, err error) {
	if name == echo {
		return false, store.ErrNotFound
	}
	switch act {
	case "pause":
		changed, err = s.queue.Pause(ctx, name)
	case "resume":
		changed, err = s.queue.Resume(ctx, name)
	default:
		changed, err = s.queue.Probe(ctx, name)
	}
	switch {
	case errors.Is(err, queue.ErrNoLane):
		return false, store.ErrNotFound
	case errors.Is(err, queue.ErrNotDown):
		return false, admin.ErrNotDown
	case errors.Is(err, queue.ErrPaused):
		return false, admin.ErrPaused
	}
	return changed, err
}
