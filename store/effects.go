package store

import (
	"context"
	"time"
)

// EffectState is where an effect stands.
type EffectState int

// The states of an effect. The numbers are on disk: never change one.
const (
	EffectWaiting    EffectState = iota + 1 // for a person's approval, or approved and about to run
	EffectInProgress                        // claimed: it may be happening now
	EffectDone                              // it happened, or was answered for good
	EffectFailed                            // it did not happen; the key may run again
	EffectInDoubt                           // whether it happened is not known; a person or a probe decides
	EffectRefused                           // a person said no; never runs
	EffectExpired                           // nobody approved it in time; never runs
)

// Finished tells whether time may remove the effect: the others wait for somebody.
func (s EffectState) Finished() bool {
	return s == EffectDone || s == EffectFailed || s == EffectRefused || s == EffectExpired
}

// Effects keeps the outbound actions: at most one for each (scope, agent, action, key),
// by the engine's constraint. Each act of a person writes its audit entry in the same
// transaction.
type Effects interface {
	// ClaimEffect makes the effect of a key new to its scope, agent and action, or finds
	// the one there, and tells what the caller is to do. With ClaimRun the effect is in
	// progress under a new token, on disk before the call returns. A key whose effect has
	// outlived its ExpiresAt is new.
	ClaimEffect(ctx context.Context, c EffectClaim) (EffectClaimed, error)
	// RenewEffect moves the deadline of a claim. ErrLeaseLost when the token is not the
	// effect's current one, or it is not in progress any more.
	RenewEffect(ctx context.Context, id, token int64, until time.Time) error
	// RunEffect starts another try of an effect: of one in progress under the token
	// given, or, with token 0, of an approved one that waits. It is in progress under a
	// new token then. ErrLeaseLost when the token is not current, ErrState when it is not
	// approved, ErrPayloadGone when its request was removed.
	RunEffect(ctx context.Context, id, token int64, owner string, at time.Time) (Effect, EffectBytes, error)
	// SettleEffect writes the outcome of a try, also of one that is in doubt because its
	// claim ran out: late news is news. ErrLeaseLost when the token is not current: then
	// nothing is written.
	SettleEffect(ctx context.Context, s EffectSettlement) (Effect, error)
	// ExpireEffects ends what time ends, up to limit: waiting ones whose approval was due
	// by now expire, claims with a deadline before now are in doubt. It returns them.
	ExpireEffects(ctx context.Context, now time.Time, limit int) ([]Effect, error)
	// NextEffectDue is the earliest instant at which ExpireEffects has work.
	NextEffectDue(ctx context.Context) (due time.Time, ok bool, err error)
	// StrandedEffects lists up to limit effects in progress, without a deadline, of owners
	// that share prefix but not current, by number after the one given: runs of this
	// node's earlier lives.
	StrandedEffects(ctx context.Context, prefix, current string, after int64, limit int) ([]Effect, error)
	// ApprovedEffects lists up to limit approved effects that wait to be run by acuse
	// itself, by number after the one given.
	ApprovedEffects(ctx context.Context, after int64, limit int) ([]Effect, error)
	// DecideEffect does what a person, or a probe, says. ErrState when the effect is not in a
	// state for it, ErrCardChanged when the card shown is not the current one.
	DecideEffect(ctx context.Context, d EffectDecision) (Effect, error)
	// EffectByID reads one.
	EffectByID(ctx context.Context, id int64) (Effect, error)
	// EffectByKey reads the one of a key. An empty action finds the newest of the key.
	EffectByKey(ctx context.Context, scope, agent, action, key string) (Effect, error)
	// EffectBytes reads the request and the answer of one; what retention removed is nil.
	EffectBytes(ctx context.Context, id int64) (EffectBytes, error)
	// ListEffects lists newest first.
	ListEffects(ctx context.Context, q EffectQuery) ([]Effect, error)
	// CountEffects counts by state; no effect of a state, no entry.
	CountEffects(ctx context.Context) (map[EffectState]int64, error)
}

// KeyOrigin is how the key of an effect came about. The numbers are on disk.
type KeyOrigin int

// The origins of a key.
const (
	KeyOfEvent KeyOrigin = iota + 1 // event and action
	KeyOfTask                       // task and step
	KeyGiven                        // the caller's own
)

