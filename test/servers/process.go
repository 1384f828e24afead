package servers

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	stopTimeout  = 60 * time.Second // for a clean shutdown; after it the process is killed
	pauseTimeout = 10 * time.Second
)

// process is one run of a server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone and waited for
}

// spawn starts a process that dies with this one. The kernel ties it to the
// thread that started it, so one thread stays with it until it ends.
func spawn(argv []string, dir string, log *os.File) (*process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is read from cmd.ProcessState
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	return p, nil
}

func (p *process) gone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(s os.Signal) error {
	if p.gone() {
		return os.ErrProcessDone
	}
	return p.cmd.Process.Signal(s)
}

// pause stops the process and waits until all its threads stand still.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause server: %w", err)
	}
	for deadline := time.Now().Add(pauseTimeout); !frozen(p.cmd.Process.Pid); time.Sleep(pollInterval) {
		if p.gone() || time.Now().After(deadline) {
			return fmt.Errorf("pause server: it does not stand still after %s", pauseTimeout)
		}
	}
	return nil
}

// kill ends the process at once and waits until it is gone.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL) // fails only for a process that is gone
	<-p.done
}

// stop asks for a clean shutdown and waits for it; an error says that it did
// not come or was not clean.
func (p *process) stop() error {
	if p.gone() {
		return nil
	}
	_ = p.signal(syscall.SIGTERM)
	_ = p.signal(syscall.SIGCONT) // in case it is paused
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.kill()
		return fmt.Errorf("stop server: not gone after %s, killed", stopTimeout)
	}
	if state := p.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("stop server: %s", state)
	}
	return nil
}
