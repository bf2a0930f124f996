package provider

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// setAuth compiles the auth that counts: the source's own, none, or the file's.
func (c *Checker) setAuth(s *Settings) (err error) {
	c.plan = c.provider.auth
	switch {
	case s.Unsigned && len(s.Auth) > 0:
		return errors.New("unsigned: not together with auth")
	case s.Unsigned:
		c.plan = nonePlan{}
	case len(s.Auth) > 0:
		var f authFile
		if err := strict("auth", s.Auth, &f); err != nil {
			return err
		}
		if c.plan, err = parseAuth("auth", &f); err != nil {
			return err
		}
	case c.plan == nil:
		return errors.New("auth: missing; a source without a provider needs auth or unsigned: true")
	}
	if _, c.unverified = c.plan.(nonePlan); c.unverified && !s.Unsigned {
		return errors.New("auth: kind none lets anybody in; say unsigned: true if that is meant")
	}
	if cb, ok := c.plan.(*callbackPlan); ok && len(s.Secrets) == 0 && !s.Waiting {
		if len(cb.confirm) == 0 {
			return errors.New("auth: this provider signs nothing, and there is no way to confirm an event; say unsigned: true to take hints from anybody")
		}
		return errors.New("secrets: missing: the provider signs nothing; give its API key, so that acuse asks back before it believes an event, or say unsigned: true to take hints from anybody")
	}
	if err := c.checkSecrets(s); err != nil {
		return err
	}
	if err := c.checkParams(s); err != nil {
		return err
	}
	b := newBinding(s, c.limit)
	if c.auth, err = c.plan.bind(b); err != nil {
		return err
	}
	for i, used := range b.used {
		if !used && b.why[i] != nil {
			return fmt.Errorf("secrets[%d]: %w", i, b.why[i])
		}
	}
	return nil
}

func (c *Checker) checkSecrets(s *Settings) error {
	switch {
	case len(s.Secrets) > maxSecrets:
		return fmt.Errorf("secrets: at most %d", maxSecrets)
	case len(s.Secrets) == 0 && !c.unverified && !s.Waiting && needsSecret(c.plan):
		return errors.New("secrets: missing; say unsigned: true to take requests from anybody")
	case s.Tolerance < 0:
		return errors.New("tolerance: negative")
	}
	for i, secret := range s.Secrets {
		if secret == "" {
			return fmt.Errorf("secrets[%d]: is empty", i)
		}
	}
	return nil
}

// needsSecret is false where the keys are fetched or there are none, and for kinds that
// this version refuses anyway, so that their own message is the one shown.
func needsSecret(p plan) bool {
	switch p := p.(type) {
	case later, *ipPlan:
		return false
	case *signedPlan:
		return p.remote == nil
	case *jwtPlan:
		return p.remote == nil || p.remote.kind == "jwk-by-kid"
	case whenPlan:
		return needsSecret(p.plan)
	case groupPlan:
		if p.all {
			return slices.ContainsFunc(p.of, needsSecret)
		}
		return !slices.ContainsFunc(p.of, func(one plan) bool { return !needsSecret(one) })
	}
	return true
}

// checkParams wants every param that the auth reads, and knows no others.
func (c *Checker) checkParams(s *Settings) error {
	if name := missingParam(c.plan, s); name != "" {
		return fmt.Errorf("params.%s: missing; the provider's signature needs it", name)
	}
	if len(s.Params) == 0 {
		return nil
	}
	known := c.params
	if c.provider.auth != nil {
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if !slices.Contains(c.knownParams(), name) {
				return fmt.Errorf("params.%s: provider %s has no such parameter", name, c.provider.Name)
			}
		}
	}
	return nil
}

// missingParam names a param that the auth cannot do without. Of alternatives one that a
// source is set up for is enough.
func missingParam(p plan, s *Settings) (name string) {
	switch p := p.(type) {
	case whenPlan:
		return missingParam(p.plan, s)
	case groupPlan:
		for _, one := range p.of {
			missing := missingParam(one, s)
			if !p.all && missing == "" && usable(one, s) {
				return ""
			}
			if name == "" {
				name = missing
			}
		}
		return name
	}
	p.each(func(ph *placeholder) {
		if ph.src == srcParam && ph.usual == "" && s.Params[ph.arg] == "" && name == "" {
			name = ph.arg
		}
	})
	return name
}

// usable tells whether a source brings what an alternative needs.
func usable(p plan, s *Settings) bool {
	return missingParam(p, s) == "" && (!needsSecret(p) || len(s.Secrets) > 0 || s.Waiting)
}

func (c *Checker) knownParams() []string {
	known := c.provider.Params()
	c.plan.each(func(p *placeholder) {
		if p.src == srcParam {
			known = append(known, p.arg)
		}
	})
	return known
}

// setIdentity lays the source's own rules over the file's. An own id rule that reads the
// item of a batch is that of each item; any other is that of the request, which is then
// one event and not looked into.
func (c *Checker) setIdentity(s *Settings) (err error) {
	p := c.provider
	c.ids, c.types, c.resources, c.versions, c.batch = ids{first: p.key}, p.types, p.resource, p.versions, p.batch
	switch s.Batch {
	case "", "split", "whole":
	default:
		return fmt.Errorf("batch: want split or whole, not %q", s.Batch)
	}
	c.splits = s.Batch != "whole" && p.splits()
	use := inIdentity
	if len(c.batch) > 0 {
		use = inItem
	}
	var itemIDs *ids
	if s.ID != nil {
		own, err := parseIDs("id", s.ID, use)
		if err != nil {
			return err
		}
		if usesItem(own.first, own.join) {
			itemIDs = &own
		} else {
			c.ids, c.oneID, c.required = own, true, false
		}
	}
	types, err := parseTemplates("type", s.Type, use)
	if err != nil {
		return err
	}
	resources, err := parseTemplates("resource", s.Resource, use)
	if err != nil {
		return err
	}
	if s.Type != nil {
		c.types = types
	}
	if s.Resource != nil {
		c.resources = resources
	}
	c.batch = slices.Clone(c.batch)
	for i, b := range c.batch {
		one := *b
		if itemIDs != nil {
			one.ids = *itemIDs
		}
		if s.Type != nil {
			one.types = types
		}
		if s.Resource != nil {
			one.resources = resources
		}
		c.batch[i] = &one
	}
	return nil
}

// splits tells whether the original envelope can be made anew around one item of a batch.
func (p *Provider) splits() bool { return len(p.batch) == 1 && len(p.batch[0].steps) == 1 }
