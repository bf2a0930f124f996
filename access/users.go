package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"acuse/store"
)

// The roles of a person.
const (
	RoleOwner    = "owner"    // everything
	RoleOperator = "operator" // looks, resends, approves
	RoleViewer   = "viewer"   // looks, without bodies
)

// The errors of people.
var (
	// ErrLogin reports a wrong name or password; it does not say which.
	ErrLogin = errors.New("access: name or password is wrong")
	// ErrPassword reports a password that is too short or too long.
	ErrPassword = errors.New("access: a password has 12 to 1024 characters")
	// ErrName reports a name that cannot be used.
	ErrName = errors.New("access: name")
	// ErrRole reports an unknown role.
	ErrRole = errors.New("access: role is none of owner, operator, viewer")
	// ErrExists reports that a user of that name is there already.
	ErrExists = errors.New("access: a user of that name exists")
	// ErrLastOwner reports that without this user nobody could manage acuse.
	ErrLastOwner = errors.New("access: the last owner cannot be removed")
)

// MinPassword is the shortest password in characters. No kinds are demanded:
// length is what counts (NIST SP 800-63B).
const MinPassword = 12

const maxPassword = 1024

// maxWaiting is how many logins may wait for the one that is being computed.
const maxWaiting = 32

// UsersOptions configure Users.
type UsersOptions struct {
	Accounts store.Accounts
	Now      func() time.Time // default time.Now
}

// Users are the people who can log in. One password is computed at a time, so
// that a flood of logins costs 19 MiB and one core, no more.
type Users struct {
	accounts store.Accounts
	now      func() time.Time
	throttle *throttle
	hashing  chan struct{} // of one
	waiting  atomic.Int32

	mu sync.Mutex // held over every change of a user and over the setup link
}

// NewUsers returns Users over the accounts.
func NewUsers(o UsersOptions) *Users {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Users{accounts: o.Accounts, now: o.Now, throttle: newThrottle(), hashing: make(chan struct{}, 1)}
}

// Empty tells whether nobody can log in yet.
func (u *Users) Empty(ctx context.Context) (bool, error) {
	list, err := u.accounts.Users(ctx)
	return len(list) == 0, err
}

// List reads everybody.
func (u *Users) List(ctx context.Context) ([]store.User, error) { return u.accounts.Users(ctx) }

// Create adds a person. ErrName, ErrPassword, ErrRole, ErrExists.
func (u *Users) Create(ctx context.Context, name, password, role string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if role != RoleOwner && role != RoleOperator && role != RoleViewer {
		return ErrRole
	}
	phc, err := u.hash(ctx, password)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, err := u.accounts.UserByName(ctx, name); err == nil {
		return ErrExists
	} else if !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("create user %s: %w", name, err)
	}
	return u.accounts.PutUser(ctx, store.User{Name: name, Role: role, Password: phc, CreatedAt: u.now().UTC()})
}

// SetPassword replaces a password. The person's Stamp changes with it, which ends
// the sessions made before. ErrPassword, ErrNotFound of the store.
func (u *Users) SetPassword(ctx context.Context, name, password string) error {
	phc, err := u.hash(ctx, password)
	if err != nil {
		return err
	}
	return u.change(ctx, name, func(p *store.User) { p.Password = phc })
}

// SetLanguage keeps the language of a person's pages: "es", "en", or empty for
// what the browser says.
func (u *Users) SetLanguage(ctx context.Context, name, language string) error {
	return u.change(ctx, name, func(p *store.User) { p.Language = language })
}

func (u *Users) change(ctx context.Context, name string, f func(*store.User)) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	p, err := u.accounts.UserByName(ctx, name)
	if err != nil {
		return fmt.Errorf("user %s: %w", name, err)
	}
	f(&p)
	return u.accounts.PutUser(ctx, p)
}

// Remove takes a person out. ErrLastOwner, ErrNotFound of the store.
func (u *Users) Remove(ctx context.Context, name string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	list, err := u.accounts.Users(ctx)
	if err != nil {
		return fmt.Errorf("remove user %s: %w", name, err)
	}
	others, here := 0, false
	for _, p := range list {
		here = here || p.Name == name
		if p.Name != name && p.Role == RoleOwner {
			others++
		}
	}
	switch {
	case !here:
		return fmt.Errorf("remove user %s: %w", name, store.ErrNotFound)
	case others == 0:
		return ErrLastOwner
	}
	return u.accounts.RemoveUser(ctx, name)
}

// Login checks a name and a password given from an address. An unknown name costs
// what a wrong password costs. ErrLogin, a *Throttled, or an error of the store.
func (u *Users) Login(ctx context.Context, name, password, from string) (store.User, error) {
	if n := u.waiting.Add(1); n > maxWaiting {
		u.waiting.Add(-1)
		return store.User{}, &Throttled{Wait: time.Second}
	}
	defer u.waiting.Add(-1)
	if err := u.enter(ctx); err != nil {
		return store.User{}, err
	}
	defer u.leave()
	// Asked while holding the only place: tries that came together are counted one by one.
	if wait := u.throttle.wait(name, from, u.now()); wait > 0 {
		return store.User{}, &Throttled{Wait: wait}
	}
	p, err := u.accounts.UserByName(ctx, name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.User{}, fmt.Errorf("login: %w", err)
	}
	if !verifyPassword(p.Password, password) { // computes as much for an empty one
		u.throttle.failed(name, from, u.now())
		return store.User{}, ErrLogin
	}
	u.throttle.passed(name, from, u.now())
	return p, nil
}

func (u *Users) hash(ctx context.Context, password string) (string, error) {
	if n := utf8.RuneCountInString(password); n < MinPassword || len(password) > maxPassword {
		return "", ErrPassword
	}
	if err := u.enter(ctx); err != nil {
		return "", err
	}
	defer u.leave()
	return hashPassword(password), nil
}

func (u *Users) enter(ctx context.Context) error {
	select {
	case u.hashing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *Users) leave() { <-u.hashing }

// checkName refuses what would be confusing in a list or a log line.
func checkName(name string) error {
	if name == "" || utf8.RuneCountInString(name) > 64 {
		return fmt.Errorf("%w: 1 to 64 characters", ErrName)
	}
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-@", r) {
			return fmt.Errorf("%w: letters, digits and . _ - @ only", ErrName)
		}
	}
	return nil
}
