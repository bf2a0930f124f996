package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) rejectionsCommand() *cobra.Command {
	var source string
	var limit int
	c := a.command("rejections", "rejections", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		if limit < 1 {
			return a.misuse(cmd, a.w("limit.low"))
		}
		query := url.Values{"limit": {strconv.Itoa(min(limit, 500))}}
		a.speak(query)
		if source != "" {
			query.Set("source", source)
		}
		rows := [][]string{}
		n := 0
		err := a.client().pages(cmd.Context(), "/api/v1/rejections", "rejections", query, func(raw json.RawMessage) (bool, error) {
			n++
			if a.json {
				a.line(raw)
				return n < limit, nil
			}
			var r rejection
			if err := json.Unmarshal(raw, &r); err != nil {
				return false, err
			}
			rows = append(rows, []string{strconv.FormatInt(r.ID, 10), a.when(r.LastAt), clean(r.Source), clean(r.Remote), "×" + strconv.Itoa(r.Count), clean(r.Diagnosis)})
			return n < limit, nil
		})
		if err != nil || a.json {
			return err
		}
		a.columns(rows, nil)
		if len(rows) == 0 {
			a.remark("%s", a.w("rejections.none"))
		} else {
			a.remark("%s", a.w("rejections.more"))
		}
		return nil
	})
	c.Flags().StringVar(&source, "source", "", a.w("flag.source"))
	c.Flags().IntVar(&limit, "limit", 100, a.w("flag.limit"))
	c.AddCommand(a.rejectionCommand(), a.recheckCommand())
	return c
}

// speak asks for sentences in the person's language; JSON stays English.
func (a *app) speak(query url.Values) {
	if !a.json && a.lang != "en" {
		query.Set("lang", a.lang)
	}
}

func (a *app) rejectionCommand() *cobra.Command {
	return a.command("show ID", "rejections.show", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || id < 1 {
			return a.misuse(cmd, a.f("no.rejection.number", clean(args[0])))
		}
		query := url.Values{}
		a.speak(query)
		var raw json.RawMessage
		if err := a.client().call(cmd.Context(), http.MethodGet, address("/api/v1/rejections/"+strconv.FormatInt(id, 10), query), nil, &raw); err != nil {
			if f, ok := err.(*failure); ok && f.code == exitNotFound {
				return &failure{code: exitNotFound, what: a.f("no.rejection", id)}
			}
			return err
		}
		if a.json {
			a.line(raw)
			return nil
		}
		var r rejection
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		a.rejection(&r)
		return nil
	})
}

// rejection prints a refused request: why first, then as it came.
func (a *app) rejection(r *rejection) {
	a.say("%s", clean(r.Diagnosis))
	a.say("")
	rows := [][]string{}
	add := func(key, value string) { rows = append(rows, []string{a.w(key), value}) }
	add("show.source", clean(r.Source))
	add("rejection.from", clean(r.Remote))
	if r.Count > 1 {
		add("rejection.seen", fmt.Sprintf("×%d, %s", r.Count, a.f("dead.from.to", a.when(r.FirstAt), a.when(r.LastAt))))
	} else {
		add("rejection.seen", a.when(r.LastAt))
	}
	add("rejection.answered", strconv.Itoa(r.Status))
	code := clean(r.Reason)
	if r.Detail != nil {
		code += " (" + clean(*r.Detail) + ")"
	}
	add("rejection.code", code)
	size := a.size(r.Size)
	if len(r.Body) == 0 && r.Size > 0 {
		size += ", " + a.w("rejection.no_body")
	}
	add("show.body", size)
	a.columns(rows, nil)
	a.say("")
	a.say("%s %s", clean(r.Method), clean(r.Target))
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		for _, v := range r.Headers[name] {
			a.say("%s: %s", clean(name), clean(v))
		}
	}
	if len(r.Body) > 0 {
		a.say("")
		a.say("%s", strings.TrimRight(cleanLines(string(r.Body)), "\n"))
	}
}

// maxSecret bounds what is read of a secret's file.
const maxSecret = 32 << 10

func (a *app) recheckCommand() *cobra.Command {
	var file, tolerance string
	var deliver bool
	c := a.command("recheck SOURCE", "rejections.recheck", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		in := map[string]any{"source": args[0], "deliver": deliver}
		if tolerance != "" {
			in["tolerance"] = tolerance
		}
		if file != "" {
			secret, err := a.secretFile(file)
			if err != nil {
				return err
			}
			in["secret"] = secret
		}
		var raw json.RawMessage
		if err := a.client().call(cmd.Context(), http.MethodPost, "/api/v1/rejections/recheck", in, &raw); err != nil {
			if f, ok := err.(*failure); ok && f.code == exitNotFound {
				return &failure{code: exitNotFound, what: a.f("no.source", clean(args[0]))}
			}
			return err
		}
		if a.json {
			a.line(raw)
			return nil
		}
		var done rechecked
		if err := json.Unmarshal(raw, &done); err != nil {
			return err
		}
		a.rechecked(&done, deliver, file != "")
		return nil
	})
	c.Flags().StringVar(&file, "secret-file", "", a.w("flag.secret_file"))
	c.Flags().StringVar(&tolerance, "tolerance", "", a.w("flag.tolerance"))
	c.Flags().BoolVar(&deliver, "deliver", false, a.w("flag.recheck_deliver"))
	return c
}

// rechecked says what a recheck found, what it did, and what is left to do.
func (a *app) rechecked(done *rechecked, deliver, secret bool) {
	a.say("%s, %s", a.n("rechecked", done.Checked), a.n("would.verify", done.WouldVerify))
	if !deliver {
		if done.WouldVerify > 0 {
			a.remark("%s", a.w("recheck.deliver"))
		}
		return
	}
	text := a.n("rejections.accepted", done.Delivered) + ", " + a.n("known", done.Duplicates)
	if done.Quarantined > 0 {
		text += ", " + a.f("status.quarantined", done.Quarantined)
	}
	a.say("%s", text)
	if secret && done.WouldVerify > 0 {
		a.remark("%s", a.w("recheck.not_kept"))
	}
}

// secretFile reads a secret, so that it stands neither in the list of processes nor in the
// shell's history; "-" is standard input. A newline at its end is the editor's, not the
// secret's.
func (a *app) secretFile(name string) (string, error) {
	in := a.opt.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", &failure{code: exitMisuse, what: a.f("secret.unreadable", clean(name)), why: reason(err)}
		}
		defer func() { _ = f.Close() }() // was only read
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxSecret+1))
	secret := strings.TrimRight(string(b), "\r\n")
	switch {
	case err != nil:
		return "", &failure{code: exitMisuse, what: a.f("secret.unreadable", clean(name)), why: reason(err)}
	case secret == "":
		return "", &failure{code: exitMisuse, what: a.f("secret.empty", clean(name))}
	case len(b) > maxSecret:
		return "", &failure{code: exitMisuse, what: a.f("secret.long", clean(name))}
	}
	return secret, nil
}
