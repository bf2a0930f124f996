package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	sqlite "modernc.org/sqlite"
)

// checked is how many of the newest deliveries the bounded check looks at.
const checked = 1000

// Check looks for damage; see store.Store.
func (d *DB) Check(ctx context.Context, full bool) ([]string, error) {
	var problems []string
	err := d.view(ctx, func(tx *sql.Tx) error {
		from := int64(0)
		if full {
			if err := integrity(ctx, tx, &problems); err != nil {
				return err
			}
		} else if err := tx.QueryRowContext(ctx, "SELECT ifnull(max(id), 0) - ? FROM deliveries", checked).Scan(&from); err != nil {
			return err
		}
		if err := compareSchema(ctx, tx, &problems); err != nil {
			return err
		}
		for _, c := range orphans {
			if err := c.look(ctx, tx, from, full, &problems); err != nil {
				return err
			}
		}
		return nil
	})
	return problems, wrap(err, "check")
}

func integrity(ctx context.Context, tx *sql.Tx, problems *[]string) error {
	return each(ctx, tx, "PRAGMA integrity_check(100)", func(s scanner) error {
		var line string
		err := s.Scan(&line)
		if line != "ok" {
			*problems = append(*problems, line)
		}
		return err
	})
}

// orphan is one thing that must not be there. Each SQL counts them and names one.
type orphan struct {
	what string
	text string // ?1: deliveries above this number
	full bool   // looks at everything: for the full check only
}

var orphans = []orphan{
	{"deliveries have no body although it was not purged, such as #%d",
		"SELECT count(*), min(d.id) FROM deliveries d WHERE d.id > ?1 AND d.payload <> 0 AND NOT EXISTS (SELECT 1 FROM payloads p WHERE p.id = d.payload)", false},
	{"deliveries have neither a job nor a reason for it, such as #%d",
		"SELECT count(*), min(d.id) FROM deliveries d WHERE d.id > ?1 AND d.hold = 0 AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.delivery = d.id)", false},
	{"quarantined deliveries have jobs, such as #%d",
		"SELECT count(*), min(d.id) FROM deliveries d INDEXED BY deliveries_hold WHERE d.hold <> 0 AND d.hold = 1 AND d.id > ?1 AND EXISTS (SELECT 1 FROM jobs j WHERE j.delivery = d.id)", false},
	{"jobs have no delivery, such as those of #%d",
		"SELECT count(*), min(j.delivery) FROM jobs j INDEXED BY jobs_pair WHERE j.delivery > ?1 AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.id = j.delivery)", false},
	{"leased jobs have no attempt, such as those of #%d",
		"SELECT count(*), min(j.delivery) FROM jobs j INDEXED BY jobs_lease WHERE j.state = 2 AND j.delivery > ?1 AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.id = j.lease_token AND a.job = j.id)", false},
	{"orders have no job whose turn it is, such as that of #%d",
		`SELECT count(*), min(j.delivery) FROM jobs j INDEXED BY jobs_line WHERE j.order_turn <> 0 AND j.order_turn = 2 AND j.delivery > ?1 AND NOT EXISTS (
			SELECT 1 FROM jobs h INDEXED BY jobs_turn WHERE h.order_turn = 1 AND h.destination = j.destination AND h.order_value = j.order_value)`, false},
	{"payloads belong to no delivery, such as number %d",
		"SELECT count(*), min(p.id) FROM payloads p WHERE p.id > ?1 AND p.id NOT IN (SELECT payload FROM deliveries)", true},
	{"attempts have no job, such as those of job %d",
		"SELECT count(*), min(a.job) FROM attempts a WHERE a.job > ?1 AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = a.job)", true},
	{"claimed keys belong to a number that was never given out, such as #%d",
		"SELECT count(*), min(k.delivery) FROM dedup k WHERE k.delivery > max(?1, (SELECT delivery FROM marks), ifnull((SELECT max(id) FROM deliveries), 0))", true},
}

func (o orphan) look(ctx context.Context, tx *sql.Tx, from int64, full bool, problems *[]string) error {
	if o.full && !full {
		return nil
	}
	var n int64
	var one sql.NullInt64
	if err := tx.QueryRowContext(ctx, o.text, from).Scan(&n, &one); err != nil {
		return err
	}
	if n > 0 {
		*problems = append(*problems, fmt.Sprintf("%d "+o.what, n, one.Int64))
	}
	return nil
}

// compareSchema holds the file's tables, indexes, triggers and views against those that
// the migrations make. What the owner added besides is the owner's.
func compareSchema(ctx context.Context, tx *sql.Tx, problems *[]string) error {
	want, err := freshSchema(ctx)
	if err != nil {
		return err
	}
	if err := each(ctx, tx, selectSchema, func(s scanner) error {
		var name, text string
		err := s.Scan(&name, &text)
		if w, ok := want[name]; ok && w == text {
			delete(want, name)
		}
		return err
	}); err != nil {
		return err
	}
	for name := range want {
		*problems = append(*problems, name+" is missing or was changed")
	}
	return nil
}

const selectSchema = "SELECT type || ' ' || name, ifnull(sql, '') FROM sqlite_schema"

// freshSchema is what the migrations make of an empty database.
func freshSchema(ctx context.Context) (map[string]string, error) {
	connector, err := sqlite.NewConnector(":memory:")
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	list, err := migrations()
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, strings.Join(list, "\n")); err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, selectSchema)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	want := map[string]string{}
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return nil, err
		}
		want[name] = text
	}
	return want, rows.Err()
}
