package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

// maxResend bounds what one call of the command queues again.
const maxResend = 10_000

func (a *app) resendCommand() *cobra.Command {
	var f filter
	var yes, dry, asNew, pass bool
	var reason string
	c := a.command("resend [DELIVERY...]", "resend", cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		ids, err := a.chosen(cmd, args, &f)
		if err != nil {
			return err
		}
		to := f.destination
		switch {
		case len(ids) == 0:
			a.remark("%s", a.w("list.none.match"))
			return nil
		case dry:
			a.say("%s", a.n("resend.would", len(ids)))
			return nil
		case len(ids) > 1 && !yes:
			if err := a.ask(cmd, a.resendQuestion(len(ids), to)); err != nil {
				return err
			}
		}
		in := map[string]any{}
		for name, v := range map[string]string{"destination": to, "reason": reason} {
			if v != "" {
				in[name] = v
			}
		}
		if asNew {
			in["as_new"] = true
		}
		if pass {
			in["signature"] = "passthrough"
		}
		return a.each(ids, func(id int64) error { return a.resend(cmd, id, in) })
	})
	a.filterFlags(c, &f)
	a.timeFlags(c, &f)
	c.Flags().BoolVar(&yes, "yes", false, a.w("flag.yes"))
	c.Flags().BoolVar(&dry, "dry-run", false, a.w("flag.dry_run"))
	c.Flags().BoolVar(&asNew, "as-new", false, a.w("flag.as_new"))
	c.Flags().BoolVar(&pass, "passthrough", false, a.w("flag.passthrough"))
	c.Flags().StringVar(&reason, "reason", "", a.w("flag.reason"))
	return c
}

func (a *app) resendQuestion(n int, to string) string {
	if to == "" {
		return a.f("resend.ask", n)
	}
	return a.f("resend.ask.to", n, to)
}

