package dumper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// Job is one table to read.
type Job struct {
	Layout     *applier.Layout
	Start      state.Position // the table's start position
	ChunkBytes int64          // aim for a chunk's size as read

	// Seen is called behind the first and the last chunk of each segment, with
	// what was true under the table's metadata lock; first and last say which. The
	// chunk may be made to carry more.
	Seen func(c *applier.Chunk, seen Seen, first, last bool) error
	// Begin waits until a chunk may be begun. No snapshot is open meanwhile.
	Begin func(ctx context.Context) error
	// Read is called for each chunk that was read, before it is written, with its
	// bytes.
	Read func(bytes int64)
	// Room waits for memory of so many bytes and returns how it is given back.
	Room func(ctx context.Context, bytes int64) (release func(), err error)
	// Alone waits until no other chunk takes more memory than Room gave it.
	Alone func(ctx context.Context) (release func(), err error)
}

// Seen is what a reader saw while a snapshot held the table's metadata lock.
type Seen struct {
	Position state.Position // the end of the binary log then
	TableID  string         // the engine's id of the table; "" where it cannot be had
	Whole    bool           // the chunk is the whole table
}

// Reader reads chunks over one session. It belongs to one goroutine.
type Reader struct {
	d       *Dumper
	session *mysqlconn.Session
	used    time.Time         // when the session was used last
	chunks  [2]*applier.Chunk // one is read while the other is written
}

// idleLimit is how long a session may wait for the writer before another one is
// opened instead: the server ends it after a minute (see setup).
const idleLimit = 30 * time.Second

// NewReader opens nothing.
func (d *Dumper) NewReader() *Reader {
	return &Reader{d: d, chunks: [2]*applier.Chunk{{}, {}}}
}

// Close ends the session and with it the snapshot that may be open on it.
func (r *Reader) Close() error {
	if r.session != nil {
		r.session.Close()
		r.session = nil
	}
	return nil
}

// open sees to a session that is fit for use.
func (r *Reader) open(ctx context.Context, job *Job) (err error) {
	if time.Since(r.used) > idleLimit {
		r.Close()
	}
	if r.session == nil {
		r.session, err = r.d.openSession(ctx, job.Start)
	}
	r.used = time.Now()
	return err
}

// readChunk is a chunk on its way to the writer, with the memory it holds.
type readChunk struct {
	chunk  *applier.Chunk
	memory *memory
}

// free gives the chunk's memory back.
func (c readChunk) free() {
	if c.chunk != nil {
		c.chunk.Free()
	}
	if c.memory != nil {
		c.memory.free()
	}
}

// Copy reads a segment to its end, chunk by chunk, each in a snapshot
// transaction of its own that has ended before write is called with it; the
// next one is read meanwhile. A chunk belongs to write until it returns.
func (r *Reader) Copy(ctx context.Context, job *Job, s *Segment, write func(context.Context, *applier.Chunk) error) error {
	free := make(chan *applier.Chunk, len(r.chunks))
	for _, c := range r.chunks {
		free <- c
	}
	full := make(chan readChunk)
	g, ctx := group.WithContext(ctx)
	g.Go("reader of a table", func() error {
		defer close(full)
		return r.readAll(ctx, job, s, free, full)
	})
	g.Go("writer of a table", func() error { return writeAll(ctx, free, full, write) })
	err := g.Wait()
	if err != nil {
		r.Close()
	}
	return err
}

// readAll reads the segment's chunks into free ones and passes them on.
func (r *Reader) readAll(ctx context.Context, job *Job, s *Segment, free <-chan *applier.Chunk, full chan<- readChunk) error {
	q := newChunkQuery(job.Layout)
	size := newSizer(job, s)
	name := job.Layout.Table.String()
	for done := false; !done; {
		var c *applier.Chunk
		select {
		case c = <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := job.Begin(ctx); err != nil {
			return err
		}
		m, err := reserve(ctx, job, size.room())
		if err != nil {
			return err
		}
		read := readChunk{c, m}
		if done, err = r.next(ctx, job, q, s, size, read); err != nil {
			read.free()
			return &ReadError{Table: name, Err: err}
		}
		job.Read(c.Bytes)
		if err := pass(ctx, name, read, full); err != nil {
			return err
		}
	}
	return nil
}

// pass hands a chunk over to the writer, or frees it.
func pass(ctx context.Context, table string, c readChunk, full chan<- readChunk) error {
	if err := hold.Point(ctx, "chunk_read:"+table); err != nil {
		c.free()
		return err
	}
	select {
	case full <- c:
		return nil
	case <-ctx.Done():
		c.free()
		return context.Cause(ctx)
	}
}

// next reads the segment's next chunk into read. It reports whether the
// segment's end was reached.
func (r *Reader) next(ctx context.Context, job *Job, q chunkQuery, s *Segment, size *sizer, read readChunk) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.read.Rows == 0 && len(s.read.To) == 0
	c := read.chunk
	c.Reset(job.Layout, size.full())
	end, seen, err := r.readChunk(ctx, job, q, s, size, read, first)
	if err == nil && seen != nil {
		seen.Whole = first && len(end) == 0 && len(s.read.After) == 0 && len(s.read.Until) == 0
		err = job.Seen(c, *seen, first, len(end) == 0)
	}
	if err != nil {
		r.Close()
		return false, err
	}
	size.learn(c)
	s.read.Rows += c.Rows
	s.read.Bytes += c.Bytes
	s.read.To, s.read.Done = end, len(end) == 0
	if s.read.Done {
		s.read.To = s.read.Until
		s.setRest(0)
	} else {
		s.took(c.Rows)
	}
	c.Range = s.read
	return s.read.Done, nil
}

