package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is the command as a process of its own, with fake work.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	state  string
	stderr *bufio.Reader
	seen   strings.Builder
	ended  chan struct{}
}

// startCommand starts the test binary as the command and waits until its work
// has begun. prefix is what the command is called by, such as nohup.
func startCommand(t *testing.T, fake string, prefix []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, state: filepath.Join(t.TempDir(), "s.json"), ended: make(chan struct{})}
	words := append(append(prefix, os.Args[0]), small(append(args, "--state", p.state)...)...)
	p.cmd = exec.Command(words[0], words[1:]...)
	p.cmd.Env = append(os.Environ(), asCommand+"="+fake)
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.stderr = bufio.NewReader(pipe)
	p.waitFor("the fake run has begun")
	return p
}

// waitFor reads stderr up to a line that holds text.
func (p *process) waitFor(text string) {
	p.t.Helper()
	for {
		line, err := p.stderr.ReadString('\n')
		p.seen.WriteString(line)
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			p.t.Fatalf("no %q on stderr: %s", text, p.seen.String())
		}
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// wantEnd waits for the end and checks its code and how long it took.
func (p *process) wantEnd(code int, most time.Duration, texts ...string) {
	p.t.Helper()
	begin := time.Now()
	go func() { // a process that does not end must not hold the test
		select {
		case <-p.ended:
		case <-time.After(most + 10*time.Second):
			_ = p.cmd.Process.Kill()
		}
	}()
	rest, _ := io.ReadAll(p.stderr)
	p.seen.Write(rest)
	_ = p.cmd.Wait()
	close(p.ended)
	if took := time.Since(begin); took > most {
		p.t.Errorf("took %s, want at most %s", took, most)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, text := range texts {
		if !strings.Contains(p.seen.String(), text) {
			p.t.Errorf("%q is missing", text)
		}
	}
	if p.t.Failed() {
		p.t.Logf("stderr:\n%s", p.seen.String())
	}
}

func TestFirstSignal(t *testing.T) {
	// Where the tests run under nohup, their children would ignore SIGHUP too,
	// unless it is caught here.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	for sig, want := range map[syscall.Signal]struct {
		name string
		code int
	}{syscall.SIGINT: {"SIGINT", 130}, syscall.SIGTERM: {"SIGTERM", 143}, syscall.SIGHUP: {"SIGHUP", 143}} {
		t.Run(want.name, func(t *testing.T) {
			p := startCommand(t, "obedient", nil)
			p.signal(sig)
			p.wantEnd(want.code, 2*time.Second, want.name+" received: stopping; the state is saved in "+p.state,
				"error: stopped by "+want.name, "resume: copydb --include", "--resume-state "+p.state)
		})
	}
}

func TestSecondSignal(t *testing.T) {
	for _, fake := range []string{"cut", "deaf"} {
		t.Run(fake, func(t *testing.T) {
			p := startCommand(t, fake, nil)
			p.signal(syscall.SIGINT)
			p.waitFor("press Ctrl-C again")
			p.signal(syscall.SIGINT)
			p.wantEnd(130, time.Second, "SIGINT received again")
		})
	}
}

func TestHangUpTwiceIsOneHangUp(t *testing.T) {
	p := startCommand(t, "deaf", nil, "--set", "stop_timeout=2s")
	p.signal(syscall.SIGHUP)
	p.waitFor("SIGHUP received")
	p.signal(syscall.SIGHUP)
	begin := time.Now()
	p.wantEnd(143, 2*time.Second)
	if time.Since(begin) < time.Second {
		t.Error("the second SIGHUP cut the run short")
	}
}

func TestRunThatDoesNotStop(t *testing.T) {
	p := startCommand(t, "deaf", nil, "--set", "stop_timeout=1s")
	p.signal(syscall.SIGTERM)
	p.wantEnd(143, time.Second, "the run did not end in time; the last checkpoint is valid", "--resume-state")
}

func TestDeadline(t *testing.T) {
	begin := time.Now()
	p := startCommand(t, "obedient", nil, "--set", "stop_timeout=1s", "--deadline", "2s")
	p.wantEnd(75, 2*time.Second, "deadline: stopping", "--deadline 2s", "--resume-state "+p.state)
	if time.Since(begin) < 900*time.Millisecond {
		t.Error("too early")
	}
	p = startCommand(t, "deaf", nil, "--set", "stop_timeout=1s", "--deadline", "1500ms")
	p.wantEnd(75, 1500*time.Millisecond)
	if got := (caller{}).call(t, small("--deadline", "6s")...); got.code != 64 || !strings.Contains(got.stderr, "longer than stop_timeout") {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
}

func TestReportOnSIGUSR1(t *testing.T) {
	p := startCommand(t, "obedient", nil)
	p.signal(syscall.SIGUSR1)
	p.waitFor("snapshot: 0 of 3 tables, 1,204 rows")
	p.signal(syscall.SIGINT)
	p.wantEnd(130, 2*time.Second)
}

// Behaviours 1.20: nohup and SIGHUP.
func TestIgnoredHangUpStaysIgnored(t *testing.T) {
	p := startCommand(t, "obedient", []string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh"})
	p.signal(syscall.SIGHUP)
	p.signal(syscall.SIGUSR1)
	p.waitFor("snapshot: 0 of 3 tables")
	p.signal(syscall.SIGINT)
	p.wantEnd(130, 2*time.Second, "SIGINT received")
	if strings.Contains(p.seen.String(), "SIGHUP received") {
		t.Error("SIGHUP was heeded")
	}
}

// Behaviours 1.20: stdout and stderr closed in mid-run.
func TestClosedOutputEndsNothing(t *testing.T) {
	for _, format := range [][]string{nil, {"--json", "--log-format", "json"}} {
		p := &process{t: t, state: filepath.Join(t.TempDir(), "s.json")}
		cmd := exec.Command(os.Args[0], small(append(format, "--state", p.state)...)...)
		cmd.Env = append(os.Environ(), asCommand+"=talker")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = w, w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		r.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(p.state + ".finished"); err != nil {
			t.Error(err)
		}
	}
}

// A pipe that nobody reads blocks whoever writes; a signal still ends it in time.
func TestStalledOutputDoesNotHoldTheEnd(t *testing.T) {
	stateFile := filepath.Join(t.TempDir(), "s.json")
	cmd := exec.Command(os.Args[0], small("--state", stateFile, "--set", "stop_timeout=1s")...)
	cmd.Env = append(os.Environ(), asCommand+"=talker")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := io.ReadFull(r, make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if took := time.Since(begin); took > time.Second || cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("exit %d after %s", cmd.ProcessState.ExitCode(), took)
	}
}