// chosen are the deliveries named, or those that the filter finds, oldest first.
func (a *app) chosen(cmd *cobra.Command, args []string, f *filter) (ids []int64, err error) {
	only := *f
	only.destination = "" // also says where to, so it alone chooses nothing
	switch {
	case len(args) > 0 && only.given():
		return nil, a.misuse(cmd, a.w("resend.either"))
	case len(args) == 0 && !only.given():
		return nil, a.misuse(cmd, a.w("resend.what"))
	}
	for _, s := range args {
		id, err := a.id(cmd, s)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if len(args) > 0 {
		return ids, nil
	}
	query, err := a.values(cmd, f)
	if err != nil {
		return nil, err
	}
	query.Set("limit", "500")
	err = a.client().pages(cmd.Context(), "/api/v1/deliveries", "deliveries", query, func(raw json.RawMessage) (bool, error) {
		var d delivery
		if err := json.Unmarshal(raw, &d); err != nil {
			return false, err
		}
		if len(ids) == maxResend {
			return false, &failure{code: exitMisuse, what: a.f("resend.many", maxResend)}
		}
		ids = append(ids, d.ID)
		return true, nil
	})
	for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	return ids, err
}

func (a *app) resend(cmd *cobra.Command, id int64, in map[string]any) error {
	var raw json.RawMessage
	if err := a.client().call(cmd.Context(), http.MethodPost, fmt.Sprintf("/api/v1/deliveries/%d/resend", id), in, &raw); err != nil {
		return about(a.noDelivery(err, id), id)
	}
	if a.json {
		a.line(raw)
		return nil
	}
	var out struct {
		Jobs          []job `json:"jobs"`
		Delivery      int64 `json:"delivery"`
		AlreadyQueued bool  `json:"already_queued"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return err
	}
	if out.Delivery == 0 {
		out.Delivery = id
	}
	to := make([]string, len(out.Jobs))
	for i := range out.Jobs {
		to[i] = clean(out.Jobs[i].Destination)
	}
	word := "resend.done"
	if out.AlreadyQueued {
		word = "resend.already"
	}
	a.say("%s", a.f(word, out.Delivery, strings.Join(to, ", ")))
	return nil
}

// about puts the number of a delivery before what went wrong with it.
func about(err error, id int64) error {
	if f, ok := err.(*failure); ok && f.code != exitNotFound && f.code != exitNotRunning {
		g := *f
		g.what = fmt.Sprintf("#%d: %s", id, f.what)
		return &g
	}
	return err
}

// each does one act for many; a server that is gone ends it.
func (a *app) each(ids []int64, act func(id int64) error) error {
	done, failed := 0, []error{}
	for _, id := range ids {
		err := act(id)
		if err == nil {
			done++
			continue
		}
		failed = append(failed, err)
		if f, ok := err.(*failure); !ok || f.code == exitNotRunning {
			break
		}
	}
	return a.several(done, failed)
}

// ask wants a yes from the person at the terminal; without one there is nobody to ask.
func (a *app) ask(cmd *cobra.Command, question string) error {
	if !a.opt.Terminal && !isTerminal(a.opt.Stdin) {
		return a.misuse(cmd, a.w("ask.nobody"))
	}
	fmt.Fprintf(a.opt.Stderr, "%s [%s/%s] ", question, a.w("yes.letter"), strings.ToUpper(a.w("no.letter")))
	line, err := bufio.NewReader(a.opt.Stdin).ReadString('\n')
	if err != nil && line == "" {
		return &failure{code: exitFailed, what: a.w("ask.no")}
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case a.w("yes.letter"), a.w("yes.word"), "y", "yes":
		return nil
	}
	return &failure{code: exitFailed, what: a.w("ask.no")}
}

func (a *app) cancelCommand() *cobra.Command {
	var to string
	var yes bool
	c := a.command("cancel DELIVERY...", "cancel", cobra.MinimumNArgs(1), func(cmd *cobra.Command, args []string) error {
		var ids []int64
		for _, s := range args {
			id, err := a.id(cmd, s)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		if len(ids) > 1 && !yes {
			if err := a.ask(cmd, a.f("cancel.ask", len(ids))); err != nil {
				return err
			}
		}
		in := map[string]any{}
		if to != "" {
			in["destination"] = to
		}
		return a.each(ids, func(id int64) error {
			var out struct {
				Cancelled int `json:"cancelled"`
			}
			if err := a.client().call(cmd.Context(), http.MethodPost, fmt.Sprintf("/api/v1/deliveries/%d/cancel", id), in, &out); err != nil {
				return about(a.noDelivery(err, id), id)
			}
			if a.json {
				a.say(`{"id":%d,"cancelled":%d}`, id, out.Cancelled)
			} else {
				a.say("#%d: %s", id, a.n("cancelled", out.Cancelled))
			}
			return nil
		})
	})
	c.Flags().StringVar(&to, "destination", "", a.w("flag.destination"))
	c.Flags().BoolVar(&yes, "yes", false, a.w("flag.yes"))
	return c
}

func (a *app) releaseCommand() *cobra.Command {
	var source string
	var dry bool
	c := a.command("release [DELIVERY...]", "release", cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && source == "" {
			return a.misuse(cmd, a.w("release.what"))
		}
		in := map[string]any{"dry_run": dry}
		if source != "" {
			in["source"] = source
		}
		if len(args) > 0 {
			ids := []int64{}
			for _, s := range args {
				id, err := a.id(cmd, s)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			in["ids"] = ids
		}
		var raw json.RawMessage
		if err := a.client().call(cmd.Context(), http.MethodPost, "/api/v1/deliveries/release", in, &raw); err != nil {
			return err
		}
		if a.json {
			a.line(raw)
			return nil
		}
		var out struct {
			Released   int `json:"released"`
			Duplicates int `json:"duplicates"`
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			return err
		}
		word := "released"
		if dry {
			word = "would.release"
		}
		a.say("%s, %s", a.n(word, out.Released), a.n("known", out.Duplicates))
		return nil
	})
	c.Flags().StringVar(&source, "source", "", a.w("flag.source"))
	c.Flags().BoolVar(&dry, "dry-run", false, a.w("flag.dry_run"))
	return c
}
