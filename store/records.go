package store

import (
	"context"
	"time"
)

// Rejections is the bounded ring of refused requests, kept off the commit path.
type Rejections interface {
	// Reject keeps a refused request, or counts it on the row of the same source,
	// reason and body digest. It must not be called on the path of an answer. Each
	// source has its share of the ring; what is over goes, unsigned ones first.
	Reject(ctx context.Context, r Rejection) error
	// RejectionList lists newest first, before the id given (0: the newest).
	RejectionList(ctx context.Context, source string, before int64, limit int) ([]Rejection, error)
	// RejectionByID reads one with its headers and body. ErrNotFound.
	RejectionByID(ctx context.Context, id int64) (Rejection, error)
	// RemoveRejection takes one out, once it was let in after all. What is not there is no
	// error; it stays counted.
	RemoveRejection(ctx context.Context, id int64) error
	// RejectionsSince counts requests refused since the minute of t, repeats included;
	// it goes back 7 days.
	RejectionsSince(ctx context.Context, t time.Time) (int64, error)
}

// Rejection is a refused request.
type Rejection struct {
	ID          int64
	Source      string
	Reason      string // machine word: "signature_mismatch", "too_large", …
	Detail      string // what a page may show: "skew=840s;cause=too_old", never a secret
	Undiagnosed bool   // nobody looked for the cause: a repeat leaves the row's Detail as it is; not kept
	Remote      string
	FirstAt, At time.Time // first and latest
	Count       int
	Status      int  // answered
	Signed      bool // carried a well-formed signature header
	Method      string
	Target      string
	Header      []byte // EncodeHeader's form; token headers as keyed digests
	Body        []byte // nil when it was not read
	Size        int
}

// Notices is the stored state of the alerts, so that a crash loses none.
type Notices interface {
	// NoticeList lists the notices that are open or ended less than a day before now.
	NoticeList(ctx context.Context, now time.Time) ([]Notice, error)
	// PutNotice writes a notice by its rule and subject.
	PutNotice(ctx context.Context, n Notice) error
}

// Notice is one matter a person is told about: when it started, once a day as a
// reminder, and when it ended.
type Notice struct {
	Rule    string // "dead", "quarantine", "storage", …
	Subject string // destination or source; empty for the whole
	Since   time.Time
	Ended   time.Time // zero: still open
	SentAt  time.Time // zero: not told yet
	SentEnd bool      // the end was told
	Count   int64
	Text    string // what a page shows
	Error   string // why the last sending failed; empty: it did not
}

// Accounts keeps people, tokens, sessions and small settings.
type Accounts interface {
	// PutUser adds or replaces by name; UserByName and Users read. ErrNotFound.
	PutUser(ctx context.Context, u User) error
	UserByName(ctx context.Context, name string) (User, error)
	Users(ctx context.Context) ([]User, error)
	RemoveUser(ctx context.Context, name string) error

	// PutToken adds or replaces by id; TokenByHash finds a live one. ErrNotFound.
	PutToken(ctx context.Context, t Token) error
	TokenByHash(ctx context.Context, hash []byte) (Token, error)
	Tokens(ctx context.Context) ([]Token, error)
	RemoveToken(ctx context.Context, id string) error

	// Sessions hold opaque data by the digest of their token.
	PutSession(ctx context.Context, s Session) error
	SessionByID(ctx context.Context, id string) (Session, error)
	RemoveSession(ctx context.Context, id string) error
	// ExpireSessions removes the sessions that ended before now.
	ExpireSessions(ctx context.Context, now time.Time) error

	// Setting reads a small value by name; ok is false when it was never written.
	Setting(ctx context.Context, name string) (value string, ok bool, err error)
	PutSetting(ctx context.Context, name, value string) error
}

// SettingLastBackup holds when the last backup was made, planned or not: RFC 3339.
const SettingLastBackup = "admin.last_backup"

// User is a person who can log in.
type User struct {
	Name      string
	Role      string // owner, operator, viewer
	Password  string // argon2id in PHC form
	Language  string // "es", "en"; empty: as the browser says
	CreatedAt time.Time
}

// Token is a bearer token of the API. Only its digest is kept.
type Token struct {
	ID        string
	Name      string
	Agent     string // the agent it stands for; empty: its own name
	Hash      []byte // SHA-256
	Scopes    []string
	CreatedAt time.Time
	LastUsed  time.Time // zero: never
	Expires   time.Time // zero: never
}

// Session is a login of a browser.
type Session struct {
	ID      string // hex digest of the cookie's value
	User    string // empty before login
	Data    []byte // opaque
	Expires time.Time
}
