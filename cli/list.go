package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// filter are the flags that list, tail and resend share.
type filter struct {
	source, state, kind, destination, query, since, until string
}

func (a *app) filterFlags(c *cobra.Command, f *filter) {
	c.Flags().StringVar(&f.source, "source", "", a.w("flag.source"))
	c.Flags().StringVar(&f.state, "state", "", a.w("flag.state"))
	c.Flags().StringVar(&f.kind, "type", "", a.w("flag.type"))
	c.Flags().StringVar(&f.destination, "destination", "", a.w("flag.destination"))
}

func (a *app) timeFlags(c *cobra.Command, f *filter) {
	c.Flags().StringVar(&f.query, "search", "", a.w("flag.search"))
	c.Flags().StringVar(&f.since, "since", "", a.w("flag.since"))
	c.Flags().StringVar(&f.until, "until", "", a.w("flag.until"))
}

// given tells whether anything narrows the list.
func (f *filter) given() bool { return *f != filter{} }

// values are the filter as the API takes it.
func (a *app) values(cmd *cobra.Command, f *filter) (url.Values, error) {
	v := url.Values{}
	for name, s := range map[string]string{"source": f.source, "state": f.state, "type": f.kind, "destination": f.destination, "q": f.query} {
		if s != "" {
			v.Set(name, s)
		}
	}
	for name, s := range map[string]string{"since": f.since, "until": f.until} {
		if s == "" {
			continue
		}
		t, ok := a.instant(s)
		if !ok {
			return nil, a.misuse(cmd, a.f("no.time", name))
		}
		v.Set(name, t.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return v, nil
}

// instant reads "2h" and "7d" as that long ago, else a date or a time.
func (a *app) instant(s string) (time.Time, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return a.opt.Now().Add(-time.Duration(n) * 24 * time.Hour), true
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return a.opt.Now().Add(-d), true
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, true
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, a.opt.Zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func (a *app) listCommand() *cobra.Command {
	var f filter
	var limit int
	c := a.command("list", "list", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		query, err := a.values(cmd, &f)
		if err != nil {
			return err
		}
		if limit < 1 {
			return a.misuse(cmd, a.w("limit.low"))
		}
		query.Set("limit", strconv.Itoa(min(limit, 500)))
		var found []delivery
		err = a.client().pages(cmd.Context(), "/api/v1/deliveries", "deliveries", query, func(raw json.RawMessage) (bool, error) {
			var d delivery
			if err := json.Unmarshal(raw, &d); err != nil {
				return false, err
			}
			found = append(found, d)
			if a.json {
				a.line(raw)
			}
			return len(found) < limit, nil
		})
		if err != nil || a.json {
			return err
		}
		a.deliveries(found, a.budgets(cmd))
		a.summary(found, &f)
		return nil
	})
	a.filterFlags(c, &f)
	a.timeFlags(c, &f)
	c.Flags().IntVar(&limit, "limit", 100, a.w("flag.limit"))
	return c
}

// budgets are the attempts that the destinations give a job. Without them a list
// shows the attempts alone.
func (a *app) budgets(cmd *cobra.Command) map[string]int {
	var out struct {
		Destinations []struct {
			Name     string `json:"name"`
			Attempts int    `json:"attempts"`
		} `json:"destinations"`
	}
	budgets := map[string]int{}
	if a.client().call(cmd.Context(), http.MethodGet, "/api/v1/destinations", nil, &out) == nil {
		for _, d := range out.Destinations {
			budgets[d.Name] = d.Attempts
		}
	}
	return budgets
}

func (a *app) deliveries(list []delivery, budgets map[string]int) {
	rows := make([][]string, len(list))
	for i := range list {
		rows[i] = a.row(&list[i], budgets)
	}
	a.columns(rows, func(r, col int, cell string) string {
		if col == 4 {
			return a.painted(list[r].State, cell)
		}
		return cell
	})
}

// row is a delivery on one line: of its jobs the worst one.
func (a *app) row(d *delivery, budgets map[string]int) []string {
	kind := clean(d.Type)
	if kind == "" {
		kind = clean(d.EventID)
	}
	if kind == "" {
		kind = "–"
	}
	row := []string{"#" + strconv.FormatInt(d.ID, 10), a.when(&d.ReceivedAt), clean(d.Source), kind, a.state(d.State)}
	j := worst(d)
	if j == nil {
		return append(row, "–", "–", a.marks(d))
	}
	to := clean(j.Destination)
	if more := len(d.Jobs) - 1; more > 0 {
		to += " +" + strconv.Itoa(more)
	}
	return append(row, a.tries(j, budgets), to, strings.TrimSpace(a.answer(j)+"  "+a.marks(d)))
}

// worst is the job that made the delivery's state.
func worst(d *delivery) *job {
	for i := range d.Jobs {
		if d.Jobs[i].State == d.State {
			return &d.Jobs[i]
		}
	}
	if len(d.Jobs) > 0 {
		return &d.Jobs[0]
	}
	return nil
}

func (a *app) tries(j *job, budgets map[string]int) string {
	if most := budgets[j.Destination]; most > 0 && j.Attempts > 0 {
		return a.f("of", j.Attempts, max(most, j.Attempts))
	}
	return strconv.Itoa(j.Attempts)
}

// answer is what the last attempt met: "503 after 1.2 s", "connection refused".
func (a *app) answer(j *job) string {
	s := ""
	switch {
	case j.LastStatus != nil && j.LastUS != nil:
		s = a.f("after", strconv.Itoa(*j.LastStatus), a.lasted(*j.LastUS))
	case j.LastStatus != nil:
		s = strconv.Itoa(*j.LastStatus)
	case j.LastError != nil:
		s = clean(*j.LastError)
	}
	if a.waits(j) {
		s = strings.TrimSpace(s + "  " + a.f("next", a.when(j.DueAt)))
	}
	return s
}

// waits tells whether a job is queued for later than now.
func (a *app) waits(j *job) bool {
	if j.State != "queued" || j.DueAt == nil {
		return false
	}
	due, err := time.Parse(time.RFC3339, *j.DueAt)
	return err == nil && due.After(a.opt.Now())
}

// marks are what else a row tells: repeats, a test.
func (a *app) marks(d *delivery) string {
	var out []string
	if d.Duplicates > 0 {
		out = append(out, a.n("duplicates", d.Duplicates))
	}
	if d.Test {
		out = append(out, a.w("test"))
	}
	return strings.Join(out, "  ")
}

func (a *app) summary(found []delivery, f *filter) {
	switch {
	case len(found) == 0 && f.given():
		a.remark("%s", a.w("list.none.match"))
	case len(found) == 0:
		a.remark("%s", a.w("list.none"))
	case f.state == "dead":
		a.remark("%s %s", a.n("deliveries", len(found)), a.w("list.resend"))
	default:
		a.remark("%s", a.n("deliveries", len(found)))
	}
}

// number reads "10482" and "#10482".
func (a *app) id(cmd *cobra.Command, s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(s, "#"), 10, 64)
	if err != nil || n < 1 {
		return 0, a.misuse(cmd, a.f("no.number", clean(s)))
	}
	return n, nil
}

func (a *app) showCommand() *cobra.Command {
	return a.command("show DELIVERY", "show", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		id, err := a.id(cmd, args[0])
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := a.client().call(cmd.Context(), http.MethodGet, fmt.Sprintf("/api/v1/deliveries/%d", id), nil, &raw); err != nil {
			return a.noDelivery(err, id)
		}
		if a.json {
			a.line(raw)
			return nil
		}
		var d delivery
		if err := json.Unmarshal(raw, &d); err != nil {
			return err
		}
		a.delivery(&d, a.budgets(cmd))
		return nil
	})
}

// noDelivery says which delivery is not there.
func (a *app) noDelivery(err error, id int64) error {
	if f, ok := err.(*failure); ok && f.code == exitNotFound {
		return &failure{code: exitNotFound, what: a.f("no.delivery", id)}
	}
	return err
}

func (a *app) bodyCommand() *cobra.Command {
	return a.command("body DELIVERY", "body", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		id, err := a.id(cmd, args[0])
		if err != nil {
			return err
		}
		resp, err := a.client().open(cmd.Context(), http.MethodGet, fmt.Sprintf("/api/v1/deliveries/%d/body", id), nil)
		if err != nil {
			return a.noDelivery(err, id)
		}
		defer func() { _ = resp.Body.Close() }() // was only read
		if !a.tty {
			_, err := io.Copy(a.opt.Stdout, resp.Body)
			return err
		}
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return a.unreachable(cmd.Context(), err)
		}
		a.say("%s", cleanLines(string(b)))
		return nil
	})
}
