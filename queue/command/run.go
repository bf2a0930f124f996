package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"acuse/store"
)

const (
	// grace is how long a command may take to end by itself once it was asked to.
	grace = 5 * time.Second
	// pipeTime is how long output is read that somebody outside the group holds open.
	pipeTime = time.Second
	// goneTime is how long a killed group is waited for. What lives longer hangs in
	// the kernel and will not run again.
	goneTime = 5 * time.Second
)

// Run is one run of a program.
type Run struct {
	Args   []string
	Env    []string // all of it: nothing of acuse's own is added
	Dir    string   // empty: the root folder
	As     *As      // nil: acuse's own user
	Stdin  []byte
	Stdout io.Writer // nil: thrown away; the same as Stderr: in the order of writing
	Stderr io.Writer
	// Groups is the folder where running groups are recorded, so that the next start
	// can end what outlived acuse and its guard; empty: nowhere.
	Groups string

	patience time.Duration // grace in tests; 0: grace
}

// Do runs the program in a process group of its own. When ctx ends, the group is asked
// to end and killed after 5 s, at once when the lease was lost. Nothing of the group is
// left when Do returns. code and class are as in store.Result: 0 and "" is success.
func (r *Run) Do(ctx context.Context) (code int, class, reason string) {
	e := r.do(ctx)
	return e.Code, e.Class, e.Reason
}

func (r *Run) do(ctx context.Context) ending {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	g, err := r.guard()
	if err != nil {
		return ending{Class: "exec_start", Reason: err.Error()}
	}
	end := g.follow(ctx, cmp.Or(r.patience, grace))
	g.end()
	return end
}

// guarded is a guard under way, as acuse sees it.
type guarded struct {
	cmd     *exec.Cmd
	group   int           // its process id, and the number of the group
	control *os.File      // closed: acuse is gone
	status  chan ending   // of one; closed when the guard ends without a word
	read    chan struct{} // closed when the status was read to its end
	record  string        // file; may be empty
}

// guard starts a guard, records its group and only then tells it what to start.
func (r *Run) guard() (_ *guarded, err error) {
	exe, err := self()
	if err != nil {
		return nil, fmt.Errorf("acuse does not find its own binary")
	}
	var open []*os.File
	defer func() {
		for _, f := range open {
			_ = f.Close() // the guard's ends, and after a failure ours
		}
	}()
	controlR, controlW, err := os.Pipe()
	if err != nil {
		return nil, plain(err)
	}
	open = append(open, controlR, controlW)
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return nil, plain(err)
	}
	open = append(open, statusR, statusW)
	cmd := exec.Command(exe)
	cmd.Args = []string{"acuse", GuardArg}
	cmd.Env = []string{} // not nil: that would be acuse's own
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(r.Stdin), r.Stdout, r.Stderr
	cmd.ExtraFiles = []*os.File{controlR, statusW}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = pipeTime
	if err := cmd.Start(); err != nil {
		return nil, plain(err)
	}
	g := &guarded{cmd: cmd, group: cmd.Process.Pid, control: controlW, status: make(chan ending, 1), read: make(chan struct{})}
	p := program{Args: raw(r.Args), Env: raw(r.Env), Dir: r.Dir, As: r.As}
	if r.Groups != "" {
		mark := newMark()
		p.Env = append(p.Env, []byte(mark))
		if g.record, err = writeRecord(r.Groups, g.group, mark); err != nil {
			close(g.read)
			open = append(open, controlW, statusR)
			g.end()
			return nil, fmt.Errorf("the process group cannot be recorded: %w", plain(err))
		}
	}
	open = []*os.File{controlR, statusW}
	go g.listen(statusR)
	go func() { _ = json.NewEncoder(controlW).Encode(p) }() // a guard that dies meanwhile says nothing, and that is heard
	return g, nil
}

// listen waits for what the guard says.
func (g *guarded) listen(status *os.File) {
	defer close(g.read)
	var e ending
	if json.NewDecoder(status).Decode(&e) == nil {
		g.status <- e
	}
	close(g.status)
	_ = status.Close() // was only read
}

// follow waits until the command ended, or ends it.
func (g *guarded) follow(ctx context.Context, patience time.Duration) ending {
	select {
	case e, ok := <-g.status:
		return heard(e, ok)
	case <-ctx.Done():
	}
	select {
	case e, ok := <-g.status: // at the same moment: what it did counts
		return heard(e, ok)
	default:
	}
	if !errors.Is(context.Cause(ctx), store.ErrLeaseLost) { // else another run may begin any moment
		g.signal(syscall.SIGTERM)
		g.signal(syscall.SIGCONT)
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-g.status: // an exit code 0 now says only that it obeyed
		case <-timer.C:
		}
	}
	return stopped(ctx)
}

func heard(e ending, ok bool) ending {
	if !ok {
		return ending{Class: "signal", Code: 128 + int(syscall.SIGKILL), Reason: "its whole process group was killed"}
	}
	return e
}

// stopped is the ending of a command that was not left its time.
func stopped(ctx context.Context) ending {
	if errors.Is(context.Cause(ctx), store.ErrLeaseLost) {
		return ending{Class: "cancelled", Reason: "ended: another worker holds the job"}
	}
	return ending{Class: "cancelled", Reason: "ended before it was done"}
}

// end kills what is left of the group, the guard included, and waits until it is gone.
func (g *guarded) end() {
	g.signal(syscall.SIGKILL) // before Wait: until then no other process can have the number
	_ = g.cmd.Wait()          // killed, as it should be; pipes that others hold are closed after pipeTime
	_ = g.control.Close()
	<-g.read
	if waitGone(g.group, goneTime) && g.record != "" {
		_ = os.Remove(g.record) // one left over names a group that the next start finds gone
	}
}

func (g *guarded) signal(s syscall.Signal) { _ = syscall.Kill(-g.group, s) } // none left: as wanted

// plain is an error of the system without the paths in it.
func plain(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

func raw(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}
