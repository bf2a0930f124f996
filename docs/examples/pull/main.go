// Command pull works on the jobs of a pull destination.
//
//	ACUSE_URL=http://127.0.0.1:8081 ACUSE_TOKEN=... go run . agent
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"
)

type job struct {
	Job     int64  `json:"job"`
	Lease   string `json:"lease"`
	Attempt int    `json:"attempt"`
	EventID string `json:"event_id"`
	Key     string `json:"idempotency_key"`
	Body    []byte `json:"body_base64"`
}

type object map[string]any

var (
	client  = http.Client{Timeout: time.Minute}
	seconds = 60
)

// call returns the status, 0 when there was no answer.
func call(path string, body, into any) int {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	r, err := http.NewRequest(http.MethodPost, os.Getenv("ACUSE_URL")+"/api/v1/jobs/"+path, bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("ACUSE_TOKEN"))
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(into) != nil {
		return 0
	}
	return answer.StatusCode
}

func refused(status int) bool { return status >= 400 && status < 500 }

// handle is your work; ctx ends when the lease is lost. The key is the same at every
// attempt: whoever is asked to do something under it does it once.
func handle(ctx context.Context, j job) error {
	f, err := os.OpenFile(cmp.Or(os.Getenv("DONE_FILE"), "done.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, j.Key, j.Attempt, len(j.Body))
	return err
}

func work(j job) {
	ctx, lost := context.WithCancel(context.Background())
	defer lost()
	renewing := time.NewTicker(time.Duration(seconds) * time.Second / 3)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-renewing.C:
				if refused(call(fmt.Sprintf("%d/renew", j.Job), object{"lease": j.Lease, "ttl_seconds": seconds}, &object{})) {
					lost() // 409: another worker has the job by now
					return
				}
			case <-ended:
				return
			}
		}
	}()
	act, answer := "ack", object{"lease": j.Lease}
	if err := handle(ctx, j); err != nil {
		act, answer["error"] = "nack", err.Error()
	}
	renewing.Stop()
	close(ended)
	for ; ctx.Err() == nil; time.Sleep(time.Second) { // the server is away: what is done must be told
		switch status := call(fmt.Sprintf("%d/%s", j.Job, act), answer, &object{}); {
		case status == http.StatusOK:
			fmt.Println(act, j.EventID)
			return
		case refused(status):
			lost()
		}
	}
	fmt.Println("lost", j.EventID)
}

func main() {
	if n, err := strconv.Atoi(os.Getenv("LEASE_SECONDS")); err == nil {
		seconds = n
	}
	for {
		var got struct{ Jobs []job }
		status := call("lease", object{"destination": os.Args[1], "ttl_seconds": seconds, "wait_seconds": 30}, &got)
		if status == 401 || status == 403 || status == 404 {
			fmt.Fprintln(os.Stderr, "refused:", status)
			os.Exit(1)
		}
		for _, j := range got.Jobs {
			work(j)
		}
		if status != http.StatusOK {
			time.Sleep(time.Second)
		}
	}
}
