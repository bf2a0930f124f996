package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"acuse/cli"
	"acuse/queue/command"
	"acuse/queue/forward"
	"acuse/store"
)

// workers are what acuse pull and acuse listen have jobs handled by.
var workers = cli.Workers{Command: runner, Forward: forwarder}

// runner runs a program for each job, in the folder where acuse was called.
func runner(args, env []string, stdout, stderr io.Writer) cli.Handler {
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	return func(ctx context.Context, w *cli.Work) cli.Handled {
		d := command.Delivery{ID: w.Delivery, Source: w.Source, EventID: w.EventID, Type: w.Type, Resource: w.Resource, Attempt: w.Attempt,
			ReceivedAt: w.ReceivedAt, Resend: w.Resend, Test: w.Test, IdempotencyKey: w.IdempotencyKey, Destination: w.Destination, Method: w.Method}
		run := command.Run{Args: args, Env: append(command.Variables(d, w.Headers), env...), Dir: dir, Stdin: w.Body, Stdout: stdout, Stderr: stderr}
		_, class, reason := run.Do(ctx)
		return cli.Handled{Done: class == "", Error: reason}
	}
}

// forwarder sends each job to a URL, as the destination would: with the signature it
// came with, since the secrets are the server's.
func forwarder(url string, timeout time.Duration) (cli.Handler, error) {
	f, err := forward.New(forward.Options{URL: url, Signature: forward.Passthrough, Timeout: timeout})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, w *cli.Work) cli.Handled {
		res := f.Send(ctx, store.Lease{
			Job: w.Job, Destination: w.Destination, Key: w.IdempotencyKey, Attempt: w.Attempt, Resend: w.Resend,
			Delivery: store.DeliveryHead{ID: w.Delivery, Source: w.Source, EventID: w.EventID, Type: w.Type, Resource: w.Resource, Test: w.Test, ReceivedAt: w.ReceivedAt, Part: -1},
			Payload:  store.Payload{Method: w.Method, Header: store.EncodeHeader(w.Headers), Body: w.Body, Part: -1},
		})
		h := cli.Handled{Done: res.Outcome == store.Succeeded, Error: res.Error, Dead: res.Status == 410, RetryAfter: res.RetryAfter}
		if h.Done {
			h.Word = strconv.Itoa(res.Status)
		} else if h.Error == "" {
			h.Error = fmt.Sprint(res.Status)
		}
		return h
	}, nil
}
