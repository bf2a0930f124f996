package load

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// Acuse is a running acuse process with its own data folder.
type Acuse struct {
	Bin, Dir      string
	Public, Admin string   // addresses, host:port
	Token         string   // of the API
	Emulator      string   // program that runs Bin, such as qemu-aarch64; empty: none
	Args          []string // of Bin; empty: serve --config Config()
	cmd           *exec.Cmd
	ended         chan error // what Wait returned, once
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

// Ports lie under those that the system gives to outgoing connections: an acuse
// that was killed finds its port free when it starts again.
const firstPort, lastPort = 20000, 31999

// Ports are given in turn from a random one on, so that processes do not meet.
var (
	ports  = int32(lastPort - firstPort + 1)
	offset = rand.Int32N(ports)
	given  atomic.Int32
)

// FreeAddr is a loopback address with a port that was free a moment ago and that no
// other call of this process was given.
func FreeAddr() (string, error) {
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", firstPort+(offset+given.Add(1))%ports)
		if l, err := net.Listen("tcp", addr); err == nil {
			return addr, l.Close()
		}
	}
	return "", errors.New("no free port")
}

// New prepares a folder with a configuration: a Stripe source named "load" whose
// events go to the destinations in yaml ("  app: {url: …}"); engine is the store.
func New(bin, dir, engine, destinations string, names ...string) (*Acuse, error) {
	a := &Acuse{Bin: bin, Dir: dir}
	return a, a.Configure(fmt.Sprintf("store: %s\nsources:\n  load:\n    provider: stripe\n    secrets: [%q]\n    deliver_to: [%s]\ndestinations:\n%s\n",
		engine, Secret, strings.Join(names, ", "), destinations))
}

// Configure writes acuse.yaml: a data folder beside it, free ports where none were
// chosen yet, then what yaml says.
func (a *Acuse) Configure(yaml string) (err error) {
	if a.Token == "" {
		a.Token = "load-admin-token-0123456789"
	}
	for _, addr := range []*string{&a.Public, &a.Admin} {
		if *addr == "" {
			if *addr, err = FreeAddr(); err != nil {
				return err
			}
		}
	}
	conf := fmt.Sprintf("data_dir: ./data\nlisten: %q\nadmin:\n  listen: %q\n%s", a.Public, a.Admin, yaml)
	return os.WriteFile(a.Config(), []byte(conf), 0o600)
}

// Config is the path of the configuration.
func (a *Acuse) Config() string { return filepath.Join(a.Dir, "acuse.yaml") }

// Log is the path of the file with all that the process prints.
func (a *Acuse) Log() string { return filepath.Join(a.Dir, "acuse.log") }

// Start starts the process and waits until it is healthy.
func (a *Acuse) Start(env ...string) error {
	if err := a.Launch(env...); err != nil {
		return err
	}
	return a.awaitHealth()
}

// Launch starts the process and does not wait.
func (a *Acuse) Launch(env ...string) error {
	log, err := os.OpenFile(a.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{a.Bin}, a.Args...)
	if len(a.Args) == 0 {
		args = append(args, "serve", "--config", a.Config())
	}
	if a.Emulator != "" {
		args = append([]string{a.Emulator}, args...)
	}
	a.cmd = exec.Command(args[0], args[1:]...)
	a.cmd.Dir = a.Dir
	a.cmd.Env = append(append(os.Environ(), "ACUSE_ADMIN_TOKEN="+a.Token), env...)
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := a.cmd.Start(); err != nil {
		return err
	}
	cmd, ended := a.cmd, make(chan error, 1)
	a.ended = ended
	go func() { ended <- cmd.Wait() }()
	return nil
}

// ErrEnded reports that the process ended instead of coming up.
var ErrEnded = errors.New("acuse ended at its start")

func (a *Acuse) awaitHealth() error {
	client := http.Client{Timeout: time.Second} // another program may hold the port and say nothing
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if res, err := client.Get("http://" + a.Public + "/healthz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-a.ended:
			a.cmd = nil
			return fmt.Errorf("%w (%v); see %s", ErrEnded, err, a.Log())
		case <-time.After(5 * time.Millisecond):
		}
	}
	a.Kill()
	return errors.New("acuse did not become healthy in 30 s; see " + a.Log())
}

// Signal sends a signal to the process.
func (a *Acuse) Signal(s os.Signal) error { return a.cmd.Process.Signal(s) }

// Kill is kill -9, then waits for the end of the process.
func (a *Acuse) Kill() {
	if a.cmd != nil {
		a.cmd.Process.Kill()
		<-a.ended
		a.cmd = nil
	}
}

// Stop asks for a clean end and waits for it.
func (a *Acuse) Stop() error {
	if a.cmd == nil {
		return nil
	}
	if err := a.Signal(os.Interrupt); err != nil {
		return err
	}
	err := <-a.ended
	a.cmd = nil
	return err
}

// PID of the running process.
func (a *Acuse) PID() int { return a.cmd.Process.Pid }
