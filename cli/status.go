package cli

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) statusCommand() *cobra.Command {
	return a.command("status", "status", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		var raw json.RawMessage
		if err := a.client().call(cmd.Context(), http.MethodGet, "/api/v1/status", nil, &raw); err != nil {
			return err
		}
		if a.json {
			a.line(raw)
			return nil
		}
		var s status
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		a.columns(a.statusLines(&s), func(r, col int, cell string) string {
			if r == 2 && col == 1 && s.Dead > 0 {
				return a.color.Red(cell)
			}
			return cell
		})
		return nil
	})
}

// statusLines are five: what came in, what waits, what is dead, disk, last backup.
func (a *app) statusLines(s *status) [][]string {
	in := a.n("deliveries", int(s.Deliveries))
	in = strings.TrimSuffix(in, ".")
	if s.Newest != nil {
		in += ", " + a.f("status.newest", a.ago(s.Newest))
	}
	in += ", " + a.n("status.rejections", int(s.Rejections))
	waits := a.f("status.waits", s.Queued, s.Leased)
	if s.OldestDue != nil && s.Queued > 0 {
		waits += ", " + a.f("status.oldest", a.when(s.OldestDue))
	}
	if s.Quarantine > 0 {
		waits += ", " + a.f("status.quarantined", s.Quarantine)
	}
	dead := strconv.FormatInt(s.Dead, 10)
	if s.Dead > 0 {
		dead += ": acuse dead"
	}
	disk := a.f("status.disk", a.size(s.Bytes), a.size(s.Free), clean(s.DataDir))
	if s.Growth != nil {
		disk += ", " + a.f("status.growth", a.size(*s.Growth))
	}
	switch {
	case s.FullOn != nil:
		disk += ", " + a.f("status.full_on", a.date(*s.FullOn))
	case s.CapOn != nil:
		disk += ", " + a.f("status.cap_on", a.date(*s.CapOn))
	}
	if s.Removable != nil && *s.Removable > 0 {
		disk += ", " + a.f("status.removable", *s.Removable)
	}
	if !s.Writable {
		disk += ", " + a.w("status.unwritable")
		if s.Error != nil {
			disk += ": " + clean(*s.Error)
		}
	}
	backup := a.w("status.no_backup")
	if s.LastBackup != nil {
		backup = a.when(s.LastBackup)
	}
	if s.Late {
		backup += ", " + a.w("status.backup_late")
	}
	return [][]string{{a.w("status.in"), in}, {a.w("status.waiting"), waits}, {a.w("status.dead"), dead},
		{a.w("status.storage"), disk}, {a.w("status.backup"), backup}}
}

// date is the day of an instant of the API in local time.
func (a *app) date(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return clean(at)
	}
	return t.In(a.opt.Zone).Format(time.DateOnly)
}

func (a *app) deadCommand() *cobra.Command {
	return a.command("dead", "dead", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		var out struct {
			Groups []json.RawMessage `json:"groups"`
		}
		if err := a.client().call(cmd.Context(), http.MethodGet, "/api/v1/dead", nil, &out); err != nil {
			return err
		}
		rows := [][]string{}
		for _, raw := range out.Groups {
			var g deadGroup
			if err := json.Unmarshal(raw, &g); err != nil {
				return err
			}
			if a.json {
				a.line(raw)
				continue
			}
			why := a.words["reason."+g.Reason]
			if why == "" {
				why = clean(g.Reason)
			}
			answer := "–"
			if g.Status != nil {
				answer = strconv.Itoa(*g.Status)
			} else if g.Class != nil {
				answer = clean(*g.Class)
			}
			rows = append(rows, []string{clean(g.Destination), why, answer, a.n("jobs", int(g.Jobs)),
				a.f("dead.from.to", a.when(g.FirstAt), a.when(g.LastAt))})
		}
		if a.json {
			return nil
		}
		a.columns(rows, nil)
		if len(rows) == 0 {
			a.remark("%s", a.w("dead.none"))
		} else {
			a.remark("%s", a.w("list.resend"))
		}
		return nil
	})
}
