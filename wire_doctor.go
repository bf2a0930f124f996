package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"acuse/admin"
	"acuse/provider"
	"acuse/web"
)

// withDoctor gives the edge what it needs to explain the refusals of a source, and to judge
// them again with another secret.
func (s *server) withDoctor(w web.Source, src *source, all map[string]*source) web.Source {
	others := provider.Others{Catalogue: s.catalogue}
	for name, other := range all {
		if other != src && src.cfg.Provider != "" && other.cfg.Provider == src.cfg.Provider {
			others.Sources = append(others.Sources, provider.Neighbour{Name: name, Checker: other.checker})
		}
	}
	w.Diagnose = func(r *provider.Request, at time.Time) provider.Diagnosis { return src.checker.Diagnose(r, at, others) }
	w.Besides = func(secret string, tolerance time.Duration) (web.Checker, error) {
		c, err := src.checker.Besides(secret, tolerance)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	return w
}

// recheck lets the pages and the API judge refused requests again.
func (s *server) recheck() func(context.Context, admin.RecheckRequest) (admin.Rechecked, error) {
	r := web.NewRechecker(s.edge, s.store)
	return func(ctx context.Context, q admin.RecheckRequest) (admin.Rechecked, error) {
		done, err := r.Recheck(ctx, web.Recheck{Source: q.Source, Secret: q.Secret, Tolerance: q.Tolerance, Deliver: q.Deliver, By: q.By})
		if errors.Is(err, web.ErrSecret) {
			err = fmt.Errorf("%w: %s", admin.ErrSecret, strings.TrimPrefix(err.Error(), web.ErrSecret.Error()+": "))
		}
		return admin.Rechecked(done), err
	}
}

// keyFile reads a key of this data folder, or makes it. It stands beside the store and not in
// it: who has a copy of the store cannot look for tokens by their digests.
func keyFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKeyFile(path)
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) < 16 {
		return nil, fmt.Errorf("%s: holds no key; remove it for a new one: tokens of rejections before that cannot be checked again", path)
	}
	return key, nil
}

// newKeyFile makes the file whole before it has its name, so that a crash leaves none or all.
func newKeyFile(path string) ([]byte, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	f, err := os.CreateTemp(filepath.Dir(path), ".digest.key")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when all went well
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return nil, err
	}
	return key, os.Rename(f.Name(), path)
}
