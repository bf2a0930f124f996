package provider

import (
	"crypto/subtle"
	"encoding/json"
	"hash"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tidwall/gjson"
)

// claimRules say what a proven token must claim.
type claimRules struct {
	issuer   []*template // one of these; nil: not checked
	audience *template   // nil: not checked
	more     []claim
	maxAge   time.Duration // since iat, either way; 0: not checked
	leeway   time.Duration // of exp, nbf
}

// claim is one that must have a value.
type claim struct {
	name string // as written
	path string // for gjson
	want *template
}

func parseClaims(path string, f *authFile) (r claimRules, err error) {
	if r.issuer, err = parseTemplates(join(path, "issuer"), f.Issuer, inConfig); err != nil {
		return r, err
	}
	if f.Audience != nil {
		if r.audience, err = parseTemplate(join(path, "audience"), *f.Audience, inConfig); err != nil {
			return r, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Claims)) {
		c := claim{name: name, path: gjson.Escape(name)}
		if c.want, err = parseTemplate(join(path, "claims."+name), string(f.Claims[name]), inConfig); err != nil {
			return r, err
		}
		r.more = append(r.more, c)
	}
	for _, n := range []struct {
		field string
		from  *int64
		to    *time.Duration
	}{{"max_age_seconds", f.MaxAge, &r.maxAge}, {"leeway_seconds", f.Leeway, &r.leeway}} {
		if n.from != nil {
			if *n.to = seconds(*n.from); *n.to < 0 {
				return r, at(join(path, n.field), "negative")
			}
		}
	}
	return r, nil
}

// with replaces the age by a source's own tolerance.
func (r claimRules) with(tolerance time.Duration) claimRules {
	if tolerance > 0 && r.maxAge > 0 {
		r.maxAge = tolerance
	}
	return r
}

func (r claimRules) each(f func(*placeholder)) {
	for _, t := range r.issuer {
		t.each(f)
	}
	if r.audience != nil {
		r.audience.each(f)
	}
	for _, c := range r.more {
		c.want.each(f)
	}
}

// judge checks the claims of a token whose signature is good.
func (r claimRules) judge(in *input) *Refusal {
	wrong := func(name string) *Refusal {
		return &Refusal{Reason: ClaimMismatch, Detail: "claim " + name, Signed: true}
	}
	if r.issuer != nil && !slices.ContainsFunc(r.issuer, func(t *template) bool { return is(in, gjson.Get(in.claims, "iss"), t) }) {
		return wrong("iss")
	}
	if r.audience != nil && !r.hasAudience(in) {
		return wrong("aud")
	}
	for _, c := range r.more {
		if !is(in, gjson.Get(in.claims, c.path), c.want) {
			return wrong(c.name)
		}
	}
	return r.times(in)
}

func (r claimRules) hasAudience(in *input) bool {
	aud := gjson.Get(in.claims, "aud")
	if !aud.IsArray() {
		return is(in, aud, r.audience)
	}
	return slices.ContainsFunc(aud.Array(), func(one gjson.Result) bool { return is(in, one, r.audience) })
}

// is compares the text of a claim. A template that is empty is met by nothing.
func is(in *input, v gjson.Result, t *template) bool {
	want, missing := t.append(nil, in)
	if missing != nil || len(want) == 0 {
		return false
	}
	switch v.Type {
	case gjson.String:
		return v.Str == string(want)
	case gjson.Number, gjson.True, gjson.False:
		return v.Raw == string(want)
	}
	return false
}

