//go:build !linux

package command

import (
	"os/exec"
	"strconv"
	"strings"
)

// running tells whether any process of the group lives.
func running(group int) bool { return exists(group) }

// identity tells a process from later ones of the same number.
func identity(pid int) string {
	out, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// marked: other processes' environments cannot be read here.
func marked(int, string) bool { return false }

func boot() string { return "" }
