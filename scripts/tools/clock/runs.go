package main

import (
	"fmt"
	"time"
)

// renewal is the longest that a forward step may add to a lease: it looks like a machine
// that was suspended, whose workers get one renewal before their leases end.
const renewal = 30 * time.Second

// stepped sets the clock while a job waits for its second attempt and another is leased.
func stepped(p *faketime, by time.Duration) error {
	if err := p.start(); err != nil {
		return err
	}
	if err := p.post("evt_1", p.now(), 200, `"accepted"`); err != nil {
		return err
	}
	failed, err := p.call("evt_1", 0)
	if err != nil {
		return err
	}
	held, err := p.lease("evt_1")
	if err != nil {
		return err
	}
	if err := p.set(by); err != nil {
		return err
	}
	if err := p.shifted(); err != nil {
		return err
	}
	if err := p.post("evt_2", p.now(), 200, `"accepted"`); err != nil {
		return err
	}
	// Signed by our clock: while acuse's lies behind what it stored it blames itself.
	status, word := 401, "not-verified"
	if by < 0 {
		status, word = 503, "clock-not-set"
	}
	if err := p.post("evt_3", time.Now(), status, word); err != nil {
		return err
	}
	if err := p.post("evt_1", p.now(), 200, `"duplicate"`); err != nil {
		return err
	}
	again, err := p.call("evt_1", 1)
	if err != nil {
		return err
	}
	ranOut, err := p.lease("evt_1")
	if err != nil {
		return err
	}
	waited, leased := again.Sub(failed), ranOut.Sub(held)
	if least, most := pause-pause/10, 3*pause; waited < least || waited > most || leased < least || leased > most+renewal {
		return fmt.Errorf("waited %v, leased %v, want %v", waited, leased, pause)
	}
	fmt.Printf("set by %v: a wait of %v took %.1f s, a lease %.1f s; a repeat is a duplicate; signed by the true clock: %d %s\n",
		by, pause, waited.Seconds(), leased.Seconds(), status, word)
	return p.Stop()
}

// startsIn1970 starts once with the right clock, then with one that was never set, and sets it.
func startsIn1970(p *faketime) error {
	if err := p.start(); err != nil {
		return err
	}
	if err := p.post("evt_1", p.now(), 200, `"accepted"`); err != nil {
		return err
	}
	if _, err := p.call("evt_1", 0); err != nil {
		return err
	}
	p.kill()
	if err := p.set(-time.Since(time.Unix(60, 0))); err != nil {
		return err
	}
	if err := p.start(); err != nil {
		return err
	}
	if err := p.post("evt_2", time.Now(), 503, "clock-not-set"); err != nil {
		return err
	}
	if err := p.set(0); err != nil {
		return err
	}
	if err := p.shifted(); err != nil {
		return err
	}
	if err := p.post("evt_2", time.Now(), 200, `"accepted"`); err != nil {
		return err
	}
	if err := p.post("evt_1", time.Now(), 200, `"duplicate"`); err != nil {
		return err
	}
	for _, event := range []string{"evt_1", "evt_2"} {
		if _, err := p.call(event, 1); err != nil {
			return err
		}
	}
	fmt.Println("start in 1970: 503 clock-not-set; once it was set: accepted, a repeat is a duplicate, both delivered")
	return p.Stop()
}

// lease takes an event's job from the queue, as soon as it is there, and tells when.
func (p *faketime) lease(event string) (at time.Time, err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		var got struct {
			Jobs []struct {
				EventID string `json:"event_id"`
			} `json:"jobs"`
		}
		if err := p.Call("POST", "/api/v1/jobs/lease", map[string]any{"destination": "queue", "ttl_seconds": int(pause.Seconds()), "wait_seconds": 5}, &got); err != nil {
			return at, err
		}
		for _, j := range got.Jobs {
			if j.EventID == event {
				return time.Now(), nil
			}
		}
	}
	return at, fmt.Errorf("the job of %s was not to be had within a minute", event)
}
