package command

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"acuse/store"
)

func lease() store.Lease {
	return store.Lease{Job: 7, Token: 3, Destination: "script", Key: "stripe:evt_1:script", Attempt: 2, Resend: true,
		Delivery: store.DeliveryHead{ID: 10482, Source: "stripe", EventID: "evt_1", Type: "invoice.páid", Resource: "in_1",
			ReceivedAt: time.Date(2026, 1, 1, 0, 0, 0, 5e6, time.UTC)},
		Payload: store.Payload{Method: "POST", Body: []byte("\x00\xffbody"), Part: -1, Header: store.EncodeHeader(http.Header{
			"Stripe-Signature": {"t=1,v1=a"}, "Stripe_signature": {"forged"}, "X-Two": {"a", "b"}, "Cookie": {"c"}, "Authorization": {"Basic x"},
			"Acuse-Test": {"true"}, "Idempotency-Key": {"theirs"}, "X-Forwarded-For": {"1.2.3.4"}})}}
}

func destination(t *testing.T, o Options) *Exec {
	t.Helper()
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The environment is these variables and no other, and standard input the raw body.
func TestWhatACommandIsGiven(t *testing.T) {
	t.Parallel()
	x := destination(t, Options{Args: []string{"sh", "-c", "cat; echo; env"}, Env: map[string]string{"PATH": "/usr/bin:/bin", "TOKEN": "a b"}, Groups: t.TempDir()})
	res := x.Send(t.Context(), lease())
	if res.Outcome != store.Succeeded || res.Status != 0 || res.Class != "" || res.Duration <= 0 {
		t.Fatalf("%+v %s", res, res.Body)
	}
	body, env, _ := bytes.Cut(res.Body, []byte("\n"))
	if string(body) != "\x00\xffbody" {
		t.Errorf("standard input %q", body)
	}
	got := strings.Split(strings.TrimSpace(string(env)), "\n")
	slices.Sort(got)
	mark := slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, "ACUSE_GROUP=") })
	if mark < 0 {
		t.Fatalf("no mark in %q", got)
	}
	got = slices.Delete(got, mark, mark+1)
	got = slices.DeleteFunc(got, func(s string) bool { // the shell's own, and what depends on who runs the test
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains([]string{"PWD", "SHLVL", "_", "OLDPWD", "HOME", "USER", "LOGNAME"}, name)
	})
	want := []string{
		"ACUSE_ATTEMPT=2", "ACUSE_DELIVERY=10482", "ACUSE_DESTINATION=script", "ACUSE_EVENT_ID=evt_1", "ACUSE_EVENT_TYPE=invoice.p%C3%A1id",
		"ACUSE_HEADER_ACUSE_ORIGINAL_IDEMPOTENCY_KEY=theirs", "ACUSE_HEADER_AUTHORIZATION=Basic x", "ACUSE_HEADER_STRIPE_SIGNATURE=t=1,v1=a", "ACUSE_HEADER_X_TWO=a, b",
		"ACUSE_IDEMPOTENCY_KEY=stripe:evt_1:script", "ACUSE_METHOD=POST", "ACUSE_RECEIVED_AT=2026-01-01T00:00:00.005Z", "ACUSE_RESEND=true",
		"ACUSE_RESOURCE=in_1", "ACUSE_SOURCE=stripe", "ACUSE_TEST=false", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", "TOKEN=a b",
	}
	if !slices.Equal(got, want) {
		t.Errorf("environment\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Neither acuse's descriptors nor those that it was started with.
func TestNoDescriptorPasses(t *testing.T) {
	t.Parallel()
	f, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd())) // not closed by exec
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	x := destination(t, Options{Args: []string{"ls", "/proc/self/fd"}})
	res := x.Send(t.Context(), lease())
	if string(res.Body) != "0\n1\n2\n3\n" { // the last is the folder that ls lists
		t.Errorf("descriptors %q", res.Body)
	}
	if res.Outcome != store.Succeeded {
		t.Errorf("%+v", res)
	}
}

// What is between acuse and the command holds no secret either.
func TestTheGuardHasNoEnvironment(t *testing.T) {
	t.Parallel()
	x := destination(t, Options{Args: []string{"sh", "-c", "cat /proc/$PPID/environ"}})
	if res := x.Send(t.Context(), lease()); res.Outcome != store.Succeeded || len(res.Body) != 0 {
		t.Errorf("%+v %q", res, res.Body)
	}
}

func TestExitCodesAreOutcomes(t *testing.T) {
	t.Parallel()
	x := destination(t, Options{Args: []string{"sh", "-c", "echo out; echo err >&2; exit 65"}})
	res := x.Send(t.Context(), lease())
	if res.Outcome != store.Failed || res.Status != 65 || res.Class != "exit" || res.Error != "exit code 65" || string(res.Body) != "out\nerr\n" {
		t.Errorf("%+v %q", res, res.Body)
	}
}

func TestItemsOfABatch(t *testing.T) {
	t.Parallel()
	l := lease()
	l.Payload.Part = 1
	x := destination(t, Options{Args: []string{"cat"}, Item: func(source string, body []byte, part int) ([]byte, error) {
		return fmt.Appendf(nil, "%s %d %d", source, len(body), part), nil
	}})
	if res := x.Send(t.Context(), l); string(res.Body) != "stripe 6 1" {
		t.Errorf("%+v %q", res, res.Body)
	}
	x = destination(t, Options{Args: []string{"cat"}, Item: func(string, []byte, int) ([]byte, error) { return nil, io.ErrUnexpectedEOF }})
	if res := x.Send(t.Context(), l); res.Class != "compose" || res.Error != "item 1 cannot be taken out of its batch" {
		t.Errorf("%+v", res)
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	x := destination(t, Options{Args: []string{"sh", "-c", "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last"}})
	res := x.Send(t.Context(), lease())
	if n := len(res.Body); n > 64<<10 || n < 63<<10 {
		t.Errorf("%d bytes are kept", n)
	}
	if s := string(res.Body); !strings.HasPrefix(s, "first\nxxx") || !strings.HasSuffix(s, "xxlast\n") || !strings.Contains(s, "bytes left out]") {
		t.Errorf("%.20q…%q", s, s[max(0, len(s)-20):])
	}
	var all output
	for range 1000 {
		if n, err := all.Write([]byte("ñandú\n")); n != 8 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := all.bytes(); len(got) != 8000 || !strings.HasSuffix(string(got), "\nñandú\n") {
		t.Errorf("%d bytes", len(got))
	}
}

// As root: the user's own id, groups and home. As anyone else: refused before it runs.
func TestUser(t *testing.T) {
	t.Parallel()
	o := Options{Args: []string{"sh", "-c", "id -u; id -G; echo $HOME $USER"}, User: "nobody"}
	x, err := New(o)
	if !maySwitch() {
		if err == nil || !strings.Contains(err.Error(), "as root") {
			t.Fatalf("got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	who, err := account("nobody")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d\n%s\n%s nobody\n", who.as.UID, strings.Trim(fmt.Sprint(who.as.Groups), "[]"), who.home)
	if res := x.Send(t.Context(), lease()); string(res.Body) != want {
		t.Errorf("got %q, want %q: %+v", res.Body, want, res)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"a program is wanted":               {},
		`this machine has no user "nobo-d"`: {Args: []string{"a"}, User: "nobo-d"},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}
