package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	startTimeout  = 90 * time.Second
	startTries    = 5
	maxSocketPath = 100 // the kernel's limit is 107
)

var lastServerID atomic.Uint32

// Server is one server of the tests' own. Its fields don't change.
type Server struct {
	Kind     Kind
	Version  string // what the binary says, as in "9.7.4"
	Host     string // always 127.0.0.1
	Port     int    // the same over restarts
	Socket   string // path of the Unix socket
	RootUser string // a super user without a password, over TCP and the socket
	DataDir  string // data folder, binary logs included
	ServerID uint32

	options  Options
	binaries *Binaries
	dir      string // owned: log, pid file and, as a rule, socket and data
	sockDir  string // owned, if the socket is not in dir
	proc     *process

	mu sync.Mutex
	db *sql.DB
}

// Start starts a server and returns when it answers. It fetches binaries and
// makes the template first where they aren't in the cache. An error of a start
// that failed carries the end of the server's log. The caller must Close the
// server; a context that ends later does not stop it.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s, err := prepare(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("prepare %s server: %w", o.Kind, err)
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s server: %w", o.Kind, err), s.Close())
	}
	return s, nil
}

// prepare makes everything but the process.
func prepare(ctx context.Context, o Options) (*Server, error) {
	b, err := locateOnce(ctx, o.Kind)
	if err != nil {
		return nil, err
	}
	from, err := template(ctx, b)
	if err != nil {
		return nil, err
	}
	if o.ServerID == 0 {
		o.ServerID = 1000 + lastServerID.Add(1)
	}
	dir, err := newRunDir(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{Kind: o.Kind, Version: b.Version, Host: "127.0.0.1", RootUser: "root",
		ServerID: o.ServerID, DataDir: o.DataDir, options: o, binaries: b, dir: dir}
	if err := s.fill(from); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) fill(from string) error {
	if s.DataDir == "" {
		s.DataDir = filepath.Join(s.dir, "data")
	}
	s.Socket = filepath.Join(s.dir, "sock")
	if len(s.Socket) > maxSocketPath {
		dir, err := os.MkdirTemp("", "cdb")
		if err != nil {
			return fmt.Errorf("make folder for the socket: %w", err)
		}
		s.sockDir, s.Socket = dir, filepath.Join(dir, "sock")
	}
	if entries, err := os.ReadDir(s.DataDir); err == nil && len(entries) > 0 {
		return nil
	}
	if err := copyTemplate(from, s.DataDir); err != nil {
		return fmt.Errorf("copy template data folder: %w", err)
	}
	return nil
}

// start starts the process, on another port if it lost the race for one.
func (s *Server) start(ctx context.Context) error {
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.Port = port
		err = s.launch(ctx)
		if err == nil {
			return nil
		}
		s.Port = 0
		releasePort(port)
		if !errors.Is(err, errPortTaken) || try == startTries {
			return err
		}
	}
}

var (
	errPortTaken = errors.New("port is taken")
	errNoStart   = errors.New("server ended before it answered")
)

// launch runs the server on its port and waits until it answers.
func (s *Server) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open error log: %w", err)
	}
	defer log.Close()
	before, err := log.Seek(0, 2)
	if err != nil {
		return fmt.Errorf("open error log: %w", err)
	}
	args := s.options.args(s.DataDir, s.Socket, filepath.Join(s.dir, "pid"), s.Port)
	if s.proc, err = spawn(s.binaries.argv(args...), s.dir, log); err != nil {
		return err
	}
	err = s.wait(ctx)
	if err == nil {
		return nil
	}
	s.proc.kill()
	said := s.logFrom(before)
	if strings.Contains(said, "Address already in use") {
		err = errPortTaken
	}
	return fmt.Errorf("%w; its log ends:\n%s", err, tail(said, 4000))
}

// wait returns when the server answers a query, has ended, or ctx is done.
func (s *Server) wait(ctx context.Context) error {
	db := s.Open()
	defer db.Close()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.proc.done:
			return errNoStart
		case <-ctx.Done():
			return fmt.Errorf("wait for the server: %w (last: %w)", context.Cause(ctx), err)
		case <-time.After(pollInterval):
		}
	}
}

// PID returns the process id of the last run.
func (s *Server) PID() int { return s.proc.cmd.Process.Pid }

// Running tells whether the process is there, paused or not.
func (s *Server) Running() bool { return s.proc != nil && !s.proc.gone() }

// Stop shuts the server down cleanly and waits for it. The data stay; Restart
// goes on with them. Stopping a server that is down does nothing.
func (s *Server) Stop() error { return s.proc.stop() }

// Kill9 ends the server at once with SIGKILL, as a crash does, and waits until
// the process is gone.
func (s *Server) Kill9() { s.proc.kill() }

// Pause freezes the server with SIGSTOP and waits until it stands still: its
// connections stay open and silent.
func (s *Server) Pause() error { return s.proc.pause() }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return s.proc.signal(syscall.SIGCONT) }

// Restart starts the server again on the same port and data, after a clean
// Stop if it runs. The arguments are added to those it had, for good.
func (s *Server) Restart(ctx context.Context, extraArgs ...string) error {
	if err := s.Stop(); err != nil {
		return err
	}
	s.options.ExtraArgs = append(append([]string{}, s.options.ExtraArgs...), extraArgs...)
	for try := 1; ; try++ {
		err := s.launch(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errPortTaken) || try == startTries {
			return fmt.Errorf("restart %s server: %w", s.Kind, err)
		}
	}
}

// Close ends the server at once and removes its data folder, unless the caller
// owns that. It may be called twice.
func (s *Server) Close() error {
	if s.proc != nil {
		s.proc.kill()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.Close())
		s.db = nil
	}
	if s.sockDir != "" {
		errs = append(errs, os.RemoveAll(s.sockDir))
		s.sockDir = ""
	}
	if s.dir != "" {
		errs = append(errs, dropRunDir(s.dir))
		s.dir = ""
	}
	if s.Port != 0 {
		releasePort(s.Port)
	}
	return errors.Join(errs...)
}

// Log returns the last lines of the server's error log, up to 16 KiB.
func (s *Server) Log() string { return tail(s.logFrom(0), 16<<10) }

func (s *Server) logPath() string { return filepath.Join(s.dir, "error.log") }

func (s *Server) logFrom(offset int64) string {
	text, err := os.ReadFile(s.logPath())
	if err != nil || int64(len(text)) < offset {
		return ""
	}
	return string(text[offset:])
}
