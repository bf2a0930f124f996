package command

import (
	"os"
	"strconv"
	"strings"
)

// maySwitch tells whether this process may become another user: CAP_SETGID and
// CAP_SETUID, 6 and 7 in capabilities(7).
func maySwitch() bool {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return os.Geteuid() == 0
	}
	for line := range strings.Lines(string(b)) {
		if set, ok := strings.CutPrefix(line, "CapEff:"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64)
			return err == nil && bits&(1<<6) != 0 && bits&(1<<7) != 0
		}
	}
	return os.Geteuid() == 0
}
