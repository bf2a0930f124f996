package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
)

// copyBefore keeps a copy of the file as it is before the migration to version, beside it
// as acuse.db.before-N, and removes the copy before an earlier migration. A crash leaves
// the temporary file, which the next start replaces.
func copyBefore(c *conn, path string, version int) error {
	kept, tmp := fmt.Sprintf("%s.before-%d", path, version), path+".before-tmp"
	if err := os.Remove(tmp); err != nil && !os.IsNotExist(err) {
		return err
	}
	if _, err := c.exec("VACUUM INTO ?", tmp); err != nil {
		_ = os.Remove(tmp) // half a copy, on a full disk
		return fmt.Errorf("copy the data before the migration to version %d (free about as many bytes as the file has): %w", version, err)
	}
	if err := os.Chmod(tmp, 0o600); err != nil {
		return err
	}
	if err := syncPath(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, kept); err != nil {
		return err
	}
	if err := syncPath(filepath.Dir(path)); err != nil {
		return err
	}
	old, err := filepath.Glob(globEscape(path) + ".before-*")
	if err != nil {
		return err
	}
	for _, name := range old {
		if name != kept {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// globEscape makes a path mean itself in a pattern.
func globEscape(path string) string {
	var out []byte
	for i := range len(path) {
		if c := path[i]; c == '*' || c == '?' || c == '[' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, path[i])
	}
	return string(out)
}
