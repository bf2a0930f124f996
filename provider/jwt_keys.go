package provider

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/tidwall/gjson"
)

// tokenKey is a key that checks tokens.
type tokenKey struct {
	slot   int    // from 1; 0: not a configured one
	kid    string // of a fetched or test key
	alg    string // the only one it is for; empty: any of the file's
	gone   int64  // unix seconds at which the provider retired it; 0: it did not
	key    any    // as go-jose takes it
	signer any    // of a shared key, or of tests of ours; nil: it only checks
	rule   publicRule
	remote bool
}

// sharedOnly is a shared key, which signs too; nil for a public one.
func sharedOnly(key any) any {
	if b, ok := key.([]byte); ok {
		return b
	}
	return nil
}

// open gives the payload of a token that the key signed. Shared keys are a matter of one
// HMAC and are taken at any length: the provider, or its user, chose it.
func (k *tokenKey) open(token *jose.JSONWebSignature, text string) ([]byte, bool) {
	shared, ok := k.key.([]byte)
	if !ok {
		payload, err := token.Verify(k.key)
		return payload, err == nil
	}
	sum := sharedSum(token.Signatures[0].Protected.Algorithm, shared, text[:strings.LastIndexByte(text, '.')])
	return token.UnsafePayloadWithoutVerification(), hmac.Equal(sum, token.Signatures[0].Signature)
}

func sharedSum(alg string, key []byte, text string) []byte {
	m := hmac.New(hashes["sha"+alg[2:]], key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// seal signs a payload.
func (k *tokenKey) seal(alg jose.SignatureAlgorithm, payload []byte) (string, error) {
	if shared, ok := k.signer.([]byte); ok {
		text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+string(alg)+`","typ":"JWT"}`)) + "." +
			base64.RawURLEncoding.EncodeToString(payload)
		return text + "." + base64.RawURLEncoding.EncodeToString(sharedSum(string(alg), shared, text)), nil
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: k.signer}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	token, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return token.CompactSerialize()
}

// configured is how the key stands in the configuration, or what is published of it.
func (k *tokenKey) configured() (string, error) {
	if !k.remote {
		return k.rule.write(k.key)
	}
	b, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: k.key, KeyID: k.kid, Algorithm: k.alg, Use: "sig"}}})
	return string(b), err
}

// testKid is the key id in tokens of tests of ours.
const testKid = "acuse-test"

// newTokenPair makes a key pair for tests of ours.
func newTokenPair(p *jwtPlan) (*tokenKey, error) {
	var private crypto.Signer
	var err error
	switch p.algs[0] {
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.ES512:
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		return nil, err
	}
	return &tokenKey{slot: 1, kid: testKid, alg: string(p.algs[0]), key: private.Public(), rule: p.public, remote: p.remote != nil,
		signer: jose.JSONWebKey{Key: private, KeyID: testKid}}, nil
}

// keysFor gives the keys of a token: the configured ones, or those that the provider
// publishes under the token's key id. An id that is not there is looked for once more.
func (c *jwtCheck) keysFor(in *input) ([]tokenKey, *Refusal) {
	if c.fetched == nil {
		return c.keys, nil
	}
	untrusted := &Refusal{Reason: KeyUntrusted, Detail: c.remote.path + ".kid", Signed: true}
	if in.kid == "" || len(in.kid) > MaxID {
		return nil, untrusted
	}
	url, r := c.remote.locate(in)
	if r != nil {
		return nil, r
	}
	req := c.remote.request(url)
	if c.remote.kind == "jwk-by-kid" {
		req.Post, _ = credentials(c.credentials, in.kid) // a secret that is none was refused at the start
	}
	for _, req.Newer = range []bool{false, true} {
		set, r := c.fetched.document(in, req, readKeySet)
		if r != nil {
			return nil, r
		}
		var out []tokenKey
		for _, k := range set.([]tokenKey) {
			if k.fits(in.kid, c.algs, in.now) {
				out = append(out, k)
			}
		}
		if len(out) > 0 || c.remote.kind == "jwk-by-kid" {
			if out == nil {
				return nil, untrusted
			}
			return out, nil
		}
	}
	return nil, untrusted
}

func (k *tokenKey) fits(kid string, algs []jose.SignatureAlgorithm, now time.Time) bool {
	if k.kid != kid || (k.gone > 0 && now.Unix() >= k.gone) {
		return false
	}
	for _, a := range algs {
		if k.alg == "" || k.alg == string(a) {
			return true
		}
	}
	return false
}

// maxKeys bounds the keys of one set that are looked at.
const maxKeys = 100

// readKeySet reads a JWKS, one JWK, or Plaid's answer, which holds one as "key". A key of a kind
// that is not known, or for something else than signatures, is passed over.
func readKeySet(doc []byte) (any, error) {
	if !soundJSON(string(doc)) {
		return nil, errors.New("is no JSON")
	}
	root := gjson.ParseBytes(doc)
	list := root.Get("keys").Array()
	if one := root.Get("key"); one.IsObject() {
		list = []gjson.Result{one}
	} else if root.Get("kty").Exists() {
		list = []gjson.Result{root}
	} else if !root.Get("keys").IsArray() {
		return nil, errors.New("is no set of keys")
	}
	out := []tokenKey{}
	for _, v := range list[:min(len(list), maxKeys)] {
		var j jose.JSONWebKey
		if j.UnmarshalJSON([]byte(v.Raw)) != nil || !j.Valid() || !j.IsPublic() || (j.Use != "" && j.Use != "sig") {
			continue
		}
		if _, isRSA := j.Key.(*rsa.PublicKey); isRSA {
			if _, err := fitRSA(j.Key); err != nil {
				continue
			}
		}
		out = append(out, tokenKey{kid: j.KeyID, alg: j.Algorithm, key: j.Key, gone: v.Get("expired_at").Int()})
	}
	return out, nil
}
