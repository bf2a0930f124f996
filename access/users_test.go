package access

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"acuse/store"
)

const (
	good  = "correct horse battery"
	wrong = "incorrect horse battery"
	home  = "203.0.113.7"
)

func people(t *testing.T) (*Users, *memory, *clock) {
	t.Helper()
	m, c := newMemory(), newClock()
	u := NewUsers(UsersOptions{Accounts: m, Now: c.now})
	if err := u.Create(t.Context(), "ana", good, RoleOwner); err != nil {
		t.Fatal(err)
	}
	return u, m, c
}

func TestLogin(t *testing.T) {
	t.Parallel()
	u, m, _ := people(t)
	p, err := u.Login(t.Context(), "ana", good, home)
	if err != nil || p.Name != "ana" || p.Role != RoleOwner {
		t.Errorf("got %v, %v", p, err)
	}
	if phc := m.users["ana"].Password; !strings.HasPrefix(phc, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(phc, good) {
		t.Errorf("kept as %q", phc)
	}
	for _, c := range [][2]string{{"ana", wrong}, {"ana", ""}, {"eva", good}, {"", ""}, {"ana", strings.Repeat("x", 2000)}} {
		if _, err := u.Login(t.Context(), c[0], c[1], home); !errors.Is(err, ErrLogin) {
			t.Errorf("%.20q: got %v", c, err)
		}
	}
}

func TestUsersAreChecked(t *testing.T) {
	t.Parallel()
	u, m, _ := people(t)
	for name, c := range map[string]struct {
		user, password, role string
		want                 error
	}{
		"a short password":         {"eva", "eleven char", RoleViewer, ErrPassword},
		"an endless password":      {"eva", strings.Repeat("x", 1025), RoleViewer, ErrPassword},
		"no name":                  {"", good, RoleViewer, ErrName},
		"a name with a line break": {"e\nva", good, RoleViewer, ErrName},
		"a name of 65 letters":     {strings.Repeat("x", 65), good, RoleViewer, ErrName},
		"an unknown role":          {"eva", good, "root", ErrRole},
		"a name that is taken":     {"ana", good, RoleViewer, ErrExists},
	} {
		if err := u.Create(t.Context(), c.user, c.password, c.role); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if len(m.users) != 1 || m.users["ana"].Role != RoleOwner {
		t.Errorf("kept: %v", m.users)
	}
	if err := u.Create(t.Context(), "José.Ñ@casa", "doce letras ñ", RoleViewer); err != nil {
		t.Error(err)
	}
}

func TestPasswordChangeEndsTheStamp(t *testing.T) {
	t.Parallel()
	u, m, _ := people(t)
	before := Stamp(m.users["ana"])
	if err := u.SetLanguage(t.Context(), "ana", "es"); err != nil {
		t.Fatal(err)
	}
	if Stamp(m.users["ana"]) != before {
		t.Error("the language ends sessions")
	}
	if err := u.SetPassword(t.Context(), "ana", wrong); err != nil {
		t.Fatal(err)
	}
	if Stamp(m.users["ana"]) == before || m.users["ana"].Language != "es" {
		t.Errorf("after the change: %+v", m.users["ana"])
	}
	if _, err := u.Login(t.Context(), "ana", good, home); !errors.Is(err, ErrLogin) {
		t.Errorf("the old password: %v", err)
	}
	if err := u.SetPassword(t.Context(), "eva", good); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown person: %v", err)
	}
}

func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	u, _, _ := people(t)
	if err := u.Create(t.Context(), "eva", good, RoleOperator); err != nil {
		t.Fatal(err)
	}
	if err := u.Remove(t.Context(), "ana"); !errors.Is(err, ErrLastOwner) {
		t.Errorf("got %v", err)
	}
	if err := u.Remove(t.Context(), "eva"); err != nil {
		t.Error(err)
	}
	if err := u.Remove(t.Context(), "eva"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if empty, err := u.Empty(t.Context()); err != nil || empty {
		t.Errorf("empty: %v, %v", empty, err)
	}
}

func TestTenWrongPasswordsSlowFurtherTries(t *testing.T) {
	t.Parallel()
	u, _, c := people(t)
	for i := range freeTries {
		if _, err := u.Login(t.Context(), "ana", wrong, home); !errors.Is(err, ErrLogin) {
			t.Fatalf("try %d: %v", i+1, err)
		}
	}
	_, err := u.Login(t.Context(), "ana", good, home+":4711")
	var th *Throttled
	if !errors.As(err, &th) || !errors.Is(err, ErrThrottled) || th.Wait != time.Second {
		t.Fatalf("after ten: %v", err)
	}
	c.add(time.Second)
	if _, err := u.Login(t.Context(), "ana", good, home); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

func TestTriesTogetherAreCountedOneByOne(t *testing.T) {
	t.Parallel()
	u, _, _ := people(t)
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		looked int
	)
	for range 20 {
		wg.Go(func() {
			if _, err := u.Login(t.Context(), "ana", wrong, home); errors.Is(err, ErrLogin) {
				mu.Lock()
				looked++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if looked != freeTries {
		t.Errorf("%d passwords were looked at, want %d", looked, freeTries)
	}
}

func TestAnUnknownNameCostsTheSame(t *testing.T) {
	t.Parallel()
	u, m, _ := people(t)
	for name, phc := range map[string]string{"known": m.users["ana"].Password, "unknown": "", "damaged": "$argon2id$v=19$m=x$$"} {
		p, _, _, ok := parsePHC(phc)
		if !ok {
			p = cost // what verifyPassword computes with instead
		}
		if p != cost {
			t.Errorf("%s: %+v", name, p)
		}
		if verifyPassword(phc, wrong) {
			t.Errorf("%s: matches", name)
		}
	}
	slow := fastest(func() { _, _ = u.Login(t.Context(), "ana", wrong, "198.51.100.1") })
	none := fastest(func() { _, _ = u.Login(t.Context(), "nobody", wrong, "198.51.100.2") })
	if none < slow/4 || slow < none/4 { // skipping the work would be a factor of thousands
		t.Errorf("known %v, unknown %v", slow, none)
	}
}

func fastest(f func()) time.Duration {
	best := time.Hour
	for range 3 {
		began := time.Now()
		f()
		best = min(best, time.Since(began))
	}
	return best
}

func TestDoctoredHashesAreRefused(t *testing.T) {
	t.Parallel()
	for name, phc := range map[string]string{
		"another kind":     "$argon2i$v=19$m=19456,t=2,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"a gigabyte":       "$argon2id$v=19$m=1048576,t=2,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"a thousand turns": "$argon2id$v=19$m=19456,t=1000,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"no lanes":         "$argon2id$v=19$m=19456,t=2,p=0$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"no key":           "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAA$",
		"no salt":          "$argon2id$v=19$m=19456,t=2,p=1$$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	} {
		if _, _, _, ok := parsePHC(phc); ok {
			t.Errorf("%s is read", name)
		}
	}
}

func TestSetupLinkWorksOnceAndForHalfAnHour(t *testing.T) {
	t.Parallel()
	m, c := newMemory(), newClock()
	u := NewUsers(UsersOptions{Accounts: m, Now: c.now})
	if err := u.RedeemSetup(t.Context(), ""); !errors.Is(err, ErrSetupLink) {
		t.Errorf("before there is one: %v", err)
	}
	first, _, err := u.NewSetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token, expires, err := u.NewSetupLink(t.Context())
	if err != nil || !expires.Equal(t0.Add(30*time.Minute)) {
		t.Fatalf("%v, %v", expires, err)
	}
	for _, v := range m.settings {
		if strings.Contains(v, token) {
			t.Error("the token is kept")
		}
	}
	for name, bad := range map[string]string{"an older link": first, "nothing": "", "a guess": token[1:]} {
		if err := u.RedeemSetup(t.Context(), bad); !errors.Is(err, ErrSetupLink) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.fail = store.ErrUnavailable
	if err := u.RedeemSetup(t.Context(), token); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("on a full disk: %v", err)
	}
	m.fail = nil
	if err := u.RedeemSetup(t.Context(), token); err != nil {
		t.Error(err)
	}
	if err := u.RedeemSetup(t.Context(), token); !errors.Is(err, ErrSetupLink) {
		t.Errorf("a second time: %v", err)
	}
	late, _, err := u.NewSetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.add(SetupLife)
	if err := u.RedeemSetup(t.Context(), late); !errors.Is(err, ErrSetupLink) {
		t.Errorf("after half an hour: %v", err)
	}
}
