//go:build !linux

package command

import "os"

// maySwitch tells whether this process may become another user.
func maySwitch() bool { return os.Geteuid() == 0 }
