package engine

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrReplaced reports that a file was removed or replaced while it was open: what is written
// to it is lost with the process.
var ErrReplaced = errors.New("the data file was removed or replaced under the running process: restart acuse once it is back")

// Named is a file by its name at one moment.
type Named struct {
	path string
	info os.FileInfo
}

// NameOf remembers which file has the name now.
func NameOf(path string) (Named, error) {
	info, err := os.Stat(path)
	return Named{path, info}, err
}

// Known tells whether a file was remembered.
func (n Named) Known() bool { return n.info != nil }

// Kept tells whether the file still has its name, and how long it is.
func (n Named) Kept() (size int64, kept bool) {
	info, err := os.Stat(n.path)
	if err != nil {
		return 0, false
	}
	return info.Size(), os.SameFile(info, n.info)
}

// SyncNames makes the names in a folder, and its own, survive power loss. A parent folder
// that may not be opened is its owner's business.
func SyncNames(dir string) error {
	err := Sync(dir)
	if above := Sync(filepath.Dir(dir)); !errors.Is(above, os.ErrPermission) {
		err = errors.Join(err, above)
	}
	return err
}
