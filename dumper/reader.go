package dumper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// Job is one segment of one table to read.
type Job struct {
	Layout *applier.Layout
	Start  state.Position // the table's start position
	// Segment is what is done of it: reading goes on behind its To. With no rows
	// and no To it begins behind its After.
	Segment    progress.Range
	ChunkBytes int64  // aim for a chunk's size as read
	TableID    string // the engine's id of the table, where the first chunk found one

	// Began is called once, behind the first chunk of an untouched segment, with
	// what was true under the table's metadata lock.
	Began func(Seen) error
}

// Seen is what a reader saw while a snapshot held the table's metadata lock.
type Seen struct {
	Position state.Position // the end of the binary log then
	TableID  string
}

// Reader reads chunks over one session. It belongs to one goroutine.
type Reader struct {
	d       *Dumper
	session *mysqlconn.Session
	used    time.Time // when the session was used last
	chunk   applier.Chunk
}

// idleLimit is how long a session may wait for the writer before another one is
// opened instead: the server ends it after a minute (see setup).
const idleLimit = 30 * time.Second

// NewReader opens nothing.
func (d *Dumper) NewReader() *Reader { return &Reader{d: d} }

// Close ends the session and with it the snapshot that may be open on it.
func (r *Reader) Close() error {
	if r.session != nil {
		r.session.Close()
		r.session = nil
	}
	return nil
}

// Copy reads the job's segment to its end, chunk by chunk, each in a snapshot
// transaction of its own that has ended before write is called. It returns what
// was seen with the last chunk. The chunk belongs to write until it returns.
func (r *Reader) Copy(ctx context.Context, job *Job, write func(context.Context, *applier.Chunk) error) (Seen, error) {
	q := newChunkQuery(job.Layout)
	size := newSizer(job)
	seg := job.Segment
	for first := seg.Rows == 0 && len(seg.To) == 0; ; first = false {
		after := seg.To
		if len(after) == 0 {
			after = seg.After
		}
		end, seen, err := r.readChunk(ctx, job, q, after, size, first)
		if err != nil {
			r.Close()
			return Seen{}, fmt.Errorf("read chunk of %s: %w", job.Layout.Table, err)
		}
		c := &r.chunk
		size.learn(c)
		seg.Rows += c.Rows
		seg.Bytes += c.Bytes
		seg.To = end
		c.Range = seg
		name := job.Layout.Table.String()
		if err := hold.Point(ctx, "chunk_read:"+name); err != nil {
			return Seen{}, err
		}
		if first && job.Began != nil {
			if err := job.Began(seen); err != nil {
				return Seen{}, err
			}
		}
		if err := write(ctx, c); err != nil {
			return Seen{}, err
		}
		if err := hold.Point(ctx, "chunk_written:"+name); err != nil {
			return Seen{}, err
		}
		if len(end) == 0 {
			return seen, nil
		}
	}
}

// errFull ends a query whose rows are larger than was expected.
var errFull = errors.New("chunk is full")

// readChunk reads one chunk into r.chunk and returns its last key: empty where
// the table's end was reached. Its caller closes the session after an error,
// which ends the snapshot.
func (r *Reader) readChunk(ctx context.Context, job *Job, q chunkQuery, after []state.Text, size *sizer, first bool) (end []state.Text, seen Seen, err error) {
	if time.Since(r.used) > idleLimit {
		r.Close()
	}
	if r.session == nil {
		if r.session, err = r.d.openSession(ctx, job.Start); err != nil {
			return nil, seen, err
		}
	}
	defer func() { r.used = time.Now() }()
	c := &r.chunk
	c.Reset(job.Layout)
	if _, err := r.session.Exec(ctx, beginSnapshot); err != nil {
		return nil, seen, fmt.Errorf("open a snapshot: %w", err)
	}
	limit := size.rows()
	columns := len(job.Layout.Columns())
	err = r.session.Query(ctx, q.text(after, nil, limit), func(fields [][]byte) error {
		c.Append(fields[:columns])
		if c.Rows == limit || c.Size() >= size.full() {
			end = q.bound(fields)
		}
		if c.Size() >= size.full() && c.Rows < limit {
			return errFull
		}
		return nil
	})
	switch {
	case errors.Is(err, errFull):
		// The rest of the result is not wanted: the connection was cut, and the
		// server ends the snapshot with it. The check comes with the next chunk.
		r.Close()
		return end, seen, nil
	case mysqlconn.IsTableChanged(err), mysqlconn.IsTableGone(err):
		return nil, seen, &ChangedError{job.Layout.Table.FullName(), err.Error()}
	case err != nil:
		return nil, seen, err
	}
	if seen, err = r.look(ctx, job, first, len(end) == 0); err != nil {
		return nil, seen, err
	}
	if _, err := r.session.Exec(ctx, "ROLLBACK"); err != nil {
		return nil, seen, fmt.Errorf("end the snapshot: %w", err)
	}
	return end, seen, nil
}

// look compares the table with what it was at its start position, while the
// snapshot still holds its metadata lock.
func (r *Reader) look(ctx context.Context, job *Job, first, last bool) (Seen, error) {
	t := job.Layout.Table
	text, err := table.ShowCreate(ctx, r.session, t.FullName())
	if err != nil {
		return Seen{}, err
	}
	if !table.SameCreate(text, string(t.Create)) {
		return Seen{}, &ChangedError{t.FullName(), "its structure is another one"}
	}
	if !first && !last {
		return Seen{}, nil
	}
	var seen Seen
	if seen.Position, err = Status(ctx, r.session, r.d.cfg.Identity.Version); err != nil {
		return Seen{}, err
	}
	if first && last {
		return seen, nil // one chunk: one snapshot
	}
	if seen.TableID, err = r.d.tableID(ctx, r.session, t); err != nil {
		return Seen{}, err
	}
	if first {
		job.TableID = seen.TableID
	} else if seen.TableID != "" && job.TableID != "" && seen.TableID != job.TableID {
		return Seen{}, &ChangedError{t.FullName(), "it is another table under the same name, or was emptied or rebuilt"}
	}
	return seen, nil
}
