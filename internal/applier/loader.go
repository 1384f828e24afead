package applier

import (
	"context"
	"fmt"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
)

// conflictTries is how often a transaction that met a deadlock or gave up on a
// lock is run again.
const conflictTries = 10

// Loader writes chunks of the snapshot. It belongs to one goroutine.
type Loader struct {
	cfg  Config
	main line
	// side writes tables whose engine does not roll back: outside the
	// transaction, beside the fence. Mixing both in one transaction violates
	// enforce_gtid_consistency (error 1785).
	side line
}

// LoadError says which chunk was not written.
type LoadError struct {
	Chunk string
	Range progress.Range // its keys: for those who may see what rows hold
	Err   error
}

// Error names everything but values.
func (e *LoadError) Error() string { return fmt.Sprintf("load chunk of %s: %v", e.Chunk, e.Err) }

// Unwrap returns the server's error.
func (e *LoadError) Unwrap() error { return e.Err }

// KeyText is the end of the keys that the chunk has; empty where it is open.
func (e *LoadError) KeyText() string {
	if len(e.Range.To) == 0 {
		return ""
	}
	return fmt.Sprintf("up to %q", e.Range.To)
}

// NewLoader opens nothing.
func NewLoader(cfg Config) *Loader { return &Loader{cfg: cfg} }

// Close ends the sessions.
func (l *Loader) Close() error {
	l.main.close()
	l.side.close()
	return nil
}

// Load writes the chunk and notes its range and what it carries, all or nothing; of an engine that
// does not roll back, rows may be there without the range. Only deadlocks and
// lock waits are tried again here.
func (l *Loader) Load(ctx context.Context, c *Chunk) error {
	c.seal()
	var err error
	for range conflictTries {
		if err = l.load(ctx, c); !mysqlconn.IsLockConflict(err) {
			break
		}
	}
	if err != nil {
		l.Close()
		return &LoadError{Chunk: c.Text(), Range: c.Range, Err: err}
	}
	return nil
}

func (l *Loader) load(ctx context.Context, c *Chunk) error {
	session, err := l.main.open(ctx, l.cfg)
	if err != nil {
		return err
	}
	writer := session
	if !table.Transactional(c.Layout.Table.TargetEngine()) {
		if writer, err = l.side.open(ctx, l.cfg); err != nil {
			return err
		}
	}
	return l.cfg.inTransaction(ctx, session, func() error {
		if err := write(ctx, writer, c); err != nil {
			return err
		}
		for _, q := range append([]string{l.cfg.Progress.RangeSQL(c.Layout.Table.FullName(), c.Range)}, c.Also...) {
			if _, err := session.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
}

func write(ctx context.Context, s *mysqlconn.Session, c *Chunk) error {
	switch {
	case c.Rows == 0:
		return nil
	case c.zeros > 0: // a strict session refuses ENUM's index 0 (error 1265)
		return loosely(ctx, s, func() error { return writeRows(ctx, s, c) })
	}
	return writeRows(ctx, s, c)
}

func writeRows(ctx context.Context, s *mysqlconn.Session, c *Chunk) error {
	if c.Layout.Method == Inserts {
		return insert(ctx, s, c)
	}
	res, err := s.LoadLocal(ctx, c.Layout.head, c.data)
	if err != nil {
		return err
	}
	var records, deleted, skipped int64
	var warnings int
	if n, _ := fmt.Sscanf(res.Info, "Records: %d Deleted: %d Skipped: %d Warnings: %d", &records, &deleted, &skipped, &warnings); n == 4 {
		if records != c.Rows || skipped != 0 {
			return fmt.Errorf("the target took %d of %d rows and skipped %d", records, c.Rows, skipped)
		}
	} else if res.Affected < uint64(c.Rows) {
		return fmt.Errorf("the target wrote %d of %d rows", res.Affected, c.Rows)
	}
	// The OK packet has 16 bits for warnings; the text has all.
	return checkWarnings(ctx, s, c.Layout.Table, max(warnings, int(res.Warnings)), c.zeros)
}

func insert(ctx context.Context, s *mysqlconn.Session, c *Chunk) error {
	begin := 0
	var affected uint64
	for _, st := range c.cuts {
		res, err := s.ExecBytes(ctx, c.data[begin:st.end])
		if err != nil {
			return err
		}
		if err := checkWarnings(ctx, s, c.Layout.Table, int(res.Warnings), st.zeros); err != nil {
			return err
		}
		affected += res.Affected
		begin = st.end
	}
	if affected < uint64(c.Rows) {
		return fmt.Errorf("the target wrote %d of %d rows", affected, c.Rows)
	}
	return nil
}

// Split notes that a segment was cut in two; see progress.Store.SplitSQL.
func (c Config) Split(ctx context.Context, n table.Name, first, part progress.Range) error {
	s, err := c.OpenSession(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return c.inTransaction(ctx, s, func() error {
		for _, q := range c.Progress.SplitSQL(n, first, part) {
			if _, err := s.Exec(ctx, q); err != nil {
				return fmt.Errorf("note the cut of a segment of %s: %w", n, err)
			}
		}
		return nil
	})
}
