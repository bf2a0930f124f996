package provider

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/tidwall/gjson"
)

// jwtPlan is kind jwt: a signed token in a header, which may hold a digest of the body.
type jwtPlan struct {
	from     place
	scheme   string // "Bearer ", compared without case
	algs     []jose.SignatureAlgorithm
	wants    wants
	rule     keyRule    // of a shared key
	public   publicRule // of a configured public one
	remote   *keySource // nil: the keys are the source's secrets
	claims   claimRules
	bodyHash *bodyHash
}

func parseJWT(path string, f *authFile) (plan, error) {
	p := &jwtPlan{scheme: f.Prefix}
	var err error
	if p.from, err = parsePlace(join(path, "from"), f.From); err != nil {
		return nil, err
	}
	if p.algs, err = parseAlgs(join(path, "algs"), f.Algs); err != nil {
		return nil, err
	}
	if p.wants, err = parseWants(join(path, "required"), f.Required); err != nil {
		return nil, err
	}
	if p.remote, err = parseKeySource(join(path, "key_source"), f.KeySource, "jwks-url", "jwk-by-kid"); err != nil {
		return nil, err
	}
	if p.shared() {
		p.rule, err = parseKeyRule(join(path, "secret"), f.Secret)
	} else if p.remote == nil {
		p.public, err = parsePublicRule(join(path, "secret"), f.Secret, "pem")
	}
	if err != nil {
		return nil, err
	}
	if p.shared() && p.remote != nil {
		return nil, at(join(path, "algs"), "a fetched key is public: HS… would take it for a shared one")
	}
	if p.claims, err = parseClaims(path, f); err != nil {
		return nil, err
	}
	p.bodyHash, err = parseBodyHash(join(path, "body_hash"), f.BodyHash)
	return p, err
}

// parseAlgs wants algorithms of one family: a key is a shared or a public one, and a
// token must not choose.
func parseAlgs(path string, list []string) ([]jose.SignatureAlgorithm, error) {
	all := []jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512, jose.RS256, jose.RS384, jose.RS512,
		jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}
	var out []jose.SignatureAlgorithm
	for _, a := range list {
		if !slices.Contains(all, jose.SignatureAlgorithm(a)) {
			return nil, at(path, "unknown algorithm %q", a)
		}
		out = append(out, jose.SignatureAlgorithm(a))
	}
	if len(out) == 0 {
		return nil, at(path, "missing")
	}
	for _, a := range out {
		if (a[0] == 'H') != (out[0][0] == 'H') {
			return nil, at(path, "shared and public keys together")
		}
	}
	return out, nil
}

// shared tells whether the key is a shared secret.
func (p *jwtPlan) shared() bool { return p.algs[0][0] == 'H' }

func (p *jwtPlan) each(f func(*placeholder)) {
	f(p.from.placeholder)
	p.wants.each(f)
	p.remote.each(f)
	p.claims.each(f)
}

func (p *jwtPlan) bind(b *binding) (check, error) {
	c := &jwtCheck{jwtPlan: p, claims: p.claims.with(b.settings.Tolerance)}
	if b.rehearsal != nil && !p.shared() {
		key, err := newTokenPair(p)
		if err != nil {
			return nil, err
		}
		b.rehearsal.add(key)
		c.keys = []tokenKey{*key}
		return c, nil
	}
	if p.remote != nil {
		c.fetched = newFetched(b.settings.Keys)
		if p.remote.kind != "jwk-by-kid" {
			b.useless(errFetched)
			return c, nil
		}
		for i, secret := range b.secrets {
			_, err := credentials(secret, "")
			if b.take(i, err) && c.credentials == "" {
				c.credentials = secret
			}
		}
		return c, nil
	}
	for i, secret := range b.secrets {
		key, err := p.secretKey(secret)
		if b.take(i, err) {
			c.keys = append(c.keys, tokenKey{slot: i + 1, key: key, signer: sharedOnly(key)})
		}
	}
	return c, nil
}

func (p *jwtPlan) secretKey(secret string) (any, error) {
	if p.shared() {
		return p.rule.key(secret)
	}
	return p.public.read(secret)
}

// jwtCheck is a jwtPlan with a source's keys.
type jwtCheck struct {
	*jwtPlan
	claims      claimRules // with the source's tolerance
	keys        []tokenKey
	fetched     *fetched // nil: keys holds all there are
	credentials string   // with which a key is asked for by its id
}

