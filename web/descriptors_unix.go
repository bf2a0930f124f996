//go:build unix

package web

import "syscall"

// maxDescriptors is how many files and sockets this process may have open.
func maxDescriptors() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0
	}
	return int(min(uint64(r.Cur), 1<<20))
}
