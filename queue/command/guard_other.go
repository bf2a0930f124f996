//go:build !linux

package command

import (
	"os"
	"syscall"
)

// self is this binary.
func self() (string, error) { return os.Executable() }

// withGuard: no kernel but Linux's ends a command with its guard.
func withGuard() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func closeOnExec() { closeOnExecUpTo(1024) }
