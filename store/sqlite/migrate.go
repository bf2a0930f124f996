package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"path"

	"acuse/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks the file as acuse's ("acus" in ASCII).
const applicationID = 0x61637573

// migrations are the scripts in order; the first one makes version 1.
func migrations() ([]string, error) {
	entries, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	var list []string
	for i, e := range entries {
		if want := fmt.Sprintf("%04d_", i+1); e.Name()[:5] != want {
			return nil, fmt.Errorf("migration %s: its number should be %s", e.Name(), want)
		}
		text, err := migrationFiles.ReadFile(path.Join("migrations", e.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, string(text))
	}
	return list, nil
}

// migrate brings the file to the newest version, each step in one transaction with its
// number: a crash leaves a whole version. What an older acuse wrote is copied first. It
// returns the version.
func migrate(c *conn, path string) (int, error) {
	list, err := migrations()
	if err != nil {
		return 0, err
	}
	version, err := c.number("PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	if int(version) > len(list) {
		return 0, fmt.Errorf("%w: its version is %d, this acuse knows %d", store.ErrNewerSchema, version, len(list))
	}
	if err := own(c, version); err != nil {
		return 0, err
	}
	if version > 0 && int(version) < len(list) {
		if err := copyBefore(c, path, len(list)); err != nil {
			return 0, err
		}
	}
	for n := int(version) + 1; n <= len(list); n++ {
		if err := apply(c, n, list[n-1]); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// apply runs one migration and sets the version, or does nothing.
func apply(c *conn, version int, text string) error {
	text = fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;\nCOMMIT;", text, applicationID, version)
	if err := c.script(text); err != nil {
		return errors.Join(fmt.Errorf("migration %d: %w", version, err), c.script("ROLLBACK"))
	}
	return nil
}

// own refuses a SQLite file that another program made.
func own(c *conn, version int64) error {
	id, err := c.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	tables, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	if id != applicationID && (version != 0 || tables != 0) {
		return errors.New("not a data file of acuse")
	}
	return nil
}
