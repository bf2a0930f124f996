package cli

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"acuse/config"
)

// folder is the data folder of the server that is meant.
func (a *app) folder() string {
	if a.dataDir != "" {
		return a.dataDir
	}
	return config.DataDir(a.configFile, a.opt.Env)
}

// socketPath is where the running server of a data folder listens: DATA/acuse.sock,
// or what DATA/socket says where that path would be too long.
func socketPath(dir string) string {
	if b, err := os.ReadFile(filepath.Join(dir, "socket")); err == nil {
		if p := strings.TrimSpace(string(b)); filepath.IsAbs(p) {
			return p
		}
	}
	return filepath.Join(dir, "acuse.sock")
}

// dial connects to the running server.
func (a *app) dial(ctx context.Context) (net.Conn, error) {
	dir := a.folder()
	c, err := new(net.Dialer).DialContext(ctx, "unix", socketPath(dir))
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, &failure{code: exitFailed, what: a.f("socket.denied", dir), todo: a.w("socket.denied.todo")}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.EINVAL): // a path too long for a socket, and no server that says where it has put it
		return nil, &failure{code: exitNotRunning, what: a.f("not.running", dir)}
	}
	return nil, &failure{code: exitFailed, what: a.f("socket.failed", dir), why: reason(err)}
}

// reason is the cause of an error of the system, without the path.
func reason(err error) string {
	var n syscall.Errno
	if errors.As(err, &n) {
		return n.Error()
	}
	return err.Error()
}
