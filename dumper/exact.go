package dumper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// CopyExact reads whole tables, one after the other, in one snapshot whose
// position is exact: every transaction up to it is in the snapshot, and none
// behind it. The tables' metadata locks are held until the end, so DDL on them
// waits; a table whose engine does not roll back is locked. begun is called with
// the position before the first row is written; a read that does not come to its
// end is worth nothing and begins again from empty tables. Only the first job's
// Begin is called: nothing is waited for while the snapshot is open.
func (r *Reader) CopyExact(ctx context.Context, jobs []*Job, begun func(at state.Position, seen Seen) error, write func(context.Context, *applier.Chunk) error) error {
	r.Close() // a session of its own, with nothing open
	defer r.Close()
	if err := jobs[0].Begin(ctx); err != nil {
		return err
	}
	at, seen, err := r.openExact(ctx, jobs)
	if err != nil {
		return fmt.Errorf("open an exact snapshot of %s: %w", jobs[0].Layout.Table, err)
	}
	if err := begun(at, seen); err != nil {
		return err
	}
	full := make(chan readChunk)
	free := make(chan *applier.Chunk, len(r.chunks))
	for _, c := range r.chunks {
		free <- c
	}
	g, ctx := group.WithContext(ctx)
	g.Go("reader of an exact table", func() error {
		defer close(full)
		for i, job := range jobs {
			if err := r.readWhole(ctx, job, i == len(jobs)-1, free, full); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go("writer of a table", func() error { return writeAll(ctx, free, full, write) })
	return g.Wait()
}

// writeAll writes chunks as they come and gives them back.
func writeAll(ctx context.Context, free chan<- *applier.Chunk, full <-chan readChunk, write func(context.Context, *applier.Chunk) error) error {
	for c := range full {
		name := c.chunk.Layout.Table.String()
		err := write(ctx, c.chunk)
		c.free()
		if err != nil {
			return err
		}
		if err := hold.Point(ctx, "chunk_written:"+name); err != nil {
			return err
		}
		free <- c.chunk
	}
	return nil
}

// readWhole reads the table with one query and cuts what comes into chunks. The
// last table ends the snapshot.
func (r *Reader) readWhole(ctx context.Context, job *Job, last bool, free <-chan *applier.Chunk, full chan<- readChunk) error {
	var total progress.Range
	var read readChunk
	begin := func() error {
		select {
		case read.chunk = <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		size := job.ChunkBytes + job.ChunkBytes/2
		var err error
		if read.memory, err = reserve(ctx, job, size); err == nil {
			read.chunk.Reset(job.Layout, int(size))
			r.bound(ctx, read)
		}
		return err
	}
	passOn := func(done bool) error {
		c := read
		read = readChunk{}
		total.Rows, total.Bytes, total.Done = total.Rows+c.chunk.Rows, total.Bytes+c.chunk.Bytes, done
		c.chunk.Range = total
		job.Read(c.chunk.Bytes)
		return pass(ctx, job.Layout.Table.String(), c, full)
	}
	defer func() { read.free() }() // what was not passed on
	if err := begin(); err != nil {
		return err
	}
	most := job.Layout.MaxRows()
	if n := hold.ChunkRows(); n > 0 {
		most = n
	}
	query := "SELECT " + job.Layout.SelectList() + " FROM " + job.Layout.Table.Quoted()
	err := r.session.Query(ctx, query, func(fields [][]byte) error {
		c := read.chunk
		c.Append(fields)
		if int64(c.Size()) < job.ChunkBytes && c.Rows < most {
			return nil
		}
		if err := passOn(false); err != nil {
			return err
		}
		return begin()
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", job.Layout.Table, err)
	}
	if last {
		end := "ROLLBACK"
		if !job.Layout.Table.Transactional() {
			end = "UNLOCK TABLES"
		}
		if _, err := r.session.Exec(ctx, end); err != nil {
			return fmt.Errorf("end the snapshot: %w", err)
		}
	}
	return passOn(true)
}

// exactTries is how often a quiet moment is waited for before the table is
// locked.
const exactTries = 20

// openExact opens the snapshot on r.session and returns its position. The
// tables' metadata locks are held and their structures compared.
func (r *Reader) openExact(ctx context.Context, jobs []*Job) (at state.Position, seen Seen, err error) {
	if err := r.open(ctx, jobs[0]); err != nil {
		return at, seen, err
	}
	for _, job := range jobs[1:] {
		if err := r.d.prove(ctx, r.session, job.Start); err != nil {
			return at, seen, err
		}
	}
	// One query feeds the writer until the end of the table, and waits for it. It
	// holds the table's metadata lock, so it may not wait for long where nobody
	// reads any more.
	if _, err := r.session.Exec(ctx, "SET SESSION net_write_timeout = 600"); err != nil {
		return at, seen, err
	}
	switch rung := r.d.cfg.Rung; {
	case !jobs[0].Layout.Table.Transactional():
		at, err = r.holdLocked(ctx, jobs)
	case rung == position.RungMariaDB:
		at, err = r.exactMariaDB(ctx, jobs)
	case rung == position.RungGTID:
		at, err = r.exactGTID(ctx, jobs)
	default:
		at, err = r.exactLocked(ctx, jobs)
	}
	if err != nil {
		return at, seen, err
	}
	for _, job := range jobs {
		if err := r.touch(ctx, job); err != nil {
			return at, seen, err
		}
	}
	seen.Position, err = Status(ctx, r.session, r.d.cfg.Identity.Version)
	return at, seen, err
}

// touch takes a table's metadata lock for the open snapshot and compares its
// structure.
func (r *Reader) touch(ctx context.Context, job *Job) error {
	t := job.Layout.Table
	err := r.session.Query(ctx, "SELECT 1 FROM "+t.Quoted()+" LIMIT 0", func([][]byte) error { return nil })
	if err != nil {
		return &ReadError{Table: t.String(), Err: asChanged(job, err)}
	}
	text, err := table.ShowCreate(ctx, r.session, t.FullName())
	if err != nil {
		return err
	}
	if !table.SameCreate(text, string(t.Create)) {
		return &ChangedError{t.FullName(), "its structure is another one"}
	}
	return nil
}

// exactMariaDB locks the tables for the instant of the snapshot where it may:
// that waits for those that wrote to one, XA transactions among them, and is a
// proof. Else, and where a transaction holds a table for long, it takes the
// position that MariaDB gives with the snapshot.
func (r *Reader) exactMariaDB(ctx context.Context, jobs []*Job) (at state.Position, err error) {
	if !r.d.cfg.AllowLocks {
		return r.exactUnlocked(ctx, jobs)
	}
	at, err = r.exactLocked(ctx, jobs)
	if mysqlconn.IsAccessDenied(err) || mysqlconn.IsLockConflict(err) {
		return r.exactUnlocked(ctx, jobs)
	}
	return at, err
}

// exactUnlocked opens a snapshot that tells its own position, at a moment when no
// XA transaction is prepared and none is committed: an XA COMMIT can be in the
// position and not in the snapshot. One that was prepared and committed between
// the two looks at XA RECOVER is known by the server's counter.
func (r *Reader) exactUnlocked(ctx context.Context, jobs []*Job) (at state.Position, err error) {
	for range exactTries {
		before, err := r.d.xaState(ctx, r.session)
		if err != nil {
			return at, err
		}
		if at, err = r.d.snapshotPosition(ctx, r.session); err != nil {
			return at, err
		}
		after, err := r.d.xaState(ctx, r.session)
		if err != nil {
			return at, err
		}
		if before == after && after.prepared == 0 {
			return at, nil
		}
		if err := r.again(ctx); err != nil {
			return at, err
		}
	}
	return at, fmt.Errorf("read %s: XA transactions are prepared or committed all the time, and without LOCK TABLES no exact position can be told beside them", jobs[0].Layout.Table)
}

// xaState is what tells whether XA transactions move: how many XA COMMITs were
// begun since the server started, and how many transactions are prepared.
type xaState struct {
	commits  string
	prepared int
}

// xaState counts first: whoever commits later is counted by the next call, and
// whoever began to commit before is prepared until that is through.
func (d *Dumper) xaState(ctx context.Context, s *mysqlconn.Session) (xaState, error) {
	row, err := s.QueryRow(ctx, "SHOW GLOBAL STATUS LIKE 'Com_xa_commit'")
	if err == nil && len(row) < 2 {
		err = errors.New("the server does not give it")
	}
	if err != nil {
		return xaState{}, fmt.Errorf("read Com_xa_commit: %w", err)
	}
	ids, _, err := d.preparedXA(ctx, s)
	return xaState{string(row[1]), len(ids)}, err
}

// again ends a snapshot whose position is not exact and waits a moment.
func (r *Reader) again(ctx context.Context) error {
	if err := endSnapshot(ctx, r.session); err != nil {
		return err
	}
	return group.Pause(ctx, 10*time.Millisecond)
}

// exactGTID opens a snapshot between two equal readings of gtid_executed with
// nothing owned and no XA transaction prepared in between: one that was prepared
// before could not have been committed without another GTID. Where the source is
// never that quiet, it locks the table, which waits for both. "Same position
// before and after" alone is no proof.
func (r *Reader) exactGTID(ctx context.Context, jobs []*Job) (at state.Position, err error) {
	for range exactTries {
		if at, err = gtidExecuted(ctx, r.session); err != nil {
			return at, err
		}
		if err := openSnapshot(ctx, r.session); err != nil {
			return at, err
		}
		prepared, _, err := r.d.preparedXA(ctx, r.session)
		if err != nil {
			return at, err
		}
		after, err := r.session.QueryRow(ctx, "SELECT @@global.gtid_owned, @@global.gtid_executed")
		if err != nil {
			return at, fmt.Errorf("read gtid_owned: %w", err)
		}
		if len(prepared) == 0 && len(after[0]) == 0 && position.OneLine(string(after[1])) == at.GTIDSet {
			return at, nil
		}
		if err := r.again(ctx); err != nil {
			return at, err
		}
	}
	return r.exactLocked(ctx, jobs)
}

// exactLocked opens the snapshot while another session holds a read lock on the
// tables: the lock waits for every transaction that wrote to one, until its
// commit is through.
func (r *Reader) exactLocked(ctx context.Context, jobs []*Job) (at state.Position, err error) {
	if !r.d.cfg.AllowLocks {
		return at, errors.New("an exact position needs LOCK TABLES … READ for an instant, and source.allow_locks is false")
	}
	locker, err := r.d.openSession(ctx, jobs[0].Start)
	if err != nil {
		return at, err
	}
	defer locker.Close() // unlocks
	if err := lockTables(ctx, locker, jobs); err != nil {
		return at, err
	}
	if at, err = r.openLocked(ctx, locker); err != nil {
		return at, err
	}
	if _, err := locker.Exec(ctx, "UNLOCK TABLES"); err != nil {
		return at, fmt.Errorf("unlock %s: %w", jobs[0].Layout.Table, err)
	}
	return at, nil
}

// lockedWriteTimeout is for how many seconds the source waits for a reader that
// keeps others from writing.
const lockedWriteTimeout = 60

// holdLocked locks a table that is in no snapshot, on the session that reads it:
// writers wait until all of it is read.
func (r *Reader) holdLocked(ctx context.Context, jobs []*Job) (at state.Position, err error) {
	if !r.d.cfg.AllowLocks {
		return at, errors.New("it is in no snapshot and has no usable key, so it needs LOCK TABLES … READ, and source.allow_locks is false")
	}
	if _, err := r.session.Exec(ctx, fmt.Sprintf("SET SESSION net_write_timeout = %d", lockedWriteTimeout)); err != nil {
		return at, err
	}
	if err := lockTables(ctx, r.session, jobs); err != nil {
		return at, err
	}
	return r.lockedPosition(ctx, r.session)
}

// openLocked opens the snapshot and returns its position, while locker holds the
// tables.
func (r *Reader) openLocked(ctx context.Context, locker *mysqlconn.Session) (at state.Position, err error) {
	if at, err = r.lockedPosition(ctx, locker); err != nil {
		return at, err
	}
	return at, openSnapshot(ctx, r.session)
}

// lockedPosition returns the position while a session holds tables: whoever wrote
// to them is through with its commit. A MariaDB may not know the GTID position of
// a place that others are just writing to.
func (r *Reader) lockedPosition(ctx context.Context, locker *mysqlconn.Session) (at state.Position, err error) {
	if r.d.cfg.Rung == position.RungGTID {
		return gtidExecuted(ctx, locker)
	}
	for range exactTries {
		at, err = Status(ctx, locker, r.d.cfg.Identity.Version)
		if err != nil || r.d.cfg.Rung != position.RungMariaDB {
			return at, err
		}
		if at, err = withGTIDSet(ctx, locker, at); !errors.Is(err, errNoGTID) {
			return at, err
		}
	}
	return at, err
}

// lockTables takes the read locks, all or none, waiting at most a second at a
// time: while it waits, writers queue behind it.
func lockTables(ctx context.Context, s *mysqlconn.Session, jobs []*Job) error {
	var list []string
	for _, job := range jobs {
		list = append(list, job.Layout.Table.Quoted()+" READ")
	}
	if _, err := s.Exec(ctx, "SET SESSION lock_wait_timeout = 1"); err != nil {
		return err
	}
	var err error
	for wait := 50 * time.Millisecond; wait < 5*time.Second; wait *= 2 {
		if _, err = s.Exec(ctx, "LOCK TABLES "+strings.Join(list, ", ")); err == nil || !mysqlconn.IsLockConflict(err) {
			break
		}
		if perr := group.Pause(ctx, wait); perr != nil {
			return perr
		}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", jobs[0].Layout.Table, err)
	}
	return nil
}
