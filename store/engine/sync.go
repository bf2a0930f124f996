package engine

import (
	"errors"
	"fmt"
	"os"
)

// Sync makes a file, or a folder's entries, survive power loss.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync %s: %w", path, err), f.Close())
	}
	return f.Close()
}
