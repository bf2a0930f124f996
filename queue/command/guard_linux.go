package command

import (
	"os"
	"strconv"
	"syscall"
)

// self is this binary, also when a newer one has taken its place on the disk.
func self() (string, error) {
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// withGuard lets the kernel end the command when its guard is killed.
func withGuard() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// closeOnExec keeps every descriptor but the first three from the command, also those
// that acuse itself was given by whoever started it.
func closeOnExec() {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		closeOnExecUpTo(1024)
		return
	}
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
