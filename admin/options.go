package admin

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/alexedwards/scs/v2"

	"acuse/access"
	"acuse/provider"
	"acuse/store"
)

// Options is what main hands over. Only Archive, Operator, Rejections, Accounts,
// Users, Tokens, Sessions and Files are needed; without one of the functions its
// call answers 501 and its button is not shown.
type Options struct {
	Archive    store.Archive
	Operator   store.Operator
	Orders     store.Orders // nil: where a job stands in its order is not told
	Rejections store.Rejections
	Notices    store.Notices // nil: no notices on the overview
	Accounts   store.Accounts
	Users      *access.Users
	Tokens     *access.Tokens
	Sessions   scs.CtxStore // of access.NewSessionStore
	Files      fs.FS        // holds templates/ and static/

	Sources      func() []Source      // as configured now; called for every page
	Destinations func() []Destination // likewise

	// Release identifies quarantined deliveries again with the present config.
	Release func(ctx context.Context, source string, ids []int64, dryRun bool, by store.Actor) (released, duplicates int, err error)
	// Recheck judges the refused requests of a source again. Its error is an ErrSecret when the
	// secret cannot be one of the source; store.ErrNotFound without the source.
	Recheck func(ctx context.Context, r RecheckRequest) (Rechecked, error)
	// NewKey is the idempotency key of a job of an event: a resend as a new delivery needs it.
	NewKey func(source, eventID, destination string) string
	// Wake tells the lanes of these destinations that jobs are due. It must not block.
	Wake func(destinations []string)
	// Test sends a signed test event through the real edge and tells each step.
	Test func(ctx context.Context, r TestRequest, emit func(TestStep)) error
	// Capture lets a source learn its secret from a handshake: act is "open", "confirm" or
	// "discard"; "" only tells, "await" as soon as no window is open or ctx ended.
	Capture func(ctx context.Context, source, act string) (CaptureState, error)
	// Backup writes a copy of the archive to a new file on this machine, encrypted to age
	// recipients if there are any, and notes when.
	Backup func(ctx context.Context, path, encryptTo string, progress func(done, total int64)) error
	// Storage reckons what the archive takes; nil: there is no Storage page.
	Storage func(ctx context.Context) (Storage, error)
	// BackupNow makes a backup where the planned ones go, and names it.
	BackupNow func(ctx context.Context) (path string, err error)
	// VerifyBackup opens the newest of them as a restore would. ErrNoBackupYet,
	// ErrSealedBackup.
	VerifyBackup func(ctx context.Context) (path string, problems []string, err error)
	// Check looks for damage and returns what it found, a line each.
	Check func(ctx context.Context, full bool) ([]string, error)
	// Erase removes contents for good.
	Erase func(ctx context.Context, q store.Erasure) (store.Erased, error)
	// Import adds a delivery of an export.
	Import func(ctx context.Context, i store.Import) (store.Imported, error)
	// SetupLink makes a new one-time link and says until when it can be used.
	SetupLink func(ctx context.Context) (url string, expires time.Time, err error)
	// Lane tells how a destination stands; nil: not shown.
	Lane func(name string) LaneState
	// LaneAct does "pause", "resume" or "probe" with a destination; what it did is on disk
	// when it returns. store.ErrNotFound, ErrNotDown, ErrPaused.
	LaneAct func(ctx context.Context, name, act string) (changed bool, err error)
	// Health is the state of the engine. nil: taken for writable.
	Health func() store.Health
	// Disk is the room on the volume of the data folder, in bytes. nil: not shown.
	Disk func() (free, total int64)

	Info     Info
	BasePath string         // "/acuse" when a proxy hands over that folder; default "/"
	Language string         // "es" or "en" when neither person nor browser says; default "en"
	Zone     *time.Location // of the times on pages; default time.Local
	Now      func() time.Time
	Log      *slog.Logger
}

// Source is a configured way in, as far as people see it. It holds no secret.
type Source struct {
	Name        string
	Provider    string // catalogue name: "stripe"
	Title       string // for people: "Stripe"
	Address     string // what is pasted at the provider: "https://hooks.example.org/in/stripe"
	Secrets     int    // how many are configured
	Unsigned    bool   // takes requests without a signature
	Waiting     bool   // waits for the handshake that brings its secret
	Captures    bool   // its provider sends the secret in a handshake
	DeliverTo   []string
	AuthHeaders []string // names of headers that carry signatures or tokens
	AuthQuery   []string // names of query parameters that do
	Window      time.Duration
	WindowWhy   provider.WindowReason
	MaxBody     int64
	Tolerance   time.Duration
	About       *About // nil: a source without a provider
}

// About is what people want to know of a source's provider.
type About struct {
	Facts   provider.Facts
	Connect *provider.Connect // nil: the file does not say
	Docs    []string
	Types   []string // of which a test event can be sent
}

// Destination is a configured place that events go to.
type Destination struct {
	Name    string
	Kind    string // http, exec, pull
	URL     string // of http; shown with credentials and query values hidden
	Program string // of exec, without arguments
	Budget  int    // attempts before a job is dead; 0 is no limit
}

// Info is what the about page and the status say about this process.
type Info struct {
	Name      string // of this installation; may be empty
	Version   string
	Commit    string
	DataDir   string
	StartedAt time.Time
	DocsURL   string // http or https; empty: no link
}

// RecheckRequest asks for the refused requests of a source to be judged again.
type RecheckRequest struct {
	Source    string
	Secret    string        // tried besides the configured ones; kept nowhere
	Tolerance time.Duration // instead of the source's; 0: the source's
	Deliver   bool          // let in what passes
	By        store.Actor
}

// Rechecked counts what became of them.
type Rechecked struct {
	Checked     int `json:"checked"`
	WouldVerify int `json:"would_verify"`
	Delivered   int `json:"delivered"`
	Duplicates  int `json:"duplicates"`
	Quarantined int `json:"quarantined"`
}

// ErrSecret is the error of a recheck whose secret cannot be one of the source; its text
// hides the secret.
var ErrSecret = errors.New("admin: the secret is of no use here")

// TestRequest asks for a test event.
type TestRequest struct {
	Source  string `json:"-"`
	Type    string `json:"type"`    // empty: the provider's first sample
	Deliver bool   `json:"deliver"` // to the real destinations instead of the built-in echo
}

func (o *Options) fill() {
	if o.Sources == nil {
		o.Sources = func() []Source { return nil }
	}
	if o.Destinations == nil {
		o.Destinations = func() []Destination { return nil }
	}
	if o.Wake == nil {
		o.Wake = func([]string) {}
	}
	if o.Health == nil {
		o.Health = func() store.Health { return store.Health{Writable: true} }
	}
	if o.Disk == nil {
		o.Disk = func() (int64, int64) { return 0, 0 }
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Language != "es" {
		o.Language = "en"
	}
}
