package mysqlconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// watchedConn remembers when bytes last arrived or left.
type watchedConn struct {
	net.Conn
	last atomic.Int64 // Unix nanoseconds
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.last.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *watchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.last.Store(time.Now().UnixNano())
	}
	return n, err
}

// guard runs fn with a context that is cancelled with ErrSilent once the server
// has been silent for the network timeout and does not say, on a connection of
// its own, that it works on a statement of connection id. A read timeout alone
// would end a long ALTER or LOAD DATA that is fine.
//
// last tells when bytes moved (nil: not since the start). The watch is a timer,
// so that a statement that answers in time costs no goroutine.
func (s *Server) guard(ctx context.Context, id uint64, last *atomic.Int64, fn func(context.Context) error) error {
	err := s.watched(ctx, id, last, fn)
	if IsConnectionLost(err) && ctx.Err() == nil {
		return &LostError{Server: s.cfg.Name, Address: s.cfg.Address(), Err: err}
	}
	return err
}

func (s *Server) watched(ctx context.Context, id uint64, last *atomic.Int64, fn func(context.Context) error) error {
	if s.cfg.NetworkTimeout <= 0 {
		return fn(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &watch{server: s, id: id, last: last, started: time.Now(), cancel: cancel}
	w.arm(ctx, s.cfg.NetworkTimeout)
	err := fn(ctx)
	w.disarm()
	if err != nil && errors.Is(context.Cause(ctx), ErrSilent) {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return err
}

// watch is the timer of one guarded statement.
type watch struct {
	server  *Server
	id      uint64
	last    *atomic.Int64
	started time.Time
	cancel  context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	done  bool
}

func (w *watch) arm(ctx context.Context, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.timer = time.AfterFunc(after, func() { w.look(ctx) })
	}
}

func (w *watch) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	w.timer.Stop()
}

func (w *watch) look(ctx context.Context) {
	limit := w.server.cfg.NetworkTimeout
	moved := w.started
	if w.last != nil && w.last.Load() > moved.UnixNano() {
		moved = time.Unix(0, w.last.Load())
	}
	if rest := limit - time.Since(moved); rest > 0 {
		w.arm(ctx, rest)
		return
	}
	if err := w.server.working(ctx, w.id); err != nil {
		w.cancel(err)
		return
	}
	w.arm(ctx, limit)
}

// working asks the server, on a new connection, whether id runs a statement.
func (s *Server) working(ctx context.Context, id uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.NetworkTimeout)
	defer cancel()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return ErrSilent
	}
	defer conn.Close()
	var command string
	err = conn.QueryRowContext(ctx, "SELECT COMMAND FROM information_schema.PROCESSLIST WHERE ID = ?", id).Scan(&command)
	if err != nil || command == "Sleep" {
		return ErrSilent
	}
	return nil
}
