package queue

import (
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/store"
)

// meters are the queue's figures. Labels hold names from the configuration only.
type meters struct{ set *metrics.Set }

// latencyBounds are seconds from receipt to delivery: the fast way in fine steps,
// the retry schedule in coarse ones.
var latencyBounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400}

func (m meters) attempt(destination string, state store.JobState) {
	outcome := map[store.JobState]string{store.Delivered: "delivered", store.Queued: "failed", store.Dead: "dead"}[state]
	m.count("acuse_attempts_total", destination, outcome, 1)
}

func (m meters) lost(destination string) { m.count("acuse_attempts_total", destination, "lost", 1) }

func (m meters) expired(destination string, n int) {
	m.set.GetOrCreateCounter(fmt.Sprintf("acuse_leases_expired_total{destination=%q}", destination)).Add(n)
}

func (m meters) count(name, destination, outcome string, n int) {
	m.set.GetOrCreateCounter(fmt.Sprintf("%s{destination=%q,outcome=%q}", name, destination, outcome)).Add(n)
}

// delivered measures one that was not resent: a resend of last month's delivery
// would say nothing about today.
func (m meters) delivered(d time.Duration) {
	m.set.GetOrCreatePrometheusHistogramExt("acuse_receipt_to_delivered_seconds", latencyBounds).Update(d.Seconds())
}

func (m meters) running(destination string, busy func() int) {
	m.set.GetOrCreateGauge(fmt.Sprintf("acuse_attempts_running{destination=%q}", destination), func() float64 { return float64(busy()) })
}

func (m meters) down(destination string, down func() bool) {
	m.set.GetOrCreateGauge(fmt.Sprintf("acuse_destination_down{destination=%q}", destination), func() float64 {
		if down() {
			return 1
		}
		return 0
	})
}
