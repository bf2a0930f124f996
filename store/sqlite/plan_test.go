package sqlite

import (
	"context"
	"strings"
	"testing"
	"time"

	"acuse/store"
)

// explain returns the steps of a query's plan, one a line.
func explain(t *testing.T, db *DB, text string, args ...any) string {
	t.Helper()
	rows, err := db.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}

// unbounded finds a step that reads a whole table that grows, or sorts what it found.
func unbounded(plan string, sorts bool) string {
	for step := range strings.SplitSeq(plan, "\n") {
		table, scan := strings.CutPrefix(step, "SCAN ")
		table, _, _ = strings.Cut(table, " ")
		small := map[string]bool{"n": true, "names": true, "l": true, "c": true, "g": true, "hit": true, "CONSTANT": true, "users": true, "tokens": true, "notices": true}
		if scan && sorts && strings.Contains(step, "jobs_lease") {
			continue // holds the live leases only
		}
		if scan && !small[table] && !strings.HasPrefix(table, "(") {
			return step
		}
		if strings.Contains(step, "TEMP B-TREE") && !sorts {
			return step
		}
	}
	return ""
}

// TestQueriesOfLoopsUseTheirIndexes reads the plan of each query that a worker, a sweep
// or a commit runs.
func TestQueriesOfLoopsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	for _, c := range []struct{ text, index string }{
		{selectDue, "jobs_due (destination=? AND due_at<?)"},
		{selectCurrent, "INTEGER PRIMARY KEY"},
		{selectExpired, "jobs_lease (lease_until<?)"},
		{selectNextDue, "jobs_due (destination=?)"},
		{selectPostponed, "jobs_due (destination=? AND due_at>? AND due_at<?)"},
		{selectNextDeadline, "jobs_lease"},
		{selectHolder, "PRIMARY KEY (source=? AND event_id=?)"},
		{updateDuplicate, "INTEGER PRIMARY KEY"},
		{selectExhausted, "jobs_pair (delivery=?)"},
		{selectJobsOf, "jobs_pair (delivery=?)"},
		{trimAnswers, "attempts_job (job=? AND id<?)"},
		{selectDeliveries, "INTEGER PRIMARY KEY"},
		{selectJobs, "jobs_pair (delivery=?)"},
		{selectAttempts, "attempts_job (job=?)"},
		{selectPayload, "INTEGER PRIMARY KEY"},
		{selectQuarantined, "deliveries_hold (hold=? AND id>?)"},
		{selectAuditLog, "INTEGER PRIMARY KEY"},
		{selectTrail, "audit_delivery (delivery=?)"},
		{selectRejections, "INTEGER PRIMARY KEY"},
		{selectRejection, "INTEGER PRIMARY KEY"},
		{deleteOldRejections, "rejections_age (at<?)"},
		{selectLastBefore, "deliveries_received (received_at<?)"},
		{selectLooseKeys, "dedup_loose (expires_at<?)"},
		{deleteKey, "PRIMARY KEY (source=? AND event_id=?)"},
		{deleteOldKey, "PRIMARY KEY (source=? AND event_id=?)"},
		{loosenKey, "PRIMARY KEY (source=? AND event_id=?)"},
		{purgeRejections, "rejections_age (at<?)"},
		{purgeSessions, "sessions_expires (expires<?)"},
		{purgeAudit, "INTEGER PRIMARY KEY (rowid<?)"},
		{selectWalk, "INTEGER PRIMARY KEY (rowid>?)"},
		{selectPurgeJobs, "jobs_pair (delivery=?)"},
		{deleteAttempts, "attempts_job (job=?)"},
		{deleteJobs, "jobs_pair (delivery=?)"},
		{selectSharing, "deliveries_shared (payload=?)"},
		{selectPayloadSize, "INTEGER PRIMARY KEY"},
		{selectRemovable, "deliveries_received (received_at<?)"},
		{shiftDeadlines, "jobs_lease (lease_until>? AND lease_until<?)"},
		{selectFirstSince, "deliveries_received (received_at>?)"},
		{selectTurn, "jobs_turn (destination=? AND order_value=?)"},
		{selectNext, "jobs_line (destination=? AND order_value=?)"},
		{selectLast, "jobs_line (destination=? AND order_value=?)"},
		{selectOlder, "jobs_latest (destination=? AND latest=? AND delivery<?)"},
		{selectHead, "jobs_turn (destination=? AND order_value=?)"},
		{selectHeads, "jobs_heads (order_since<?)"},
		{countAhead, "jobs_line (destination=? AND order_value=? AND order_place<?)"},
		{countLine, "jobs_line (destination=? AND order_value=?)"},
	} {
		args := make([]any, strings.Count(c.text, "?"))
		for i := range args {
			args[i] = 1
		}
		if strings.Contains(c.text, "json_each") {
			args[0] = "[1]"
		}
		plan := explain(t, db, c.text, args...)
		sorts := c.text == selectJobs || c.text == selectAttempts || c.text == selectJobsOf // one delivery's, or one page's
		bad := unbounded(plan, sorts)
		if c.text == selectNextDeadline {
			bad = "" // the index holds the live leases only
		}
		if bad != "" || !strings.Contains(plan, c.index) {
			t.Errorf("%s\nwants %s, has %q in\n%s", c.text, c.index, bad, plan)
		}
	}
}