// times checks exp, nbf and the age.
func (r claimRules) times(in *input) *Refusal {
	at := func(name string) (d time.Duration, there, ok bool) { // of now after the claim
		v := gjson.Get(in.claims, name)
		if !v.Exists() || v.Type == gjson.Null {
			return 0, false, true
		}
		const far = 1 << 33 // seconds; a Duration holds a little more
		if v.Type != gjson.Number || math.IsNaN(v.Num) {
			return 0, true, false
		}
		skew := float64(in.now.UnixMilli())/1000 - v.Num
		return time.Duration(min(max(skew, -far), far) * float64(time.Second)), true, true
	}
	mismatch := func(name string, skew time.Duration) *Refusal {
		return &Refusal{Reason: ClaimMismatch, Detail: "claim " + name, Skew: skew, Allowed: r.leeway, Signed: true}
	}
	if d, there, ok := at("exp"); !ok || (there && d >= r.leeway && d > 0) {
		return mismatch("exp", d)
	}
	if d, there, ok := at("nbf"); !ok || (there && d < -r.leeway) {
		return mismatch("nbf", d)
	}
	d, there, ok := at("iat")
	switch {
	case !ok || (!there && r.maxAge > 0):
		return mismatch("iat", 0)
	case r.maxAge > 0 && d > r.maxAge:
		return &Refusal{Reason: TimestampExpired, Detail: "claim iat", Skew: d, Allowed: r.maxAge, Signed: true}
	case r.maxAge > 0 && d < -r.maxAge:
		return &Refusal{Reason: TimestampFuture, Detail: "claim iat", Skew: d, Allowed: r.maxAge, Signed: true}
	}
	return nil
}

// fill writes the claims that judge wants, with the times of now.
func (r claimRules) fill(in *input, claims map[string]any) error {
	text := func(t *template) (string, error) {
		b, missing := t.append(nil, in)
		if missing != nil {
			return "", errMissing(missing.text)
		}
		return string(b), nil
	}
	var err error
	if iss, ok := claims["iss"].(string); r.issuer != nil && !(ok && slices.ContainsFunc(r.issuer, func(t *template) bool {
		v, err := text(t)
		return err == nil && v == iss
	})) {
		if claims["iss"], err = text(r.issuer[0]); err != nil {
			return err
		}
	}
	if r.audience != nil {
		if claims["aud"], err = text(r.audience); err != nil {
			return err
		}
	}
	for _, c := range r.more {
		v, err := text(c.want)
		if err != nil {
			return err
		}
		claims[c.name] = v
		if v == "true" || v == "false" {
			claims[c.name] = v == "true"
		}
	}
	life := int64(300)
	if exp, ok := number(claims["exp"]); ok {
		if iat, ok := number(claims["iat"]); ok && exp > iat {
			life = min(exp-iat, 86400)
		}
	}
	_, had := claims["exp"]
	claims["iat"] = in.now.Unix()
	if had || r.maxAge == 0 {
		claims["exp"] = in.now.Unix() + life
	}
	if _, ok := claims["nbf"]; ok {
		claims["nbf"] = in.now.Unix()
	}
	return nil
}

func number(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

// bodyHash is a digest of the body that a token claims.
type bodyHash struct {
	name     string
	path     string
	newHash  func() hash.Hash
	encoding string
}

func parseBodyHash(path string, f *bodyHashFile) (*bodyHash, error) {
	if f == nil {
		return nil, nil
	}
	h := &bodyHash{name: f.Claim, path: gjson.Escape(f.Claim), newHash: hashes[f.Alg], encoding: f.Encoding}
	switch {
	case f.Claim == "":
		return nil, at(join(path, "claim"), "missing")
	case h.newHash == nil:
		return nil, at(join(path, "alg"), "unknown algorithm %q", f.Alg)
	case !slices.Contains([]string{"hex", "base64", "base64url"}, f.Encoding):
		return nil, at(join(path, "encoding"), "unknown encoding %q", f.Encoding)
	}
	return h, nil
}

func (h *bodyHash) of(in *input) []byte {
	w := h.newHash()
	w.Write(in.r.Body)
	return encode(nil, w.Sum(nil), h.encoding)
}

func (h *bodyHash) judge(in *input) *Refusal {
	if h == nil {
		return nil
	}
	v := gjson.Get(in.claims, h.path)
	if v.Type != gjson.String || subtle.ConstantTimeCompare(h.of(in), []byte(v.Str)) != 1 {
		return &Refusal{Reason: ClaimMismatch, Detail: "claim " + h.name, Signed: true}
	}
	return nil
}

func (h *bodyHash) fill(in *input, claims map[string]any) {
	if h != nil {
		claims[h.name] = string(h.of(in))
	}
}