// EffectClaim asks to run an action once.
type EffectClaim struct {
	Scope, Agent, Action, Key string // together unique
	Origin                    KeyOrigin
	// Fingerprint is a digest of what the key stands for; another one under the same key
	// is a mismatch.
	Fingerprint string
	// Card is a digest of the exact bytes: an approval holds for these alone. "" is none.
	Card string

	Delivery, Job   int64 // what caused it; 0: unknown
	Attempt         int
	Task, Step      string
	Method, Path    string // as sent: the path with its query; empty for a claim by API
	UpstreamKey     string // sent to the upstream; empty: none
	Request         EffectRequest
	Owner           string        // node, run and kind of the worker: "n1/4f2a/gateway"
	Now             time.Time     //
	TTL             time.Duration // the claim runs until Now+TTL; 0: as long as its owner lives
	Expiry          time.Duration // how long a finished, unbound one is remembered
	NeedsApproval   string        // why a person must agree: "always", "rule"; empty: need not
	ApprovalTimeout time.Duration // 0 waits for ever
	LimitRuns       int           // above so many of the scope within LimitWindow a person must agree; 0: no limit
	LimitWindow     time.Duration
	// Token renews the claim that holds it; 0 claims anew.
	Token int64
}

// EffectRequest is what is to be done, exactly.
type EffectRequest struct {
	Header []byte // EncodeHeader's form
	Body   []byte
}

// Verdict is what a claim comes to.
type Verdict int

// The verdicts.
const (
	ClaimRun      Verdict = iota + 1 // it is yours: run it, then settle it
	ClaimReplay                      // done before: give the stored answer
	ClaimBusy                        // in progress elsewhere
	ClaimDoubt                       // in doubt
	ClaimWaits                       // for approval
	ClaimRefused                     // a person said no
	ClaimExpired                     // nobody approved it in time
	ClaimMismatch                    // the key stands for something else
)

// EffectClaimed is the answer to a claim.
type EffectClaimed struct {
	Verdict Verdict
	Effect  Effect // as it is now
	New     bool   // this claim made it
	// NewCard says that the bytes changed while it waited: what was shown before cannot
	// be approved any more.
	NewCard bool
}

// Effect is one outbound action.
type Effect struct {
	ID                        int64 // never used again
	Scope, Agent, Action, Key string
	Origin                    KeyOrigin
	State                     EffectState
	Fingerprint, Card         string
	Delivery, Job             int64
	Attempt                   int
	Task, Step                string
	Method, Path              string
	UpstreamKey               string
	Token                     int64 // fencing token: rises with every try; 0 when none may settle it
	Owner                     string
	Until                     time.Time     // deadline of the claim; zero: as long as its owner lives
	Expiry                    time.Duration // how long it is remembered once finished, when it is bound to no delivery
	Tries                     int
	CreatedAt                 time.Time
	FirstTryAt, StartedAt     time.Time // of the first and of the latest try; zero: none yet
	SettledAt                 time.Time // zero while it is not finished or in doubt
	ExpiresAt                 time.Time // when a finished one is forgotten; zero: not by time
	Status                    int       // of the answer; 0: none
	Class, Error              string    // machine word of a failure; for people, without bodies or secrets
	Replays                   int64
	LastReplayAt              time.Time
	Approval                  string    // why a person must agree: "always", "rule", "limit"; empty: need not
	ApprovalBy                time.Time // when a waiting one expires; zero: never
	ApprovedAt                time.Time // for the current Card; zero: not approved
	DecidedBy, Note           string    // who approved, refused or decided last, and why
	RequestGone, AnswerGone   bool      // removed by retention, or an outcome that a person told
}

// EffectBytes is what an effect sent and got.
type EffectBytes struct {
	Request EffectRequest
	Header  []byte // of the answer, EncodeHeader's form
	Body    []byte // of the answer
}

// EffectSettlement is the outcome of one try.
type EffectSettlement struct {
	ID, Token int64
	At        time.Time
	State     EffectState // EffectDone, EffectFailed or EffectInDoubt
	Status    int
	Header    []byte // of the answer; kept with EffectDone alone
	Body      []byte
	Class     string
	Error     string
}

// EffectAct is what a person can do to an effect.
type EffectAct string

// The acts. A retry counts as an approval of the bytes that are there.
const (
	ApproveEffect EffectAct = "approve" // of a waiting one
	RefuseEffect  EffectAct = "refuse"  // of a waiting one
	MarkDone      EffectAct = "done"    // of one in doubt: it happened
	RetryEffect   EffectAct = "retry"   // of one in doubt: it did not happen
)

// EffectDecision is one act.
type EffectDecision struct {
	ID     int64
	Act    EffectAct
	Card   string // the card that was shown; empty: whatever is there
	Reason string
	By     Actor
	At     time.Time
}

// EffectQuery narrows a list; zero fields do not.
type EffectQuery struct {
	Before   int64 // below this number
	Limit    int   // at least 1
	Scope    string
	Agent    string
	State    EffectState
	Delivery int64
}
