package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) tokenCommand() *cobra.Command {
	parent := a.command("token", "token", nil, nil)
	var scopes []string
	var agent, expires string
	create := a.command("create NAME", "token.create", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		if len(scopes) == 0 {
			return a.misuse(cmd, a.w("token.scopes"))
		}
		in := map[string]any{"name": args[0], "scopes": scopes}
		if agent != "" {
			in["agent"] = agent
		}
		if expires != "" {
			end, ok := a.ahead(expires)
			if !ok {
				return a.misuse(cmd, a.f("no.time", "expires"))
			}
			in["expires_at"] = end.UTC().Format(time.RFC3339)
		}
		var raw json.RawMessage
		if err := a.client().call(cmd.Context(), http.MethodPost, "/api/v1/tokens", in, &raw); err != nil {
			return err
		}
		if a.json {
			a.line(raw)
			return nil
		}
		var t tokenInfo
		if err := json.Unmarshal(raw, &t); err != nil {
			return err
		}
		a.say("%s", t.Secret)
		a.remark("%s", a.w("token.once"))
		return nil
	})
	create.Flags().StringSliceVar(&scopes, "scope", nil, a.w("flag.scope"))
	create.Flags().StringVar(&agent, "agent", "", a.w("flag.agent"))
	create.Flags().StringVar(&expires, "expires", "", a.w("flag.expires"))
	list := a.command("list", "token.list", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		return a.records(cmd, "/api/v1/tokens", "tokens", func(raw json.RawMessage) ([]string, error) {
			var t tokenInfo
			err := json.Unmarshal(raw, &t)
			end := a.w("token.for_ever")
			if t.ExpiresAt != nil {
				end = a.f("token.until", a.when(t.ExpiresAt))
			}
			used := a.w("token.unused")
			if t.LastUsed != nil {
				used = a.f("token.used", a.when(t.LastUsed))
			}
			return []string{clean(t.ID), clean(t.Name), clean(strings.Join(t.Scopes, ",")), used, end}, err
		})
	})
	revoke := a.command("revoke ID", "token.revoke", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		return a.client().call(cmd.Context(), http.MethodDelete, "/api/v1/tokens/"+url.PathEscape(args[0]), nil, nil)
	})
	parent.AddCommand(create, list, revoke)
	return parent
}

// ahead reads "30d" and "12h" as that far from now, else a date or a time.
func (a *app) ahead(s string) (time.Time, bool) {
	t, ok := a.instant(s)
	if now := a.opt.Now(); ok && t.Before(now) && !strings.Contains(s, "-") {
		return now.Add(now.Sub(t)), true // as long ahead as it lay back
	}
	return t, ok
}

// records prints a list that the API gives whole.
func (a *app) records(cmd *cobra.Command, path, field string, row func(json.RawMessage) ([]string, error)) error {
	var out map[string][]json.RawMessage
	if err := a.client().call(cmd.Context(), http.MethodGet, path, nil, &out); err != nil {
		return err
	}
	rows := [][]string{}
	for _, raw := range out[field] {
		if a.json {
			a.line(raw)
			continue
		}
		r, err := row(raw)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	a.columns(rows, nil)
	return nil
}

func (a *app) userCommand() *cobra.Command {
	parent := a.command("user", "user", nil, nil)
	var role string
	add := a.command("add NAME", "user.add", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		password, err := a.newPassword(cmd)
		if err != nil {
			return err
		}
		in := map[string]string{"name": args[0], "password": password, "role": role}
		return a.done(cmd, http.MethodPost, "/api/v1/users", in, a.f("user.added", clean(args[0]), role))
	})
	add.Flags().StringVar(&role, "role", "owner", a.w("flag.role"))
	password := a.command("password NAME", "user.password", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		password, err := a.newPassword(cmd)
		if err != nil {
			return err
		}
		return a.done(cmd, http.MethodPost, "/api/v1/users/"+url.PathEscape(args[0])+"/password",
			map[string]string{"password": password}, a.f("user.changed", clean(args[0])))
	})
	list := a.command("list", "user.list", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		return a.records(cmd, "/api/v1/users", "users", func(raw json.RawMessage) ([]string, error) {
			var u userInfo
			err := json.Unmarshal(raw, &u)
			return []string{clean(u.Name), clean(u.Role), a.when(u.CreatedAt)}, err
		})
	})
	remove := a.command("remove NAME", "user.remove", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		return a.done(cmd, http.MethodDelete, "/api/v1/users/"+url.PathEscape(args[0]), nil, a.f("user.removed", clean(args[0])))
	})
	parent.AddCommand(add, password, list, remove)
	return parent
}

// done makes a call whose success is told in one line.
func (a *app) done(cmd *cobra.Command, method, path string, in any, told string) error {
	if err := a.client().call(cmd.Context(), method, path, in, nil); err != nil {
		return err
	}
	a.remark("%s", told)
	return nil
}

// newPassword asks twice at a terminal, without showing what is typed; otherwise it
// reads the first line of standard input.
func (a *app) newPassword(cmd *cobra.Command) (string, error) {
	f, ok := a.opt.Stdin.(*os.File)
	if !ok || !isTerminal(f) {
		line, err := bufio.NewReader(a.opt.Stdin).ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			if err == nil || errors.Is(err, io.EOF) {
				err = a.misuse(cmd, a.w("password.none"))
			}
			return "", err
		}
		return line, nil
	}
	first, err := a.typed(f, a.w("password.type"))
	if err != nil {
		return "", err
	}
	again, err := a.typed(f, a.w("password.again"))
	if err != nil {
		return "", err
	}
	if first != again {
		return "", &failure{code: exitFailed, what: a.w("password.differs")}
	}
	return first, nil
}

func (a *app) typed(f *os.File, prompt string) (string, error) {
	if _, err := io.WriteString(a.opt.Stderr, prompt+" "); err != nil {
		return "", err
	}
	b, err := term.ReadPassword(int(f.Fd()))
	a.note("")
	return string(b), err
}

func (a *app) setupLinkCommand() *cobra.Command {
	return a.command("setup-link", "setup_link", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		var raw json.RawMessage
		if err := a.client().call(cmd.Context(), http.MethodPost, "/api/v1/setup-link", nil, &raw); err != nil {
			return err
		}
		if a.json {
			a.line(raw)
			return nil
		}
		var out struct {
			URL       string  `json:"url"`
			ExpiresAt *string `json:"expires_at"`
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			return err
		}
		a.say("%s", clean(out.URL))
		a.remark("%s", a.f("setup.until", a.when(out.ExpiresAt)))
		return nil
	})
}
