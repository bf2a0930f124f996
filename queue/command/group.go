package command

import (
	"errors"
	"syscall"
	"time"
)

// waitGone waits until no process of the group runs; false: some did to the end.
func waitGone(group int, most time.Duration) bool {
	pause := time.Millisecond
	for end := time.Now().Add(most); ; time.Sleep(pause) {
		reap(group)
		if !running(group) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// reap collects the dead of the group that have fallen to this process: in a container
// it is the one that inherits orphans.
func reap(group int) {
	for {
		pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// exists tells whether any process has the group, dead ones that nobody collected
// included.
func exists(group int) bool {
	return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
}

func closeOnExecUpTo(n int) {
	for fd := 3; fd < n; fd++ {
		syscall.CloseOnExec(fd)
	}
}
