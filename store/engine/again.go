package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Again writes the bytes of a file once more, as they are, and syncs them; a missing file
// is well. After a sync that failed, the system may show bytes that are not on the disk and
// that no later sync writes; a process that was killed before its sync leaves some, too. What is
// built on them would go with them when the power fails. A volume too full for even that
// is no error: it must not keep a store from opening.
func Again(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = rewrite(f)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write again %s: %w", path, err)
	}
	return nil
}

func rewrite(f *os.File) error {
	block := make([]byte, 256<<10)
	for at := int64(0); ; {
		n, err := f.ReadAt(block, at)
		if err != nil && err != io.EOF {
			return err
		}
		if _, err := f.WriteAt(block[:n], at); err != nil {
			return err
		}
		if at += int64(n); err == io.EOF {
			return f.Sync()
		}
	}
}
