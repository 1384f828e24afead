package mysqlconn

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/copydb/copydb/state"
)

// maxSessions bounds the numbers of named locks, and so the sessions of one run
// on one server.
const maxSessions = 200

func (s *Server) connectLimit() time.Duration {
	if s.cfg.ConnectTimeout > 0 {
		return s.cfg.ConnectTimeout
	}
	return 10 * time.Second
}

// targetLocks is what the target's numbers begin behind: the two servers may be
// one by mistake, and that has to be told, not waited for.
const targetLocks = 1000

// lockName is at most 64 characters, which is MySQL's limit.
func (s *Server) lockName(runID string, n int) string {
	if s.cfg.Name == "target" {
		n += targetLocks
	}
	return fmt.Sprintf("copydb:%s:%d", runID, n)
}

// reserve takes the next free number, round and round: the server may hold the
// lock of a connection for a while after it was closed here (a dump thread looks
// at its socket with each heartbeat only).
func (s *Server) reserve() (int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.last
	for {
		n = n%maxSessions + 1
		if _, taken := s.sessions[n]; !taken {
			break
		}
	}
	s.last, s.highest = n, max(s.highest, n)
	if s.cfg.RunID == "" {
		s.sessions[n] = state.Session{}
		return n, ""
	}
	s.sessions[n] = state.Session{Lock: s.lockName(s.cfg.RunID, n)}
	return n, s.sessions[n].Lock
}

func (s *Server) register(n int, lock string, id uint64, c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[n] = state.Session{Lock: lock, ConnectionID: id, OpenedAt: time.Now().UTC()}
	s.closers[n] = c
}

func (s *Server) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, n)
	delete(s.closers, n)
}

// Reserve takes a named lock's name for a connection that is opened elsewhere
// (the binlog dump). The caller takes the lock on it, calls registered with the
// connection's id, and release when it is closed.
func (s *Server) Reserve() (lock string, registered func(id uint64), release func()) {
	n, lock := s.reserve()
	return lock, func(id uint64) { s.register(n, lock, id, nil) }, func() { s.release(n) }
}

// Sessions lists the open sessions, by lock.
func (s *Server) Sessions() []state.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []state.Session{}
	for _, v := range s.sessions {
		if v.ConnectionID != 0 {
			out = append(out, v)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ConnectionID < out[j].ConnectionID })
	return out
}

// Cut closes every open connection at once, without waiting for an answer; the
// server rolls back what they had begun.
func (s *Server) Cut() {
	s.mu.Lock()
	var all []io.Closer
	for _, c := range s.closers {
		if c != nil {
			all = append(all, c)
		}
	}
	s.mu.Unlock()
	for _, c := range all {
		if raw, ok := c.(*Session); ok {
			raw.cut()
		}
	}
}

// Sweep ends what is left of this run on the server: it looks every named lock
// of the run up, kills the sessions that hold one and waits until they are
// gone. The run's sessions must all be closed before. It reports how many were
// killed.
func (s *Server) Sweep(ctx context.Context) (int, error) {
	s.mu.Lock()
	n := s.highest
	s.mu.Unlock()
	return s.EndRun(ctx, s.cfg.RunID, n)
}

// EndRun does for the run runID, whose locks are numbered up to n (0: as many
// as there can be), what Sweep does for this one.
func (s *Server) EndRun(ctx context.Context, runID string, n int) (int, error) {
	if runID == "" {
		return 0, nil
	}
	if n <= 0 {
		n = maxSessions
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return 0, fmt.Errorf("connect to %s %s: %w", s.cfg.Name, s.cfg.Address(), err)
	}
	defer conn.Close()
	c := &Control{server: s, conn: conn}
	if err := c.QueryRow(ctx, []any{&c.id}, "SELECT CONNECTION_ID()"); err != nil {
		return 0, fmt.Errorf("look for sessions of run %s: %w", runID, err)
	}
	killed := map[uint64]bool{}
	for wait := 5 * time.Millisecond; ; wait = min(wait*2, 200*time.Millisecond) {
		held, err := c.holders(ctx, runID, n)
		if err != nil {
			return len(killed), fmt.Errorf("look for sessions of run %s on %s: %w", runID, s.cfg.Name, err)
		}
		if len(held) == 0 {
			return len(killed), nil
		}
		for _, id := range held {
			// A session that just ended is unknown (1094).
			if _, err := c.Exec(ctx, fmt.Sprintf("KILL %d", id)); err != nil && ErrorNumber(err) != 1094 {
				return len(killed), fmt.Errorf("end session %d of run %s on %s: %w", id, runID, s.cfg.Name, err)
			}
			killed[id] = true
		}
		select {
		case <-ctx.Done():
			return len(killed), fmt.Errorf("wait for sessions of run %s on %s to end: %w", runID, s.cfg.Name, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// RunSessions lists the connections of the server that hold a lock of the run,
// but for this one.
func (c *Control) RunSessions(ctx context.Context, runID string) ([]uint64, error) {
	if runID == "" {
		return nil, nil
	}
	return c.holders(ctx, runID, maxSessions)
}

// holders returns the connections that hold a lock of the run.
func (c *Control) holders(ctx context.Context, runID string, n int) ([]uint64, error) {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = "SELECT IS_USED_LOCK('" + c.server.lockName(runID, i+1) + "') AS id"
	}
	rows, err := c.QueryMaps(ctx, "SELECT DISTINCT id FROM ("+strings.Join(parts, " UNION ALL ")+") AS t WHERE id IS NOT NULL")
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, r := range rows {
		var id uint64
		if _, err := fmt.Sscan(r["id"], &id); err != nil {
			return nil, fmt.Errorf("parse connection id: %w", err)
		}
		if id != c.id {
			out = append(out, id)
		}
	}
	return out, nil
}
