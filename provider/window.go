package provider

import (
	"net/http"
	"time"
)

// Horizon is how long the provider goes on retrying; 0 is not known.
func (p *Provider) Horizon() time.Duration { return hours(p.file.Retry.HorizonHours) }

func hours(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }

// WindowReason says what a dedup window follows from.
type WindowReason string

// The reasons, each the longest of what counts.
const (
	WindowFile    WindowReason = "file"    // the provider repeats on purpose after that time
	WindowHash    WindowReason = "hash"    // the id is a digest of the body: no longer than retries go on
	WindowWeek    WindowReason = "week"    // the least there is
	WindowHorizon WindowReason = "horizon" // 1.5 times as long as the provider retries
	WindowResend  WindowReason = "resend"  // a day more than a person can send it again there
	WindowRow     WindowReason = "row"     // as long as the delivery is kept
	WindowOwn     WindowReason = "own"     // the source's own dedup_window
)

// WithRow says that a window for this reason lasts at least as long as the delivery is kept,
// which may be longer than its age allows: a job that waits, a dead letter.
func (w WindowReason) WithRow() bool {
	return w == WindowWeek || w == WindowHorizon || w == WindowResend || w == WindowRow
}

// Window is how long the dedup key of an event must be remembered, before the source's
// own setting: the file's own window, or the longest of 7 days, 1.5 times the horizon,
// a day more than a resend is possible, and row, the life of the delivery's row.
// bodyHash: the id is a digest of the body, remembered for the horizon only (24 h when
// that is not known), since the same body may mean something new later.
func (p *Provider) Window(bodyHash bool, row time.Duration) time.Duration {
	d, _ := p.WindowWhy(bodyHash, row)
	return d
}

// WindowWhy is Window and what it follows from.
func (p *Provider) WindowWhy(bodyHash bool, row time.Duration) (time.Duration, WindowReason) {
	const day = 24 * time.Hour
	if h := p.file.ID.WindowHours; h > 0 {
		return hours(h), WindowFile
	}
	horizon := p.Horizon()
	if bodyHash {
		if horizon > 0 {
			return horizon, WindowHash
		}
		return day, WindowHash
	}
	longest, why := 7*day, WindowWeek
	for _, one := range []struct {
		d   time.Duration
		why WindowReason
	}{{horizon * 3 / 2, WindowHorizon}, {hours(24 * (p.file.Retry.ResendDays + 1)), WindowResend}, {row, WindowRow}} {
		if one.d > longest {
			longest, why = one.d, one.why
		}
	}
	return longest, why
}

// MaxBody is how many bytes the provider may send; 0 is not stated.
func (p *Provider) MaxBody() int64 { return p.file.MaxBody }

// RejectStatus is the status the provider wants for a failed check; 401 by default.
func (p *Provider) RejectStatus() int {
	for _, a := range p.answers {
		if a.reject != 0 {
			return a.reject
		}
	}
	return http.StatusUnauthorized
}

// IDScope says among what the provider's ids are unique: global, account, endpoint, bot, source.
func (p *Provider) IDScope() string { return p.file.ID.Scope }

// Docs are the provider's own pages, most useful first.
func (p *Provider) Docs() []string { return p.file.Docs }

// Connect is how to set a source up there; nil when the file does not say.
func (p *Provider) Connect() *Connect { return p.file.Connect }

// SecretHelp is what people call the secret, where they find it, and what it is good for.
func (p *Provider) SecretHelp() (label, where, per string) {
	return secretHelp(&p.file.Auth)
}

func secretHelp(a *authFile) (label, where, per string) {
	if a.Secret != nil {
		return a.Secret.Label, a.Secret.Where, a.Secret.Per
	}
	for i := range a.Of {
		if label, where, per = secretHelp(&a.Of[i]); label != "" {
			break
		}
	}
	return label, where, per
}

// unsigned tells whether the file asks for no authentication at all.
func (p *Provider) unsigned() bool {
	_, open := p.auth.(nonePlan)
	return open
}
