package cli

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Work is one job of a pull destination in this process's hands.
type Work struct {
	Job            int64
	Lease          string
	Attempt        int
	Delivery       int64
	Source         string
	EventID        string
	Type           string
	Resource       string
	ReceivedAt     time.Time
	Resend, Test   bool
	IdempotencyKey string
	Destination    string
	Method         string
	Headers        http.Header
	Body           []byte
}

// Handled is what became of a job.
type Handled struct {
	Done       bool
	Word       string        // the answer in short: "200", "exit 3"; may be empty
	Error      string        // when not done: for the attempt, and for people
	Dead       bool          // not done, and never to be tried again
	RetryAfter time.Duration // not done: the wait asked for; 0 is the schedule's
}

// Handler works on a job. When ctx ends the work is to end: with a cause that is
// store.ErrLeaseLost at once, because another worker may have begun.
type Handler func(ctx context.Context, w *Work) Handled

// Workers make handlers. main hands them in.
type Workers struct {
	// Command runs a program for each job, without a shell.
	Command func(args, env []string, stdout, stderr io.Writer) Handler
	// Forward sends each job to a URL.
	Forward func(url string, timeout time.Duration) (Handler, error)
}

// defaultLease is how long a job is held between renewals.
const defaultLease = time.Minute

func (a *app) pullCommand() *cobra.Command {
	w := &worker{app: a}
	var program string
	c := a.command("pull DESTINATION --exec COMMAND [ARGUMENT...]", "pull", cobra.MinimumNArgs(1), func(cmd *cobra.Command, args []string) error {
		if program == "" {
			return a.misuse(cmd, a.w("pull.exec"))
		}
		env := make([]string, 0, len(a.opt.Env))
		for _, kv := range a.opt.Env {
			if !strings.HasPrefix(kv, "ACUSE_") { // the token is the worker's, not the command's
				env = append(env, kv)
			}
		}
		w.handle = a.opt.Workers.Command(append([]string{program}, args[1:]...), env, a.opt.Stdout, a.opt.Stderr)
		w.destination = args[0]
		return w.run(cmd)
	})
	c.Flags().StringVar(&program, "exec", "", a.w("flag.exec"))
	a.workerFlags(c, w)
	return c
}

func (a *app) listenCommand() *cobra.Command {
	w := &worker{app: a}
	var timeout time.Duration
	c := a.command("listen URL --destination DESTINATION", "listen", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		if w.destination == "" {
			return a.misuse(cmd, a.w("listen.destination"))
		}
		handle, err := a.opt.Workers.Forward(args[0], timeout)
		if err != nil {
			return a.misuse(cmd, err.Error())
		}
		w.handle = handle
		return w.run(cmd)
	})
	c.Flags().StringVar(&w.destination, "destination", "", a.w("flag.pull_destination"))
	c.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, a.w("flag.timeout"))
	a.workerFlags(c, w)
	return c
}

func (a *app) workerFlags(c *cobra.Command, w *worker) {
	c.Flags().IntVar(&w.most, "concurrency", 1, a.w("flag.concurrency"))
	c.Flags().DurationVar(&w.lease, "lease", defaultLease, a.w("flag.lease"))
	c.Flags().StringVar(&w.server, "server", "", a.w("flag.server"))
	c.Flags().StringVar(&w.tokenFile, "token-file", "", a.w("flag.token_file"))
}

// remote is a client of the API at an address, under a token; at no address that of the
// server on this machine.
func (a *app) remote(cmd *cobra.Command, server, tokenFile string) (*client, error) {
	if server == "" {
		return a.client(), nil
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return nil, a.misuse(cmd, a.w("server.url"))
	}
	token := a.env["ACUSE_TOKEN"]
	if tokenFile != "" {
		b, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, &failure{code: exitFailed, what: a.f("file.read", clean(tokenFile)), why: reason(err)}
		}
		token = strings.TrimSpace(string(b))
	}
	if token == "" {
		return nil, a.misuse(cmd, a.w("server.token"))
	}
	return &client{app: a, base: strings.TrimSuffix(u.String(), "/"), token: token, http: &http.Client{
		Timeout: 2 * poll,
		// A redirect would carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// splitExec makes everything after "--exec COMMAND" the command's own: cobra would take
// its flags for ours.
func splitExec(args []string) []string {
	for i, arg := range args {
		switch {
		case arg == "--":
			return args
		case arg == "--exec" && i+2 < len(args) && args[i+2] != "--":
			return append(append(append([]string{}, args[:i+2]...), "--"), args[i+2:]...)
		case strings.HasPrefix(arg, "--exec=") && i+1 < len(args) && args[i+1] != "--":
			return append(append(append([]string{}, args[:i+1]...), "--"), args[i+1:]...)
		}
	}
	return args
}
