package load

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Acuse is a running acuse process with its own data folder.
type Acuse struct {
	Bin, Dir      string
	Public, Admin string // addresses, host:port
	Token         string // of the API
	Emulator      string // program that runs Bin, such as qemu-aarch64; empty: none
	cmd           *exec.Cmd
}

// Build builds acuse from the module in the current folder, stripped, with the
// build tags and environment ("GOARCH=arm64") given.
func Build(dir string, tags string, env ...string) (string, error) {
	bin := filepath.Join(dir, strings.Join(append([]string{"acuse", tags}, env...), "-"))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "-tags", tags, ".")
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
}

// FreeAddr is a loopback address with a port that was free a moment ago.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// New prepares a folder with a configuration: a Stripe source named "load" whose
// events go to the destinations in yaml ("  app: {url: …}"); engine is the store.
func New(bin, dir, engine, destinations string, names ...string) (*Acuse, error) {
	a := &Acuse{Bin: bin, Dir: dir, Token: "load-admin-token-0123456789"}
	var err error
	if a.Public, err = FreeAddr(); err != nil {
		return nil, err
	}
	if a.Admin, err = FreeAddr(); err != nil {
		return nil, err
	}
	conf := fmt.Sprintf("data_dir: ./data\nstore: %s\nlisten: %q\nadmin:\n  listen: %q\nsources:\n  load:\n    provider: stripe\n    secrets: [%q]\n    deliver_to: [%s]\ndestinations:\n%s\n",
		engine, a.Public, a.Admin, Secret, strings.Join(names, ", "), destinations)
	return a, os.WriteFile(filepath.Join(dir, "acuse.yaml"), []byte(conf), 0o600)
}

// Start starts the process and waits until it is healthy.
func (a *Acuse) Start() error {
	log, err := os.OpenFile(filepath.Join(a.Dir, "acuse.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{a.Bin, "serve", "--config", filepath.Join(a.Dir, "acuse.yaml")}
	if a.Emulator != "" {
		args = append([]string{a.Emulator}, args...)
	}
	a.cmd = exec.Command(args[0], args[1:]...)
	a.cmd.Env = append(os.Environ(), "ACUSE_ADMIN_TOKEN="+a.Token)
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := a.cmd.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		res, err := http.Get("http://" + a.Public + "/healthz")
		if err != nil {
			continue
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return nil
		}
	}
	a.Kill()
	return errors.New("acuse did not become healthy in 30 s; see " + log.Name())
}

// Kill is kill -9, then waits for the end of the process.
func (a *Acuse) Kill() {
	if a.cmd != nil && a.cmd.Process != nil {
		a.cmd.Process.Kill()
		a.cmd.Wait()
		a.cmd = nil
	}
}

// Stop asks for a clean end and waits for it.
func (a *Acuse) Stop() error {
	if a.cmd == nil {
		return nil
	}
	if err := a.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	err := a.cmd.Wait()
	a.cmd = nil
	return err
}

// PID of the running process.
func (a *Acuse) PID() int { return a.cmd.Process.Pid }
