package access

import (
	"errors"
	"testing"

	"acuse/store"
)

func TestGrantMay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		have  []string
		scope string
		want  bool
	}{
		{"a scope allows itself", []string{"read"}, "read", true},
		{"a scope allows no other", []string{"read"}, "body", false},
		{"pull allows every destination", []string{"pull"}, "pull:app", true},
		{"pull of one destination allows that one", []string{"pull:app"}, "pull:app", true},
		{"pull of one destination allows no other", []string{"pull:app"}, "pull:ap", false},
		{"pull of one destination is not pull", []string{"pull:app"}, "pull", false},
		{"a narrow name does not make another scope", []string{"read:x"}, "read", false},
		{"admin allows a narrow scope", []string{"admin"}, "effects:stripe-api", true},
		{"admin allows resend", []string{"admin"}, "resend", true},
		{"admin does not allow approve", []string{"admin"}, "approve", false},
		{"approve with a name is not approve", []string{"admin"}, "approve:x", false},
		{"approve allows approve", []string{"approve"}, "approve", true},
		{"nothing is no scope", []string{"admin", ""}, "", false},
		{"no scopes allow nothing", nil, "read", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := (Grant{Scopes: c.have}).May(c.scope); got != c.want {
				t.Errorf("%v may %q: got %v, want %v", c.have, c.scope, got, c.want)
			}
		})
	}
}

func TestOwnerMayAllButApprove(t *testing.T) {
	t.Parallel()
	if Owner.May(Approve) || !Owner.May(Admin) || !Owner.May("pull:app") {
		t.Errorf("owner on the socket: %v", Owner)
	}
}

func TestPersonGrant(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]map[string]bool{
		RoleOwner:    {Read: true, Body: true, Resend: true, Admin: true, Approve: true},
		RoleOperator: {Read: true, Body: true, Resend: true, Admin: false, Approve: true},
		RoleViewer:   {Read: true, Body: false, Resend: false, Admin: false, Approve: false},
		"unknown":    {Read: true, Body: false, Resend: false, Admin: false, Approve: false},
	} {
		g := PersonGrant(store.User{Name: "ana", Role: role})
		for scope, may := range want {
			if g.May(scope) != may {
				t.Errorf("%s may %s: got %v", role, scope, !may)
			}
		}
	}
}

func TestCheckScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		scopes []string
		ok     bool
	}{
		{"each known scope", []string{"read", "body", "resend", "pull", "effects"}, true},
		{"narrow scopes", []string{"pull:app", "effects:stripe-api"}, true},
		{"approve beside read", []string{"approve", "read", "body"}, true},
		{"none", nil, false},
		{"an unknown one", []string{"write"}, false},
		{"a narrow form of a scope that has none", []string{"read:app"}, false},
		{"an empty narrow name", []string{"pull:"}, false},
		{"a space", []string{"pull:a b"}, false},
		{"one named twice", []string{"read", "read"}, false},
		{"effects and approve", []string{"effects", "approve"}, false},
		{"approve and narrow effects", []string{"approve", "read", "effects:mail"}, false},
		{"admin and approve: admin holds effects", []string{"admin", "approve"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := CheckScopes(c.scopes)
			if (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrScopes)) {
				t.Errorf("%v: got %v", c.scopes, err)
			}
		})
	}
}

func TestGrantTravelsInTheContext(t *testing.T) {
	t.Parallel()
	if _, ok := GrantOf(t.Context()); ok {
		t.Error("a bare context carries a grant")
	}
	if g, ok := GrantOf(WithGrant(t.Context(), Owner)); !ok || g.ID != Owner.ID {
		t.Errorf("got %v, %v", g, ok)
	}
}
