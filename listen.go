package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// maxSocketPath is the longest path of a Unix socket: sun_path has 108 bytes on
// Linux, the last of them NUL.
const maxSocketPath = 107

// listeners are the three ways in.
type listeners struct {
	public, private, socket net.Listener
	socketNote              string // DATA/socket, where the socket lies elsewhere
}

// listen opens all three or none.
func (s *server) listen() (_ *listeners, err error) {
	ls := &listeners{}
	defer func() {
		if err != nil {
			ls.close()
		}
	}()
	cfg := s.live.Load().cfg
	if ls.public, err = net.Listen("tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if ls.private, err = net.Listen("tcp", cfg.Admin.Listen); err != nil {
		return nil, fmt.Errorf("admin.listen: %w", err)
	}
	if err = ls.openSocket(cfg.DataDir); err != nil {
		return nil, fmt.Errorf("socket of the command line: %w", err)
	}
	s.publicAddr, s.privateAddr = ls.public.Addr(), ls.private.Addr()
	return ls, nil
}

// openSocket opens the owner's socket in the data folder, or, where that path is too
// long, in the runtime folder; DATA/socket then says where. The store's lock is
// held, so a socket that is there belongs to a process that died.
func (ls *listeners) openSocket(dataDir string) error {
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "acuse.sock")
	note := filepath.Join(dir, "socket")
	removeNoted(note)
	if len(path) > maxSocketPath {
		if path, err = runtimeSocket(); err != nil {
			return err
		}
		if err := os.WriteFile(note, []byte(path+"\n"), 0o600); err != nil {
			return err
		}
		ls.socketNote = note
	} else if err := os.Remove(note); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if ls.socket, err = net.Listen("unix", path); err != nil {
		return err
	}
	return os.Chmod(path, 0o600) // the data folder is 0700: nobody could connect before
}

// removeNoted removes the socket that a killed process left in the runtime folder.
func removeNoted(note string) {
	b, err := os.ReadFile(note)
	path := strings.TrimSpace(string(b))
	if err != nil || !filepath.IsAbs(path) || !strings.HasPrefix(filepath.Base(filepath.Dir(path)), "acuse-") {
		return
	}
	if os.Remove(path) == nil {
		os.Remove(filepath.Dir(path)) // made for this socket alone
	}
}

// runtimeSocket is a path in a fresh folder of the owner's.
func runtimeSocket() (string, error) {
	base := os.Getenv("RUNTIME_DIRECTORY")
	if base == "" {
		base = os.Getenv("XDG_RUNTIME_DIR")
	}
	dir, err := os.MkdirTemp(base, "acuse-") // 0700
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "acuse.sock")
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("no folder with a path short enough: %s", path)
	}
	return path, nil
}

func (ls *listeners) close() {
	for _, l := range []net.Listener{ls.public, ls.private, ls.socket} {
		if l != nil {
			l.Close()
		}
	}
}

// cleanUp removes what points to a socket that nobody answers any more.
func (ls *listeners) cleanUp() {
	ls.close()
	if ls.socketNote != "" {
		os.Remove(ls.socketNote)
		os.Remove(filepath.Dir(ls.socket.Addr().String()))
	}
}