// ReadError is an error of reading a table, as opposed to writing it.
type ReadError struct {
	Table string
	Err   error
}

// Error names the table.
func (e *ReadError) Error() string { return fmt.Sprintf("read %s: %v", e.Table, e.Err) }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// errFull ends a query before its end: its rows are larger than was expected, or
// somebody waits for the table.
var errFull = errors.New("chunk is full")

// readChunk reads one chunk and returns its last key: empty where the segment's
// end was reached. Its caller closes the session after an error, which ends the
// snapshot.
func (r *Reader) readChunk(ctx context.Context, job *Job, q chunkQuery, s *Segment, size *sizer, read readChunk, first bool) (end []state.Text, seen *Seen, err error) {
	if err := r.open(ctx, job); err != nil {
		return nil, nil, err
	}
	if _, err := r.session.Exec(ctx, beginSnapshot); err != nil {
		return nil, nil, fmt.Errorf("open a snapshot: %w", err)
	}
	c, columns, limit, full := read.chunk, len(job.Layout.Columns()), size.rows(), size.full()
	r.bound(ctx, read)
	err = r.session.Query(ctx, q.text(s.after(), s.read.Until, limit), func(fields [][]byte) error {
		c.Append(fields[:columns])
		stop := c.Size() >= full || s.aside.Load()
		if c.Rows == limit || stop {
			end = q.bound(fields)
		}
		if stop && c.Rows < limit {
			return errFull
		}
		return nil
	})
	s.aside.Store(false)
	switch {
	case errors.Is(err, errFull):
		// The rest of the result is not wanted: the connection was cut, and the
		// server ends the snapshot with it. The structure is compared with the next
		// chunk.
		r.Close()
		return end, nil, nil
	case err != nil:
		return nil, nil, asChanged(job, err)
	}
	if seen, err = r.look(ctx, job, first, len(end) == 0); err != nil {
		return nil, nil, err
	}
	if _, err := r.session.Exec(ctx, "ROLLBACK"); err != nil {
		return nil, nil, fmt.Errorf("end the snapshot: %w", err)
	}
	r.used = time.Now()
	return end, seen, nil
}

// bound makes the session wait before it takes in a row that is larger than its
// chunk was thought to be: the row is in memory twice for a moment.
func (r *Reader) bound(ctx context.Context, read readChunk) {
	r.session.OnLarge(func(bytes int64) error {
		return read.memory.cover(ctx, int64(read.chunk.Size())+2*bytes)
	})
}

// asChanged makes a *ChangedError of one that says that the table is not the one
// that is read.
func asChanged(job *Job, err error) error {
	if mysqlconn.IsTableChanged(err) || mysqlconn.IsTableGone(err) {
		return &ChangedError{job.Layout.Table.FullName(), err.Error()}
	}
	return err
}

// look compares the table with what it was at its start position, while the
// snapshot still holds its metadata lock. It returns what else is to be noted
// of a first or last chunk, else nil.
func (r *Reader) look(ctx context.Context, job *Job, first, last bool) (*Seen, error) {
	t := job.Layout.Table
	text, err := table.ShowCreate(ctx, r.session, t.FullName())
	if err != nil {
		return nil, err
	}
	if !table.SameCreate(text, string(t.Create)) {
		return nil, &ChangedError{t.FullName(), "its structure is another one"}
	}
	if !first && !last {
		return nil, nil
	}
	seen := &Seen{}
	if seen.Position, err = Status(ctx, r.session, r.d.cfg.Identity.Version); err != nil {
		return nil, err
	}
	if !first || !last { // else one chunk: one snapshot
		if seen.TableID, err = r.d.tableID(ctx, r.session, t); err != nil {
			return nil, err
		}
	}
	return seen, nil
}
