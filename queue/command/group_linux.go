package command

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// process is what /proc says of one.
type process struct {
	pid, group int
	dead       bool   // and not collected yet
	start      string // in ticks since the machine started: with the pid its identity
}

// readProcess reads /proc/PID/stat. The name in it may hold spaces and brackets.
func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	after := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[after+1:])) // from the third field, state, on
	if after < 0 || len(f) < 20 {
		return process{}, false
	}
	group, err := strconv.Atoi(f[2])
	return process{pid: pid, group: group, dead: f[0] == "Z" || f[0] == "X", start: f[19]}, err == nil
}

// members are the running processes of a group.
func members(group int) (list []process) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // was only read
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok && p.group == group && !p.dead {
			list = append(list, p)
		}
	}
	return list
}

// running tells whether any process of the group lives.
func running(group int) bool {
	if !exists(group) {
		return false
	}
	if _, ok := readProcess(os.Getpid()); !ok {
		return true // no /proc: believe the kernel
	}
	return len(members(group)) > 0
}

// identity tells a process from later ones of the same number.
func identity(pid int) string {
	p, _ := readProcess(pid)
	return p.start
}

// marked tells whether a running member of the group was started with the mark in its
// environment.
func marked(group int, mark string) bool {
	for _, p := range members(group) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
		if err == nil && bytes.Contains(b, []byte(mark)) {
			return true
		}
	}
	return false
}

// boot names this run of the machine; empty where that is hidden.
func boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