// TestListsUseTheirIndexes reads the plans of the lists for every kind of filter, both
// ways, as the pages run them.
func TestListsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	many := int64(sortRows + 1)
	for _, c := range []struct {
		f      store.DeliveryFilter
		queued int64
		index  string
		sorts  bool // sorts the live leases, or at most sortRows queued jobs
	}{
		{store.DeliveryFilter{}, 0, "deliveries USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", false},
		{store.DeliveryFilter{Type: "x"}, 0, "deliveries USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", false},
		{store.DeliveryFilter{Answer: "5xx"}, 0, "jobs_pair (delivery=?)", false},
		{store.DeliveryFilter{Source: "x"}, 0, "deliveries_source (source=? AND id>? AND id<?)", false},
		{store.DeliveryFilter{Source: "x", Destination: "y"}, 0, "deliveries_source (source=? AND id>? AND id<?)", false},
		{store.DeliveryFilter{State: store.StateDelivered}, 0, "deliveries USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", false},
		{store.DeliveryFilter{State: store.StateDead}, 0, "jobs_ended (state=? AND delivery>? AND delivery<?)", false},
		{store.DeliveryFilter{State: store.StateDead, Source: "x"}, 0, "jobs_ended (state=? AND delivery>? AND delivery<?)", false},
		{store.DeliveryFilter{State: store.StateSuperseded}, 0, "jobs_ended (state=? AND delivery>? AND delivery<?)", false},
		{store.DeliveryFilter{State: store.StateCancelled}, 0, "jobs_ended (state=? AND delivery>? AND delivery<?)", false},
		{store.DeliveryFilter{State: store.StateFiltered}, 0, "jobs_ended (state=? AND delivery>? AND delivery<?)", false},
		{store.DeliveryFilter{State: store.StateQuarantined}, 0, "deliveries_hold (hold=? AND id>? AND id<?)", false},
		{store.DeliveryFilter{State: store.StateQueued}, many, "deliveries USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", false},
		{store.DeliveryFilter{State: store.StateQueued, Destination: "x"}, 0, "jobs_due (destination=?)", true},
		{store.DeliveryFilter{State: store.StateLeased}, 0, "jobs_lease", true},
		{store.DeliveryFilter{Duplicates: true}, 0, "deliveries_duplicate", false},
		{store.DeliveryFilter{Resent: true}, 0, "jobs_resent", false},
		{store.DeliveryFilter{Query: "x"}, 0, "deliveries USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", false},
	} {
		for _, up := range []bool{false, true} {
			q := &query{up: up}
			q.choose(c.f, c.queued)
			q.narrow(c.f)
			if c.f.Query != "" {
				q = q.text(c.f.Query, false)
			}
			for _, s := range []statement{q.floorSQL(0, 1<<62), q.pageSQL(0, 1<<62, 101)} {
				plan := explain(t, db, s.text, s.args...)
				if bad := unbounded(plan, c.sorts); bad != "" || !strings.Contains(plan, c.index) && (s.text == q.pageSQL(0, 0, 101).text) {
					t.Errorf("%+v up=%v\n%s\nwants %s, has %q in\n%s", c.f, up, s.text, c.index, bad, plan)
				}
			}
		}
	}
	plan := explain(t, db, selectHits+"1", 1, "a", "b")
	for _, want := range []string{"SEARCH k USING PRIMARY KEY (source=? AND event_id=?)", "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)"} {
		if !strings.Contains(plan, want) {
			t.Errorf("hits: want %s in\n%s", want, plan)
		}
	}
	if plan := explain(t, db, selectDeadGroups); strings.Contains(plan, "USE TEMP B-TREE FOR GROUP BY") || !strings.Contains(plan, "COVERING INDEX jobs_dead") {
		t.Errorf("dead groups:\n%s", plan)
	}
}

