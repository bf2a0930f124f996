package command

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// GuardArg makes a binary that hands its command line to Guarding a guard.
const GuardArg = "__exec"

// Guarding tells whether this process was started as a guard: main then ends with
// Guard, before it does anything else.
func Guarding() bool { return len(os.Args) == 2 && os.Args[1] == GuardArg }

// lastGrace is how long the group of an acuse that died may take to end by itself.
const lastGrace = 2 * time.Second

// The guard's descriptors, beside the three that it hands to the command.
const (
	controlFD = 3 // a program in JSON; its end says that acuse is gone
	statusFD  = 4 // an ending in JSON
)

// Guard is the process between acuse and a command. It leads the group that the
// command runs in, so that acuse knows and records the group before the command exists,
// and it ends the group when acuse is gone. Otherwise acuse ends it, the guard included.
func Guard() int {
	// The kernel ties the command's life to the thread that starts it.
	runtime.LockOSThread()
	if syscall.Getpgrp() != os.Getpid() {
		return 1 // started by hand: "kill the group" would mean somebody else's
	}
	// What is sent to the group is meant for the command. A handler, unlike ignoring,
	// is not inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP)
	closeOnExec()
	control, status := os.NewFile(controlFD, "control"), os.NewFile(statusFD, "status")
	var p program
	in := json.NewDecoder(control)
	if in.Decode(&p) != nil {
		return 1 // acuse died first
	}
	cmd, end := p.start()
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		_ = f.Close() // they are the command's
	}
	go func() {
		if cmd != nil {
			end = ended(cmd.Wait())
		}
		_ = json.NewEncoder(status).Encode(end) // nobody reads it: acuse is gone, see below
	}()
	_, _ = io.Copy(io.Discard, control) // until acuse is gone
	_ = syscall.Kill(0, syscall.SIGTERM)
	time.Sleep(lastGrace)
	_ = syscall.Kill(0, syscall.SIGKILL)
	return 1
}

// program is what a guard is to start. The texts may hold any bytes, hence not strings.
type program struct {
	Args [][]byte
	Env  [][]byte
	Dir  string
	As   *As
}

// As is the user that a command runs as.
type As struct {
	UID, GID uint32
	Groups   []uint32
}

// ending is how a command ended, or why it never began.
type ending struct {
	Code   int    // exit code; with a signal 128 and its number
	Class  string // empty: exit code 0
	Reason string // in words; never holds output
}

// start starts the program.
func (p *program) start() (*exec.Cmd, ending) {
	env := texts(p.Env)
	name := string(p.Args[0])
	path, err := look(name, env)
	if err != nil {
		return nil, failedStart(name, p, err)
	}
	cmd := &exec.Cmd{Path: path, Args: texts(p.Args), Env: env, Dir: p.Dir,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: withGuard()}
	if p.As != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: p.As.UID, Gid: p.As.GID, Groups: p.As.Groups}
	}
	if err := cmd.Start(); err != nil {
		return nil, failedStart(name, p, err)
	}
	return cmd, ending{}
}

// look finds a program by the PATH that it is to have itself.
func look(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			if err := os.Setenv("PATH", path); err != nil {
				return "", err
			}
		}
	}
	return exec.LookPath(name)
}

// failedStart says why a program was not started. The kernel gives the same error for
// a folder that is not there and for a program or its interpreter.
func failedStart(name string, p *program, err error) ending {
	if p.Dir != "" {
		if info, statErr := os.Stat(p.Dir); statErr != nil || !info.IsDir() {
			return ending{Class: "exec_dir", Reason: "the working folder " + p.Dir + " cannot be entered"}
		}
	}
	switch {
	case p.As != nil && errors.Is(err, syscall.EPERM):
		return ending{Class: "exec_user", Reason: "acuse may not start programs as another user"}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return ending{Class: "exec_not_found", Reason: name + ": not found, or the interpreter that its first line names"}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return ending{Class: "exec_not_executable", Reason: name + ": not executable"}
	}
	var no syscall.Errno
	if errors.As(err, &no) {
		return ending{Class: "exec_start", Reason: name + ": " + no.Error()}
	}
	return ending{Class: "exec_start", Reason: name + ": cannot be started"}
}

// ended reads what Wait returned.
func ended(err error) ending {
	var e *exec.ExitError
	if err == nil {
		return ending{}
	}
	if !errors.As(err, &e) {
		return ending{Class: "exec_lost", Reason: "how it ended is not known"}
	}
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return ending{Code: 128 + int(w.Signal()), Class: "signal", Reason: "ended by a signal: " + w.Signal().String()}
	}
	return exited(e.ExitCode())
}

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}
