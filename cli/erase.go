package cli

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

// erased is the answer of an erasure.
type erased struct {
	Deliveries int   `json:"deliveries"`
	Shared     int   `json:"shared"`
	Cancelled  int   `json:"cancelled"`
	Rejections int   `json:"rejections"`
	Bytes      int64 `json:"bytes"`
	Traces     bool  `json:"traces"`
}

func (a *app) eraseCommand() *cobra.Command {
	var resource, event, source, reason string
	var yes, dry bool
	c := a.command("erase --resource X | --event Y", "erase", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		if (resource == "") == (event == "") {
			return a.misuse(cmd, a.w("erase.what"))
		}
		in := map[string]any{"dry_run": true}
		for k, v := range map[string]string{"resource": resource, "event": event, "source": source, "reason": reason} {
			if v != "" {
				in[k] = v
			}
		}
		raw, out, err := a.erase(cmd, in)
		if err != nil {
			return err
		}
		switch {
		case out == erased{}:
			if a.json {
				a.line(raw)
				return nil
			}
			a.remark("%s", a.w("erase.none"))
			return nil
		case !dry && !yes:
			if err := a.ask(cmd, a.f("erase.ask", a.erasure(out))); err != nil {
				return err
			}
		}
		if !dry {
			in["dry_run"] = false
			if raw, out, err = a.erase(cmd, in); err != nil {
				return err
			}
		}
		switch {
		case a.json:
			a.line(raw)
		case dry:
			a.say("%s", a.erasure(out))
		default:
			a.say("%s", a.f("erase.done", a.erasure(out)))
			a.remark("%s", a.w("erase.backups"))
			if out.Traces {
				a.remark("%s", a.w("erase.traces"))
			}
		}
		return nil
	})
	c.Flags().StringVar(&resource, "resource", "", a.w("flag.resource"))
	c.Flags().StringVar(&event, "event", "", a.w("flag.event"))
	c.Flags().StringVar(&source, "source", "", a.w("flag.source"))
	c.Flags().StringVar(&reason, "reason", "", a.w("flag.reason"))
	c.Flags().BoolVar(&dry, "dry-run", false, a.w("flag.dry_run"))
	c.Flags().BoolVar(&yes, "yes", false, a.w("flag.yes"))
	return c
}

func (a *app) erase(cmd *cobra.Command, in map[string]any) (raw json.RawMessage, out erased, err error) {
	if err = a.client().call(cmd.Context(), http.MethodPost, "/api/v1/erase", in, &raw); err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return raw, out, err
}

// erasure is what goes, in words.
func (a *app) erasure(e erased) string {
	parts := []string{strings.TrimSuffix(a.n("deliveries", e.Deliveries), ".") + ", " + a.size(e.Bytes)}
	if e.Shared > 0 {
		parts = append(parts, a.f("erase.shared", e.Shared))
	}
	if e.Cancelled > 0 {
		parts = append(parts, a.f("erase.cancelled", e.Cancelled))
	}
	if e.Rejections > 0 {
		parts = append(parts, a.f("erase.rejections", e.Rejections))
	}
	return strings.Join(parts, "; ")
}
