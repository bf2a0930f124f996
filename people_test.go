package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// said is what a command left.
type said struct {
	out, err string
	code     int
}

// cli runs a command of the product against this place.
func (p *place) cli(args ...string) said {
	p.t.Helper()
	return p.cliWith("", args...)
}

// cliWith gives the command a standard input.
func (p *place) cliWith(stdin string, args ...string) said {
	p.t.Helper()
	return runs(p.t, p.command(p.t.Context(), args...), stdin)
}

// command is killed when ctx ends.
func (p *place) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Bin, append([]string{"--config", p.Config()}, args...)...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "ACUSE_LANG=en")
	return cmd
}

func runs(t *testing.T, cmd *exec.Cmd, stdin string) said {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return said{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// is fails the test unless the command ended so and printed the words.
func (s said) is(t *testing.T, code int, words ...string) {
	t.Helper()
	if s.code != code {
		t.Fatalf("exit %d, want %d\n%s%s", s.code, code, s.out, s.err)
	}
	for _, w := range words {
		if !strings.Contains(s.out+s.err, w) {
			t.Fatalf("no %q in\n%s%s", w, s.out, s.err)
		}
	}
}

// browser keeps cookies and follows links, as a person's does; without a script.
type browser struct {
	p *place
	c *http.Client
}

func (p *place) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return &browser{p, &http.Client{Timeout: 30 * time.Second, Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// open shows a page: a path, or a whole address.
func (b *browser) open(page string) reply {
	b.p.t.Helper()
	return b.do(b.c.Get(b.address(page)))
}

// submit sends a form; fields come in pairs.
func (b *browser) submit(page string, fields ...string) reply {
	b.p.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.do(b.c.PostForm(b.address(page), form))
}

func (b *browser) address(page string) string {
	if strings.HasPrefix(page, "/") {
		return "http://" + b.p.Admin + page
	}
	return page
}

func (b *browser) do(res *http.Response, err error) reply {
	b.p.t.Helper()
	if err != nil {
		b.p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.p.t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, body}
}

// password of every owner that a test makes.
const password = "correct horse battery"

// login makes the owner by the link that serve printed, as a person would.
func (p *place) login() *browser {
	p.t.Helper()
	b := p.browser()
	b.open(p.link()).is(p.t, 200, `<form method="post" action="/setup"`)
	b.submit("/setup", "language", "en", "name", "ana", "password", password).is(p.t, 200, "Log out")
	return b
}

// link is the one that serve prints at its first start, once it listens.
func (p *place) link() (link string) {
	p.t.Helper()
	until(p.t, "serve prints a link", func() bool {
		link = regexp.MustCompile(`http://\S+/setup\?t=\S+`).FindString(p.log())
		return link != ""
	})
	return link
}
