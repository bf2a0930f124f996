package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"acuse/provider"
)

// auth is what a provider's file says about its secret, as far as one is made up here.
type auth struct {
	Kind   string `json:"kind"`
	Of     []auth `json:"of"`
	Secret *struct {
		Encoding    string   `json:"encoding"`
		StripPrefix []string `json:"strip_prefix"`
	} `json:"secret"`
	KeySource *struct {
		Kind string `json:"kind"`
	} `json:"key_source"`
}

// configuration is a source for each provider, named like it, with secrets of the
// shape that the file asks for.
func configuration(cat *provider.Catalogue) (string, error) {
	var b strings.Builder
	b.WriteString("public_url: https://hooks.example.org\nsources:\n")
	for _, name := range cat.Names() {
		raw, err := os.ReadFile(filepath.Join("provider", "catalogue", name+".json"))
		if err != nil {
			return "", err
		}
		var file struct {
			Auth auth `json:"auth"`
		}
		if err := json.Unmarshal(raw, &file); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		p, _ := cat.Get(name)
		fmt.Fprintf(&b, "  %s:\n    provider: %s\n    deliver_to: [app]\n", name, name)
		switch secret, err := file.Auth.secret(); {
		case err != nil:
			return "", fmt.Errorf("%s: %w", name, err)
		case secret != "":
			fmt.Fprintf(&b, "    secrets: [%q]\n", secret)
		case file.Auth.open():
			b.WriteString("    unsigned: true\n")
		}
		for i, param := range p.Params() {
			if i == 0 {
				b.WriteString("    params:\n")
			}
			fmt.Fprintf(&b, "      %s: example-%s\n", param, strings.ReplaceAll(param, "_", "-"))
		}
	}
	b.WriteString("destinations:\n  app:\n    pull: {}\n")
	return b.String(), nil
}

// open is true where nothing proves who sends.
func (a *auth) open() bool { return a.Kind == "none" || a.Kind == "callback" }

// secret makes up a secret; empty where none is configured.
func (a *auth) secret() (string, error) {
	switch a.Kind {
	case "any", "all":
		for i := range a.Of {
			if s, err := a.Of[i].secret(); s != "" || err != nil {
				return s, err
			}
		}
		return "", nil
	case "none", "callback", "ip":
		return "", nil
	case "basic":
		return "acuse:example-password", nil
	case "ed25519", "ecdsa", "rsa":
		if a.KeySource != nil && a.KeySource.Kind != "static" {
			return "", nil // fetched
		}
		return publicKey(a.Kind, a.Secret.Encoding, a.Secret.StripPrefix)
	case "jwt":
		if a.KeySource != nil && a.KeySource.Kind == "jwk-by-kid" {
			return "example-client:example-secret", nil // with which the key is asked for
		}
		if a.KeySource != nil && a.KeySource.Kind != "static" {
			return "", nil
		}
	}
	if a.Secret == nil {
		return "example-secret-0123456789abcdef", nil
	}
	prefix := ""
	if len(a.Secret.StripPrefix) > 0 {
		prefix = a.Secret.StripPrefix[0]
	}
	key := []byte("example-secret-0123456789abcdef0")
	switch a.Secret.Encoding {
	case "base64":
		return prefix + base64.StdEncoding.EncodeToString(key), nil
	case "base64url":
		return prefix + base64.RawURLEncoding.EncodeToString(key), nil
	case "hex":
		return prefix + fmt.Sprintf("%x", key), nil
	}
	return prefix + string(key), nil
}
