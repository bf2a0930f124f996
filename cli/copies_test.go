package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"acuse/store"
)

var errSealedTest, errForeignTest = errors.New("sealed"), errors.New("foreign")

// copying are copies that end as told.
func copying(out Contents, err error) Copies {
	return Copies{Sealed: errSealedTest, Foreign: errForeignTest,
		Verify: func(_ context.Context, o VerifyOptions) (Contents, error) { o.Progress(1, 2); return out, err },
		Restore: func(_ context.Context, o RestoreOptions) (Contents, error) {
			if !filepath.IsAbs(o.Dir) {
				return out, errors.New("a relative folder")
			}
			return out, err
		},
		Migrate: func(_ context.Context, o MigrateOptions) (Contents, error) {
			if o.From != "sqlite" || o.To != "bbolt" {
				return out, errors.New("wrong engines")
			}
			return out, err
		},
	}
}

func TestCopiesTellWhatTheyFoundOrWhyNot(t *testing.T) {
	t.Parallel()
	good := Contents{Engine: "sqlite", Schema: 2, Counts: store.Counts{Deliveries: 3, Payloads: 3, Jobs: 4, Attempts: 5, Keys: 3, Dead: 1}}
	line := "sqlite, version 2: 3 deliveries, 3 payloads, 4 jobs, 5 attempts, 3 dedup keys, 0 rejections; 0 queued, 1 dead, 0 in quarantine\n"
	for _, c := range []struct {
		args []string
		out  Contents
		err  error
		code int
		text string
		said []string
	}{
		{[]string{"verify", "a.db"}, good, nil, 0, line, []string{"a.db can be restored"}},
		{[]string{"verify", "a.db", "--json"}, good, nil, 0,
			`{"attempts":5,"dead":1,"dedup_keys":3,"deliveries":3,"engine":"sqlite","jobs":4,"leased":0,"payloads":3,"problems":[],"quarantined":0,"queued":0,"rejections":0,"replaced":[],"schema":2}` + "\n", nil},
		{[]string{"verify", "a.db"}, Contents{Engine: "sqlite", Schema: 2, Problems: []string{"page 7 is never used"}}, nil, 1, "", []string{"a.db is damaged: page 7 is never used"}},
		{[]string{"verify", "a.db"}, Contents{}, fmt.Errorf("x: %w", errSealedTest), 1, "", []string{"a.db is encrypted", "acuse verify a.db --identity"}},
		{[]string{"verify", "a.db"}, Contents{}, fmt.Errorf("x: %w", errForeignTest), 1, "", []string{"a.db is no backup of acuse"}},
		{[]string{"verify", "a.db"}, Contents{}, &fs.PathError{Op: "open", Path: "a.db", Err: fs.ErrNotExist}, 3, "", []string{"a.db"}},
		{[]string{"restore", "a.db", "--into", "x"}, Contents{}, fmt.Errorf("x: %w", store.ErrLocked), 1, "", []string{"acuse is running on that folder", "stop it first"}},
		{[]string{"restore", "a.db", "--into", "x"}, Contents{}, fmt.Errorf("%w: /d/acuse.db", ErrHoldsData), 2, "", []string{"holds an archive already: /d/acuse.db", "--force"}},
		{[]string{"restore", "a.db", "--into", "x"}, Contents{Engine: "sqlite", Schema: 2, Replaced: []string{"/d/acuse.db.replaced-1"}}, nil, 0,
			"sqlite, version 2: 0 deliveries, 0 payloads, 0 jobs, 0 attempts, 0 dedup keys, 0 rejections; 0 queued, 0 dead, 0 in quarantine\n", []string{"restored into", "what was there is now /d/acuse.db.replaced-1"}},
		{[]string{"migrate", "--from", "sqlite", "--to", "bbolt"}, good, nil, 0, line, []string{"now set store: bbolt in acuse.yaml"}},
		{[]string{"migrate", "--from", "sqlite", "--to", "sqlite"}, good, nil, 2, "", []string{"two different engines"}},
		{[]string{"migrate", "--from", "postgres", "--to", "sqlite"}, good, nil, 2, "", []string{"two different engines"}},
	} {
		call(t, Options{Copies: copying(c.out, c.err), Env: []string{"ACUSE_DATA_DIR=" + t.TempDir()}}, c.args...).want(t, c.code, c.text, c.said...)
	}
}