// TestPageOfAShortListGoesOn fills the archive past one scan: the match at its far end
// is reached by following next, and found at once by its id.
func TestPageOfAShortListGoesOn(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	first := arrival("s", "needle", "app")
	first.Events[0].Type = "rare"
	accept(t, db, first)
	batch := arrival("s", "x")
	for i := 0; i < scanRows+500; i += 500 {
		batch.Events = batch.Events[:0]
		for k := range 500 {
			batch.Events = append(batch.Events, store.Event{ID: "x" + time.Duration(i+k).String(), Type: "common", Part: k, Window: time.Hour})
		}
		accept(t, db, batch)
	}
	var pages int
	f := store.DeliveryFilter{Type: "rare"}
	for {
		list, next, err := db.Deliveries(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		if len(list) == 1 && list[0].EventID == "needle" {
			break
		}
		if len(list) != 0 || next == 0 || pages > 3 {
			t.Fatalf("page %d: %d rows, next %d", pages, len(list), next)
		}
		f.Before = next
	}
	if pages != 2 {
		t.Errorf("%d pages, want 2", pages)
	}
	list, next, err := db.Deliveries(t.Context(), store.DeliveryFilter{Query: "needle"})
	if err != nil || len(list) != 1 || next == 0 {
		t.Fatalf("by id: %d rows, next %d, %v", len(list), next, err)
	}
	list, next, err = db.Deliveries(t.Context(), store.DeliveryFilter{Query: "needle", Before: next})
	if err != nil || len(list) != 0 || next != 0 {
		t.Errorf("by id, the next page: %d rows, next %d, %v", len(list), next, err)
	}
	older, _, err := db.Neighbours(t.Context(), scanRows+400, store.DeliveryFilter{Type: "rare"})
	if err != nil || older != 1 {
		t.Errorf("older neighbour %d, want 1 (%v)", older, err)
	}
}

// TestReadersHoldNoTransactionOpen reads, then looks whether the journal can be copied
// back whole.
func TestReadersHoldNoTransactionOpen(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	accept(t, db, arrival("s", "a", "app"))
	ctx, cancel := context.WithCancel(t.Context())
	if _, _, err := db.Deliveries(ctx, store.DeliveryFilter{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	accept(t, db, arrival("s", "b", "app"))
	var row []val
	if err := db.outside(func(c *conn) (err error) {
		row, _, err = c.row("PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	}); err != nil || row[0].(int64) != 0 {
		t.Errorf("checkpoint: %v %v", row, err)
	}
}

// outside runs f on a connection of its own.
func (d *DB) outside(f func(c *conn) error) error {
	c, err := connect(context.Background(), d.path, "mode=rw", nil)
	if err != nil {
		return err
	}
	defer c.close()
	return f(c)
}
