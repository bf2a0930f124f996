package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"acuse/provider"
)

// lifetime is how long a document is good.
type lifetime struct {
	good time.Duration // as its host says, within our bounds
	ends time.Time     // of a certificate; zero: nothing ends it
}

// fetch asks for a document once: https, no redirect, the whole of it within askTime.
func (k *Keys) fetch(r provider.KeyRequest) ([]byte, lifetime, error) {
	ctx, cancel := context.WithTimeout(k.life, askTime)
	defer cancel()
	var life lifetime
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if r.Post != nil {
		method, body = http.MethodPost, bytes.NewReader(r.Post)
	}
	plain, _, _ := strings.Cut(r.URL, "#")
	req, err := newRequest(ctx, method, plain, body)
	if err != nil {
		return nil, life, err
	}
	if r.Post != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	size := int64(keySize)
	if r.Kind == provider.KeySet {
		size = setSize
	}
	status, header, doc, err := k.do(req, size)
	switch {
	case err != nil:
		return nil, life, err
	case r.Post != nil && status/100 == 4 && r.Unknown != "" && bytes.Contains(doc, []byte(r.Unknown)):
		return nil, life, provider.ErrNoSuchKey
	case status != http.StatusOK:
		return nil, life, fmt.Errorf("answered %d", status)
	}
	life.good = goodFor(header)
	if r.Kind == provider.Certificate {
		if life.ends, err = k.roots.trust(doc, r.Names, k.now()); err != nil {
			return nil, life, err
		}
	}
	return doc, life, nil
}

// Ask gets a URL with a credential of the owner's. Nothing is kept; how often it is
// done is bounded, so that forged hints cannot use up what the provider allows.
func (k *Keys) Ask(ctx context.Context, url, authorization string) (int, []byte, error) {
	k.mu.Lock()
	ok := k.asks.take(k.now())
	k.mu.Unlock()
	if !ok {
		return 0, nil, errBusy
	}
	select {
	case k.slots <- struct{}{}:
	default:
		return 0, nil, errBusy
	}
	defer func() { <-k.slots }()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := newRequest(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", authorization)
	status, _, body, err := k.do(req, answerSize)
	return status, body, err
}

// Visit gets a URL that the provider asks to be got (a subscription that is confirmed
// that way), in the background, three times at most.
func (k *Keys) Visit(source, url string) {
	k.mu.Lock()
	ok := k.asks.take(k.now())
	k.mu.Unlock()
	if !ok || k.life.Err() != nil {
		k.log.Warn("keys: not confirmed, too much at once", "source", source)
		return
	}
	k.work.Go(func() {
		for try, wait := range []time.Duration{0, time.Second, 5 * time.Second} {
			select {
			case <-time.After(wait):
			case <-k.life.Done():
				return
			}
			err := k.visit(url)
			if err == nil {
				k.log.Info("keys: subscription confirmed at the provider", "source", source)
				return
			}
			k.log.Warn("keys: confirm subscription", "source", source, "try", try+1, "err", err.Error())
		}
	})
}

func (k *Keys) visit(url string) error {
	ctx, cancel := context.WithTimeout(k.life, askTime)
	defer cancel()
	req, err := newRequest(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	status, _, _, err := k.do(req, answerSize)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("answered %d", status)
	}
	return err
}

var errTooLarge = errors.New("answer is too large")

// newRequest refuses everything but https; the hosts were looked at by the engine.
func newRequest(ctx context.Context, method, raw string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, raw, body)
	if err != nil || req.URL.Scheme != "https" {
		return nil, errors.New("is no https address")
	}
	req.Header.Set("User-Agent", "acuse")
	req.Header.Set("Accept", "application/json, application/x-pem-file, */*")
	return req, nil
}

// do sends a request. Errors name no address: parts of it may be a stranger's words.
func (k *Keys) do(req *http.Request, size int64) (status int, h http.Header, body []byte, err error) {
	res, err := k.client.Do(req)
	if err != nil {
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err
		}
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, size+1))
	if err == nil && int64(len(body)) > size {
		err = errTooLarge
	}
	return res.StatusCode, res.Header, body, err
}

// goodFor reads Cache-Control and Age, within our bounds.
func goodFor(h http.Header) time.Duration {
	life := lifeUsual
	for _, part := range strings.Split(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), "=")
		switch name {
		case "no-store", "no-cache":
			return lifeLeast
		case "max-age":
			n, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32)
			if err != nil {
				continue
			}
			age, _ := strconv.ParseInt(h.Get("Age"), 10, 32) // 0 when it is not there
			life = time.Duration(n-max(age, 0)) * time.Second
		}
	}
	return min(max(life, lifeLeast), lifeMost)
}
