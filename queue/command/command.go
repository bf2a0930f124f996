// Package command hands a delivery to a program: its body on standard input, all else
// in the environment, no shell in between. One Send is one run of the program, and
// nothing of it is left when Send returns.
//
// See DESIGN.md for what ends a run, and what happens when acuse dies.
package command

import (
	"context"
	"fmt"
	"os"
	"time"

	"acuse/store"
)

// TempFail is the exit code that always means "try again": EX_TEMPFAIL of sysexits.
const TempFail = 75

// Options of a destination. Only Args is needed.
type Options struct {
	Args []string          // program and arguments; a name without "/" is looked up in PATH
	Dir  string            // working folder; default the root folder
	User string            // name or number, default acuse's own user
	Env  map[string]string // added to the few variables that every command gets; these win
	// Groups is the folder where running groups are recorded.
	Groups string
	// Item cuts one item out of a batch of a source.
	Item func(source string, body []byte, part int) ([]byte, error)
}

// Exec is one destination. It is safe for use by several goroutines.
type Exec struct {
	opt  Options
	as   *As
	base []string // environment less what the delivery adds
}

// New checks the options. Its errors hide values.
func New(o Options) (*Exec, error) {
	if len(o.Args) == 0 || o.Args[0] == "" {
		return nil, fmt.Errorf("exec: a program is wanted")
	}
	who, err := account(o.User)
	if err != nil {
		return nil, err
	}
	x := &Exec{opt: o, base: who.environ(o.Env)}
	if who.as.UID != uint32(os.Geteuid()) {
		if !maySwitch() {
			return nil, fmt.Errorf("user: acuse may not start programs as another user; it would have to run as root")
		}
		x.as = &who.as
	}
	return x, nil
}

// Send runs the program once. An exit code of 0 is success, every other a failure that
// the retry rules of the destination judge by its number.
func (x *Exec) Send(ctx context.Context, l store.Lease) store.Result {
	start := time.Now()
	failed := func(class, reason string) store.Result {
		return store.Result{Outcome: store.Failed, Class: class, Error: reason, Duration: time.Since(start)}
	}
	body := l.Payload.Body
	if l.Payload.Part >= 0 {
		if x.opt.Item == nil {
			return failed("compose", "an item of a batch: it cannot be taken out")
		}
		var err error
		if body, err = x.opt.Item(l.Delivery.Source, body, l.Payload.Part); err != nil {
			return failed("compose", fmt.Sprintf("item %d cannot be taken out of its batch", l.Payload.Part))
		}
	}
	header, err := store.DecodeHeader(l.Payload.Header)
	if err != nil {
		return failed("compose", "the kept headers cannot be read")
	}
	var out output
	run := Run{
		Args: x.opt.Args, Env: append(Variables(FromLease(l), header), x.base...), Dir: x.opt.Dir, As: x.as,
		Stdin: body, Stdout: &out, Stderr: &out, Groups: x.opt.Groups,
	}
	code, class, reason := run.Do(ctx)
	res := failed(class, reason)
	res.Status, res.Body = code, out.bytes()
	if class == "" {
		res.Outcome = store.Succeeded
	}
	return res
}

// exited is the ending of a program that chose its exit code.
func exited(code int) ending {
	switch code {
	case 0:
		return ending{}
	case TempFail:
		return ending{Code: code, Class: "exit", Reason: "exit code 75: try again later"}
	}
	return ending{Code: code, Class: "exit", Reason: fmt.Sprintf("exit code %d", code)}
}
