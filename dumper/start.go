package dumper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// Start is where the copy of some tables begins, with their structures at that
// place.
type Start struct {
	Position state.Position
	// Until is set where Position is older than the structures (RungFileStart): the end
	// of the log while the metadata locks were held. Between the two the log may
	// have DDL of the tables, and changes of before it.
	Until  state.Position
	Tables []*table.Table
	// XAUnseen is set where XA RECOVER may not be called: a transaction that was
	// prepared before Position may be missing in every snapshot.
	XAUnseen bool
}

// firstEvent is where the events of a log file begin.
const firstEvent = 4

// batchSize is how many tables share a start position: their metadata locks are
// held together for the moment that takes.
const batchSize = 200

// flushBatch is the same where each position costs a new log file, or a pass
// through the current one.
const flushBatch = 2000

// TakeStart takes the start position and the structures of tables of one
// database together: the tables' metadata locks are held, by a transaction that
// touches each, while the ladder is walked on another connection and the
// structures are read. Then it ends.
//
// The XA barrier holds on every rung: XA RECOVER must have been empty once after
// the position was read, since a prepared transaction is in the log before the
// position and invisible to the snapshot.
func (d *Dumper) TakeStart(ctx context.Context, database string, names []string) (*Start, error) {
	holder, err := d.openSession(ctx, state.Position{})
	if err != nil {
		return nil, err
	}
	defer holder.Close()
	if _, err := holder.Exec(ctx, "START TRANSACTION READ ONLY"); err != nil {
		return nil, fmt.Errorf("begin on the source: %w", err)
	}
	for _, n := range names {
		name := table.Name{Database: database, Table: n}
		if err := holder.Query(ctx, "SELECT 1 FROM "+name.Quoted()+" LIMIT 0", func([][]byte) error { return nil }); err != nil {
			return nil, fmt.Errorf("lock the structure of %s: %w", name, err)
		}
	}
	other, err := d.openSession(ctx, state.Position{})
	if err != nil {
		return nil, err
	}
	defer other.Close()
	pos, err := d.walk(ctx, other)
	if err != nil {
		return nil, err
	}
	var until state.Position
	if d.cfg.Rung == position.RungFileStart {
		until, pos.Pos = pos, firstEvent
	}
	asked, err := d.waitForXA(ctx, other)
	if err != nil {
		return nil, err
	}
	tables, err := table.Load(ctx, other, d.flavor(), database, names)
	if err != nil {
		return nil, err
	}
	if _, err := holder.Exec(ctx, "ROLLBACK"); err != nil {
		return nil, fmt.Errorf("end transaction on the source: %w", err)
	}
	return &Start{Position: pos, Until: until, Tables: tables, XAUnseen: !asked}, nil
}

// Batch is how many tables one call of TakeStart should get.
func (d *Dumper) Batch() int {
	if d.cfg.Rung == position.RungFlush || d.cfg.Rung == position.RungFileStart {
		return flushBatch
	}
	return batchSize
}

// walk finds a position such that every transaction up to it is visible to any
// snapshot that is opened afterwards. On RungFileStart that holds for the begin of
// the file only: a rotation waits for what stands in the file before.
func (d *Dumper) walk(ctx context.Context, s *mysqlconn.Session) (state.Position, error) {
	switch d.cfg.Rung {
	case position.RungGTID:
		return gtidExecuted(ctx, s)
	case position.RungMariaDB:
		p, err := d.snapshotPosition(ctx, s)
		var rotating *rotatingError
		switch {
		case errors.As(err, &rotating) && !rotating.Passed.IsZero():
			return rotating.Passed, nil // an earlier start is as right
		case err != nil:
			return p, err
		}
		return p, endSnapshot(ctx, s)
	case position.RungFlush:
		return d.walkFlush(ctx, s)
	case position.RungFileStart:
		return Status(ctx, s, d.cfg.Identity.Version)
	}
	return state.Position{}, fmt.Errorf("no way to a start position: rung %q", d.cfg.Rung)
}

// gtidExecuted returns MySQL's position as the set of what is executed.
func gtidExecuted(ctx context.Context, s *mysqlconn.Session) (state.Position, error) {
	row, err := s.QueryRow(ctx, "SELECT @@global.gtid_executed")
	if err != nil {
		return state.Position{}, fmt.Errorf("read gtid_executed: %w", err)
	}
	return state.Position{GTIDSet: position.OneLine(string(row[0]))}, nil
}

// errNoGTID is MariaDB's answer NULL for a place in the log.
var errNoGTID = errors.New("the source knows no GTID position")

