package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"acuse/admin"
	"acuse/config"
)

// capture lets a person open the window in which a source learns its secret from a
// handshake, and decide about what came. act "" only tells, "await" when the window is over.
func (s *server) capture(ctx context.Context, source, act string) (admin.CaptureState, error) {
	var none admin.CaptureState
	src := s.live.Load().sources[source]
	if src == nil || !src.provider.Captures() {
		return none, admin.ErrNoCapture
	}
	snippet := ""
	switch act {
	case "":
	case "await":
		s.edge.AwaitCapture(ctx, source)
		ctx = context.WithoutCancel(ctx) // the wait is over, and what came of it is still to be told
	case "open":
		if _, err := s.edge.OpenCapture(ctx, source); err != nil {
			return none, err
		}
	case "discard":
		if err := s.edge.EndCapture(ctx, source); err != nil {
			return none, err
		}
	case "confirm":
		var err error
		if snippet, err = s.confirmCapture(ctx, source); err != nil {
			return none, err
		}
	default:
		return none, fmt.Errorf("no act %q", act)
	}
	c, err := s.edge.CaptureOf(ctx, source)
	if err != nil {
		return none, err
	}
	return admin.CaptureState{Until: c.Until, Value: c.Value, From: c.From, At: c.At, Snippet: snippet}, nil
}

// confirmCapture makes the captured value one more secret of the source: written to
// conf.d, then loaded, then forgotten here. A crash in between leaves it to be confirmed again.
// The snippet is what the owner writes where the folder is read-only.
func (s *server) confirmCapture(ctx context.Context, source string) (snippet string, err error) {
	c, err := s.edge.CaptureOf(ctx, source)
	if err != nil {
		return "", err
	}
	if c.Value == "" {
		return "", admin.ErrNothingCaptured
	}
	undo, err := config.AddSecret(s.live.Load().cfg.DataDir, source, c.Value)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return config.Snippet(source, c.Value), nil
	}
	if err != nil {
		return "", err
	}
	cfg, _, err := s.load()
	if err == nil {
		err = s.reload(cfg)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("the configuration does not load with it: %w", err), undo())
	}
	return "", s.edge.EndCapture(ctx, source)
}