func (c *jwtCheck) verify(in *input) verdict {
	in.hidden, in.body, in.claims, in.kid = nil, in.r.Body, "", ""
	if name := c.wants.missing(in); name != "" {
		return refuse(MissingHeader, name, false)
	}
	text, ok := c.from.read(in)
	if !ok {
		return refuse(MissingHeader, c.from.text, false)
	}
	if text, ok = c.cut(text); !ok || strings.Count(text, ".") != 2 || len(text) > maxToken {
		return refuse(MalformedHeader, c.from.text, false)
	}
	token, reason := c.parse(text)
	if reason != "" {
		return refuse(reason, c.from.text, reason == SignatureMismatch)
	}
	in.kid = token.Signatures[0].Protected.KeyID
	payload, slot, r := c.proven(in, token, text)
	if r == nil {
		in.claims = string(payload)
		if r = c.claims.judge(in); r == nil {
			r = c.bodyHash.judge(in)
		}
	}
	if r != nil {
		in.claims, in.kid = "", "" // nothing of it counts
		return verdict{refusal: r}
	}
	return verdict{slot: slot, whole: c.bodyHash != nil}
}

// maxToken bounds what is parsed; the header's own limit is 32 KiB.
const maxToken = 16 << 10

// cut takes the scheme word off. Where the file states none, "Bearer " may stand in
// Authorization all the same.
func (c *jwtCheck) cut(text string) (string, bool) {
	if c.scheme != "" {
		return cutScheme(text, c.scheme)
	}
	if c.from.src == srcHeader && c.from.arg == "Authorization" {
		if rest, ok := cutScheme(text, "Bearer "); ok {
			return rest, true
		}
	}
	return text, true
}

// parse reads a token. An algorithm that the file does not name, none among them, is a
// mismatch: the token does not choose how it is checked.
func (c *jwtCheck) parse(text string) (*jose.JSONWebSignature, Reason) {
	head, rest, _ := strings.Cut(text, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	h, err := strictURL.DecodeString(head)
	if err != nil || !soundJSON(string(h)) {
		return nil, MalformedHeader
	}
	if _, err := strictURL.DecodeString(payload); err != nil {
		return nil, MalformedHeader
	}
	if alg := gjson.GetBytes(h, "alg"); alg.Type != gjson.String || !slices.Contains(c.algs, jose.SignatureAlgorithm(alg.Str)) {
		return nil, SignatureMismatch
	}
	if _, err := strictURL.DecodeString(signature); err != nil { // one signature has one spelling
		return nil, SignatureMismatch
	}
	token, err := jose.ParseSignedCompact(text, c.algs)
	if err != nil || len(token.Signatures) != 1 {
		return nil, SignatureMismatch
	}
	return token, ""
}

// proven gives the payload under the key that signed it.
func (c *jwtCheck) proven(in *input, token *jose.JSONWebSignature, text string) ([]byte, int, *Refusal) {
	keys, r := c.keysFor(in)
	if r != nil {
		return nil, 0, r
	}
	for _, k := range keys {
		payload, ok := k.open(token, text)
		if ok && soundJSON(string(payload)) {
			return payload, k.slot, nil
		}
	}
	return nil, 0, &Refusal{Reason: SignatureMismatch, Detail: c.from.text, Signed: true}
}

func (c *jwtCheck) early(h http.Header) *Refusal {
	if name := c.wants.early(h); name != "" {
		return &Refusal{Reason: MissingHeader, Detail: name}
	}
	if c.from.lacks(h) {
		return &Refusal{Reason: MissingHeader, Detail: c.from.text}
	}
	return nil
}

func (c *jwtCheck) present(in *input) bool {
	v, ok := c.from.read(in)
	return ok && v != "" && c.wants.missing(in) == ""
}

func (c *jwtCheck) marks(f func(*placeholder)) { f(c.from.placeholder) }

func (c *jwtCheck) canSign() bool {
	return slices.ContainsFunc(c.keys, func(k tokenKey) bool { return k.signer != nil })
}

// sign puts a fresh token in the place of the old one, whose other claims it keeps.
func (c *jwtCheck) sign(s *signing) error {
	if name := c.wants.missing(s.in); name != "" {
		return errMissing(name)
	}
	key, ok := pick(c.keys, s.slot, func(k tokenKey) int { return k.slot })
	if !ok || key.signer == nil {
		return errCannotSign
	}
	claims := map[string]any{}
	if old, ok := c.from.read(s.in); ok {
		claims = c.oldClaims(old)
	}
	if err := c.claims.fill(s.in, claims); err != nil {
		return err
	}
	c.bodyHash.fill(s.in, claims)
	payload, err := json.Marshal(claims)
	if err != nil {
		return err
	}
	text, err := key.seal(c.algs[0], payload)
	if err != nil {
		return err
	}
	return s.set(c.from, c.scheme+text)
}

// oldClaims are those of a token that the request holds already.
func (c *jwtCheck) oldClaims(text string) map[string]any {
	out := map[string]any{}
	text, _ = c.cut(text)
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return out
	}
	b, err := strictURL.DecodeString(parts[1])
	if err != nil || !soundJSON(string(b)) {
		return out
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber() // as they were written
	if d.Decode(&out) != nil {
		return map[string]any{}
	}
	return out
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