// withGTIDSet adds MariaDB's GTID position to a place in the log.
func withGTIDSet(ctx context.Context, s *mysqlconn.Session, p state.Position) (state.Position, error) {
	row, err := s.QueryRow(ctx, fmt.Sprintf("SELECT BINLOG_GTID_POS(%s, %d)", table.AppendString(nil, []byte(p.File)), p.Pos))
	if err != nil {
		return p, fmt.Errorf("read the GTID position of %s: %w", p, err)
	}
	if row[0] == nil {
		return p, fmt.Errorf("%w of %s", errNoGTID, p)
	}
	p.GTIDSet = string(row[0])
	return p, nil
}

// walkFlush starts at a new log file: a rotation waits until what stands in the
// old file is committed. A transaction that waits for a semi-synchronous
// replica is an exception, so none may wait.
func (d *Dumper) walkFlush(ctx context.Context, s *mysqlconn.Session) (state.Position, error) {
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		waiting, err := semiSyncWaiters(ctx, s)
		if err != nil {
			return state.Position{}, err
		}
		if waiting == 0 {
			if _, err := s.Exec(ctx, "FLUSH BINARY LOGS"); err != nil {
				return state.Position{}, fmt.Errorf("start a new binary log: %w", err)
			}
			p, err := Status(ctx, s, d.cfg.Identity.Version)
			if err != nil {
				return p, err
			}
			if waiting, err = semiSyncWaiters(ctx, s); err != nil {
				return p, err
			}
			if waiting == 0 {
				p.Pos = firstEvent
				return p, nil
			}
		}
		if wait > 2*time.Second {
			return state.Position{}, fmt.Errorf("start a new binary log: %d sessions wait in their commit for a semi-synchronous replica", waiting)
		}
		if err := group.Pause(ctx, wait); err != nil {
			return state.Position{}, err
		}
	}
}

func semiSyncWaiters(ctx context.Context, s *mysqlconn.Session) (int, error) {
	n := 0
	err := s.Query(ctx, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%_wait_sessions'", func(f [][]byte) error {
		v, err := strconv.Atoi(string(f[1]))
		n += v
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look at semi-synchronous replication: %w", err)
	}
	return n, nil
}

// xaWait bounds the wait for prepared XA transactions.
const xaWait = 30 * time.Second

// XAError names prepared XA transactions that did not end in time.
type XAError struct{ IDs []string }

// Error lists the transactions.
func (e *XAError) Error() string {
	return fmt.Sprintf("prepared XA transactions on the source: %s", strings.Join(e.IDs, ", "))
}

// waitForXA returns once XA RECOVER is empty. Where it may not be called there
// is no barrier, and asked is false: the stream then stops at an XA COMMIT whose
// PREPARE it has not seen.
func (d *Dumper) waitForXA(ctx context.Context, s *mysqlconn.Session) (asked bool, err error) {
	deadline := time.Now().Add(xaWait)
	for wait := 20 * time.Millisecond; ; wait = min(wait*2, time.Second) {
		ids, asked, err := d.preparedXA(ctx, s)
		switch {
		case err != nil || len(ids) == 0:
			return asked, err
		case time.Now().After(deadline):
			return asked, &XAError{IDs: ids}
		}
		if err := group.Pause(ctx, wait); err != nil {
			return asked, err
		}
	}
}

// preparedXA lists the prepared XA transactions. Where that is not allowed it
// lists none, and asked is false.
func (d *Dumper) preparedXA(ctx context.Context, s *mysqlconn.Session) (ids []string, asked bool, err error) {
	err = s.Query(ctx, "XA RECOVER", func(f [][]byte) error {
		ids = append(ids, string(f[3]))
		return nil
	})
	switch {
	case mysqlconn.IsAccessDenied(err) || mysqlconn.ErrorNumber(err) == 1401:
		d.cfg.Logger.Debug("may not look for prepared XA transactions", "error", err)
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("look for prepared XA transactions: %w", err)
	}
	return ids, true, nil
}

// Status returns the end of the binary log: file and position only, since the
// GTID set that the server prints beside them is not of the same moment.
func Status(ctx context.Context, q table.Queryer, v mysqlconn.Version) (state.Position, error) {
	var p state.Position
	err := q.Query(ctx, v.BinlogStatusQuery(), func(f [][]byte) error {
		p.File = string(f[0])
		n, err := strconv.ParseUint(string(f[1]), 10, 64)
		p.Pos = n
		return err
	})
	if err == nil && p.File == "" {
		err = errors.New("the binary log is off")
	}
	if err != nil {
		return p, fmt.Errorf("read the end of the binary log: %w", err)
	}
	return p, nil
}
