package main

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstRun: acuse serve in an empty folder, as README says, and nothing else.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	for lang, w := range map[string]struct{ lines, comment string }{
		"en": {
			lines: "Data: DIR/data\n" +
				"Events come in at http://HOST:PUBLIC/in/NAME\n" +
				"Open this once, within 30 minutes: LINK\n" +
				"From your own computer: ssh -L ADMIN:127.0.0.1:ADMIN HOST, then open the link\n",
			comment: "# Who sends.",
		},
		"es": {
			lines: "Datos: DIR/data\n" +
				"Los eventos entran por http://HOST:PUBLIC/in/NAME\n" +
				"Abrir una vez, en los próximos 30 minutos: LINK\n" +
				"Desde otro equipo: ssh -L ADMIN:127.0.0.1:ADMIN HOST, y después abrir el enlace\n",
			comment: "# Quién envía.",
		},
	} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "")
			if err := os.Remove(p.Config()); err != nil {
				t.Fatal(err)
			}
			p.Args = []string{"serve"}
			p.start("ACUSE_LANG="+lang, "ACUSE_LISTEN="+p.Public, "ACUSE_ADMIN_LISTEN="+p.Admin, "ACUSE_ADMIN_TOKEN=")
			link := p.link()
			_, public, _ := net.SplitHostPort(p.Public)
			_, admin, _ := net.SplitHostPort(p.Admin)
			want := strings.NewReplacer("DIR", p.Dir, "PUBLIC", public, "ADMIN", admin, "LINK", link).Replace(w.lines)
			until(t, "all lines are printed", func() bool { return strings.Contains(p.log(), want) })
			if !strings.HasPrefix(link, "http://"+p.Admin+"/setup?t=") {
				t.Errorf("the link is %s", link)
			}
			if b, err := os.ReadFile(p.Config()); err != nil || !strings.Contains(string(b), w.comment) {
				t.Errorf("acuse.yaml: %v, without %q", err, w.comment)
			}
			if b, err := os.ReadFile(filepath.Join(p.Dir, "data", "setup-link")); err != nil || strings.TrimSpace(string(b)) != link {
				t.Errorf("the file with the link: %q, %v", b, err)
			}
			p.ownersOnly()
			p.linkWorksOnce(link)
		})
	}
}

// ownersOnly checks the modes of all that acuse made.
func (p *place) ownersOnly() {
	p.t.Helper()
	seen := 0
	err := filepath.WalkDir(p.Dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == p.Dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			p.t.Errorf("%s: %v, want %v", name, info.Mode(), want)
		}
		seen++
		return nil
	})
	if err != nil || seen < 6 {
		p.t.Errorf("%d files and folders, %v", seen, err)
	}
}

// linkWorksOnce walks the first run as the owner and as somebody else.
func (p *place) linkWorksOnce(link string) {
	t := p.t
	t.Helper()
	const form = `name="password"`
	stranger := p.browser()
	for _, page := range []string{"/setup", "/", "/deliveries", "/login", link + "x", "/setup?t="} {
		if r := stranger.open(page); strings.Contains(string(r.Body), form) {
			t.Errorf("%s shows a form without the link", page)
		}
	}
	stranger.submit("/setup", "language", "en", "name", "eve", "password", password).is(t, 403)

	owner := p.browser()
	owner.open(link).is(t, 200, form, `action="/setup"`)
	if r := stranger.open(link); r.Status != 403 || strings.Contains(string(r.Body), form) {
		t.Errorf("the link works again: %d", r.Status)
	}
	owner.submit("/setup", "language", "es", "name", "ana", "password", "short").is(t, 422, form)
	owner.submit("/setup", "language", "es", "name", "ana", "password", password).is(t, 200, "Entregas", "Resumen")
	if r := stranger.open("/setup"); strings.Contains(string(r.Body), form) {
		t.Error("after the first run there is still a form")
	}
	stranger.submit("/setup", "language", "en", "name", "eve", "password", password).is(t, 403)
	stranger.open("/deliveries").is(t, 200, `action="/login"`)
	stranger.submit("/login", "name", "ana", "password", "wrong "+password, "next", "/").is(t, 401)
	stranger.submit("/login", "name", "ana", "password", password, "next", "/deliveries").is(t, 200, "Entregas", "ana")
	if n := len(p.usersByTheCommand()); n != 1 {
		t.Errorf("%d users", n)
	}
}

// usersByTheCommand are the names that acuse user list prints.
func (p *place) usersByTheCommand() []string {
	p.t.Helper()
	s := p.cli("user", "list")
	s.is(p.t, 0)
	return strings.Split(strings.TrimSpace(s.out), "\n")
}

// TestFirstRunByFile: a password in a file makes the owner without any link.
func TestFirstRunByFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	file := filepath.Join(p.Dir, "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start("ACUSE_ADMIN_PASSWORD_FILE=" + file)
	until(t, "the address of the dashboard is printed", func() bool {
		return strings.Contains(p.log(), fmt.Sprintf("Dashboard: http://%s\n", p.Admin))
	})
	if strings.Contains(p.log(), "/setup?t=") {
		t.Error("a link was printed though there is an owner")
	}
	b := p.browser()
	b.submit("/login", "name", "admin", "password", password, "next", "/").is(t, 200, "Log out")
}
