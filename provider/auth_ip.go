package provider

import (
	"net/http"
	"net/netip"
	"strings"
)

// ipPlan is kind ip: the address of the sender. The caller hands in whom it believes to
// be the sender (Request.Remote); where that is a proxy of this file's own list, the
// forwarded header is read from the right to the first address that is none.
type ipPlan struct {
	allow, trusted []netip.Prefix
	forwarded      *place
}

func parseIP(path string, f *authFile) (plan, error) {
	p := &ipPlan{}
	var err error
	if p.allow, err = parsePrefixes(join(path, "allow"), f.Allow); err != nil {
		return nil, err
	}
	if len(p.allow) == 0 {
		return nil, at(join(path, "allow"), "missing")
	}
	if p.trusted, err = parsePrefixes(join(path, "trusted_proxies"), f.Trusted); err != nil {
		return nil, err
	}
	if f.Forwarded != "" {
		from, err := parsePlace(join(path, "forwarded"), f.Forwarded)
		if err != nil {
			return nil, err
		}
		if from.src != srcHeader {
			return nil, at(join(path, "forwarded"), "want header:NAME")
		}
		p.forwarded = &from
	}
	return p, nil
}

// parsePrefixes reads ranges, and addresses, which are ranges of one.
func parsePrefixes(path string, list []string) (out []netip.Prefix, err error) {
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if a, e := netip.ParseAddr(text); e == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return nil, at(path, "%q is neither an address nor a range", text)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func (p *ipPlan) each(f func(*placeholder)) {
	if p.forwarded != nil {
		f(p.forwarded.placeholder)
	}
}

func (p *ipPlan) bind(b *binding) (check, error) {
	if b.rehearsal != nil {
		return b.rehearsal.seal(), nil
	}
	return &ipCheck{p}, nil
}

type ipCheck struct{ *ipPlan }

func (c *ipCheck) verify(in *input) verdict {
	in.hidden = nil
	if addr := c.sender(in); !addr.IsValid() || !within(c.allow, addr) {
		return refuse(IPNotAllowed, "", false)
	}
	return verdict{}
}

// sender walks over the file's own proxies.
func (c *ipCheck) sender(in *input) netip.Addr {
	addr := in.r.Remote.Unmap()
	if c.forwarded == nil || !within(c.trusted, addr) {
		return addr
	}
	text, ok := c.forwarded.read(in)
	if !ok {
		return addr
	}
	hops := strings.Split(text, ",")
	for i := len(hops) - 1; i >= 0; i-- {
		a, ok := hop(hops[i])
		if !ok {
			return netip.Addr{} // who can say
		}
		if addr = a; !within(c.trusted, a) {
			break
		}
	}
	return addr
}

// hop reads an entry of a forwarded header: an address, with a port or without.
func hop(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return a.Unmap(), err == nil
}

func within(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func (c *ipCheck) early(http.Header) *Refusal { return nil } // the address is not a header
func (c *ipCheck) present(*input) bool        { return true }
func (c *ipCheck) marks(func(*placeholder))   {}
func (c *ipCheck) canSign() bool              { return false }
func (c *ipCheck) sign(*signing) error        { return errCannotSign }
