package copydb

import (
	"context"
	"sync"
	"time"

	"github.com/copydb/copydb/dumper"
	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	"golang.org/x/sync/semaphore"
)

// chunkMemory bounds the rows in memory of all workers, in bytes.
const chunkMemory = 192 << 20

// copier shares the tables out among workers: each takes the largest that
// nobody has begun; where none is left, half of what is left of the largest
// under way.
type copier struct {
	r      *run
	writes context.Context //nolint:containedctx // outlives the readers' by design; see run.outlive
	room   *semaphore.Weighted
	over   *semaphore.Weighted // of one: more than was given of the room

	mu     sync.Mutex
	change *sync.Cond // work was taken, read, or done
	todo   []*piece   // nobody works at these
	active map[*piece]bool
	ended  bool // the context has ended
	finish sync.Once
	idle   chan struct{} // closed once no work is left to give out
}

// piece is one segment of one table, for one worker.
type piece struct {
	table   *copying
	segment *dumper.Segment
}

// copying is one table under way.
type copying struct {
	name  table.Name
	job   *dumper.Job
	began time.Time
	next  int        // number of the next segment
	done  bool       // guarded by run.mu
	with  []*copying // the others of its component: one piece is all of them
}

// all returns the tables that a piece of t is of.
func (t *copying) all() []*copying { return append([]*copying{t}, t.with...) }

func newCopier(writes context.Context, r *run) *copier {
	c := &copier{r: r, writes: writes, room: semaphore.NewWeighted(chunkMemory), over: semaphore.NewWeighted(1), active: map[*piece]bool{}, idle: make(chan struct{})}
	c.change = sync.NewCond(&c.mu)
	components := map[int]*copying{}
	for _, t := range r.uncopied() {
		if first := components[t.Component]; first != nil {
			first.with = append(first.with, c.describe(t))
			continue
		}
		cp := c.addTable(t)
		if t.Component != 0 {
			components[t.Component] = cp
		}
	}
	return c
}

// describe says what there is to copy of a table.
func (c *copier) describe(t *table.Table) *copying {
	n := t.FullName()
	c.r.mu.Lock()
	start := c.r.st.Tables[c.r.tables[n].index].Start
	c.r.mu.Unlock()
	size := c.r.throttle.chunkBytes(c.r.opt.Config.Snapshot.ChunkSize)
	expected := size
	if t.UsableKey() == nil {
		expected = 0 // one Begin for many chunks
	}
	return &copying{name: n, job: &dumper.Job{
		Layout: applier.NewLayout(t, c.r.loadMethod(n), c.r.write),
		Start:  start, ChunkBytes: size,
		Room: c.roomFor, Alone: c.alone,
		Begin: func(ctx context.Context) error { return c.r.throttle.begin(ctx, expected) },
		Read: func(bytes int64) {
			c.r.throttle.spend(bytes - expected)
			c.changed()
		},
		Seen: func(ch *applier.Chunk, seen dumper.Seen, first, last bool) error {
			return c.seen(n, ch, seen, first, last)
		},
	}}
}

// addTable puts what is left of a table on the list.
func (c *copier) addTable(t *table.Table) *copying {
	cp := c.describe(t)
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	tr := c.r.tables[cp.name]
	rest := max(t.Rows-tr.rows(), 0)
	if t.UsableKey() == nil {
		rest = 0 // read whole, by one worker
	}
	if len(tr.segments) == 0 {
		c.todo = append(c.todo, &piece{cp, dumper.NewSegment(progress.Range{}, rest)})
		cp.next = 1
		return cp
	}
	for number, s := range tr.segments {
		cp.next = max(cp.next, number+1)
		if !s.Done {
			c.todo = append(c.todo, &piece{cp, dumper.NewSegment(s, rest/int64(len(tr.segments)))})
		}
	}
	return cp
}

func (c *copier) roomFor(ctx context.Context, n int64) (func(), error) {
	n = min(n, chunkMemory)
	if err := c.room.Acquire(ctx, n); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { c.room.Release(n) }, nil
}

// alone waits until no other chunk takes more memory than the room gave it.
func (c *copier) alone(ctx context.Context) (func(), error) {
	if err := c.over.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { c.over.Release(1) }, nil
}

// changed wakes workers that wait for something to do.
func (c *copier) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change.Broadcast()
}

// run copies everything on the list.
func (c *copier) run(ctx context.Context) error {
	g, ctx := group.WithContext(ctx)
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
		c.change.Broadcast()
	})()
	defer applier.FreeBuffers()
	tune := newTuner(c.r.opt.Config.Snapshot.Threads, c.r.meter.bytesCopied)
	start := func() { g.Go("copy of tables", func() error { return c.work(ctx) }) }
	for range tune.first() {
		start()
	}
	g.Go("number of workers", func() error {
		return tune.run(func(d time.Duration) (bool, error) { return c.pause(ctx, d) }, start)
	})
	g.Go("look for sessions that wait for the tables", func() error { return c.stepAside(ctx) })
	return g.Wait()
}

// pause waits for d, or until no work is left to give out: then it reports false.
func (c *copier) pause(ctx context.Context, d time.Duration) (bool, error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-c.idle:
		return false, nil
	case <-t.C:
		return true, nil
	}
}

// work is one worker.
func (c *copier) work(ctx context.Context) error {
	reader := c.r.dump.NewReader()
	defer reader.Close()
	loader := applier.NewLoader(c.r.write)
	defer loader.Close()
	build := &indexer{c: c}
	defer build.close()
	for {
		p, err := c.take(ctx, reader)
		if err != nil || p == nil {
			return err
		}
		err = c.copy(ctx, reader, loader, build, p)
		locked := err != nil && ctx.Err() == nil && isLockedOut(err)
		c.mu.Lock()
		delete(c.active, p)
		if locked {
			c.todo = append(c.todo, c.again(p))
		}
		c.change.Broadcast()
		c.mu.Unlock()
		if err != nil && !locked {
			return err
		}
		if locked {
			c.r.log.Info("a table is locked on the source; it is tried again later", "table", p.table.name.String())
			if err := group.Pause(ctx, time.Second); err != nil {
				return err
			}
		}
	}
}

// again returns the piece as the target has it: what was read and not written is
// read again.
func (c *copier) again(p *piece) *piece {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	n := p.segment.Number()
	g, ok := c.r.tables[p.table.name].segments[n]
	if !ok {
		g = p.segment.Unread()
	}
	return &piece{p.table, dumper.NewSegment(g, p.segment.Rest())}
}

// take returns the next piece for a worker: from the list, or cut off from
// another's; nil where all is done.
func (c *copier) take(ctx context.Context, reader *dumper.Reader) (*piece, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.ended:
			return nil, context.Cause(ctx)
		case len(c.todo) > 0:
			p := c.todo[0]
			c.todo = c.todo[1:]
			for _, t := range p.table.all() {
				if t.began.IsZero() {
					t.began = time.Now()
				}
			}
			c.active[p] = true
			return p, nil
		case len(c.active) == 0:
			c.finish.Do(func() { close(c.idle) })
			return nil, nil
		}
		if p := c.largest(); p != nil {
			part, err := c.cut(ctx, reader, p)
			if err != nil {
				return nil, err
			}
			if part != nil {
				c.active[part] = true
				return part, nil
			}
			continue
		}
		c.change.Wait()
	}
}

func (c *copier) largest() *piece {
	var best *piece
	for p := range c.active {
		if p.segment.Cuttable() && (best == nil || p.segment.Rest() > best.segment.Rest()) {
			best = p
		}
	}
	return best
}

// cut takes the upper half of what is left of p. The list is not locked
// meanwhile.
func (c *copier) cut(ctx context.Context, reader *dumper.Reader, p *piece) (*piece, error) {
	number := p.table.next
	p.table.next++
	c.mu.Unlock()
	defer c.mu.Lock()
	seg, err := reader.Cut(ctx, p.table.job, p.segment, number, func(first, part progress.Range) error {
		if err := c.r.write.Split(c.writes, p.table.name, first, part); err != nil {
			return err
		}
		c.r.change(func(st *state.State) {
			tr := c.r.tables[p.table.name]
			if committed, ok := tr.segments[first.Number]; ok {
				committed.Until = first.Until
				first = committed
			}
			tr.segments[first.Number], tr.segments[part.Number] = first, part
			c.r.note(&st.Tables[tr.index], tr)
		})
		return nil
	})
	if ctx.Err() == nil && isLockedOut(err) {
		return nil, nil // its reader meets the same lock
	}
	if err != nil || seg == nil {
		return nil, err
	}
	return &piece{p.table, seg}, nil
}

// copy copies one piece to its end.
func (c *copier) copy(ctx context.Context, reader *dumper.Reader, loader *applier.Loader, build *indexer, p *piece) error {
	write := func(ctx context.Context, ch *applier.Chunk) error {
		if err := loader.Load(c.writes, ch); err != nil {
			return err
		}
		c.loaded(ch.Layout.Table.FullName(), ch)
		return context.Cause(ctx)
	}
	var err error
	if p.table.job.Layout.Table.UsableKey() == nil {
		err = c.copyExact(ctx, reader, p.table, write)
	} else {
		err = reader.Copy(ctx, p.table.job, p.segment, write)
	}
	if err != nil {
		return err
	}
	for _, t := range p.table.all() {
		if !c.finished(t) {
			continue
		}
		c.r.report(c.r.tableRecord(t.name))
		if err := build.plain(ctx, t.job.Layout.Table); err != nil {
			return err
		}
	}
	return nil
}

// copyExact copies tables whose snapshot has an exact position.
func (c *copier) copyExact(ctx context.Context, reader *dumper.Reader, t *copying, write func(context.Context, *applier.Chunk) error) error {
	var jobs []*dumper.Job
	for _, one := range t.all() {
		jobs = append(jobs, one.job)
	}
	return reader.CopyExact(ctx, jobs, func(at state.Position, seen dumper.Seen) error {
		for _, one := range t.all() {
			if err := c.begun(one.name, at, seen); err != nil {
				return err
			}
		}
		return nil
	}, write)
}

// indexer is one worker's builder, opened with the first table that needs it.
type indexer struct {
	c *copier
	b *builder
}

// plain makes the non-unique indexes of a table whose rows are there.
func (x *indexer) plain(ctx context.Context, t *table.Table) (err error) {
	if len(t.Part(true).Plain) == 0 {
		return nil
	}
	if x.b == nil {
		if x.b, err = x.c.r.newBuilder(x.c.writes); err != nil {
			return err
		}
	}
	return x.b.plain(ctx, t)
}

func (x *indexer) close() {
	if x.b != nil {
		x.b.close()
	}
}

// finished reports, once for each table, that all of it is copied.
func (c *copier) finished(t *copying) bool {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	tr := c.r.tables[t.name]
	if t.done || !tr.done() {
		return false
	}
	t.done = true
	tr.took += time.Since(t.began)
	return true
}

// loaded notes a chunk that the target has committed.
func (c *copier) loaded(n table.Name, ch *applier.Chunk) {
	c.r.change(func(st *state.State) {
		tr := c.r.tables[n]
		g := ch.Range
		if known, ok := tr.segments[g.Number]; ok {
			g.Until = known.Until // the chunk may have been read before a cut
		}
		tr.segments[g.Number] = g
		c.r.note(&st.Tables[tr.index], tr)
	})
	c.r.meter.copied(ch.Rows, ch.Bytes)
}

// begun keeps the exact position of a table's one snapshot, before its first row
// is written: the stream skips what it covers.
func (c *copier) begun(n table.Name, at state.Position, seen dumper.Seen) error {
	return c.r.saveTables(c.writes, []table.Name{n}, func(t *state.Table) {
		t.Start, t.FirstChunk, t.LastChunk = at, &seen.Position, &seen.Position
		for i := range t.Structures {
			t.Structures[i].From = at
		}
	})
}

// behind reports whether p lies before q, or cannot be compared with it.
func behind(p, q state.Position) bool {
	c, ok := position.Compare(p, q)
	return !ok || c < 0
}

// seen notes what was true under the table's metadata lock: at its first chunk,
// and at the latest chunk that ended a segment, whichever worker says it first.
// A table's only chunk carries that itself, in the transaction of its rows.
func (c *copier) seen(n table.Name, ch *applier.Chunk, seen dumper.Seen, first, last bool) error {
	c.r.mu.Lock()
	t := c.r.st.Tables[c.r.tables[n].index]
	c.r.mu.Unlock()
	if t.TableID != "" && seen.TableID != "" && t.TableID != seen.TableID {
		return &dumper.ChangedError{Table: n, What: "it is another table under the same name, or was emptied or rebuilt"}
	}
	first = first && t.FirstChunk == nil
	if !first && !last {
		return nil
	}
	note := func(t *state.Table) {
		if first || t.FirstChunk == nil {
			t.FirstChunk = &seen.Position
		}
		if t.TableID == "" {
			t.TableID = seen.TableID
		}
		if last && (t.LastChunk == nil || behind(*t.LastChunk, seen.Position)) {
			t.LastChunk = &seen.Position
		}
	}
	if first && seen.Whole {
		ch.Also = c.r.prog.TablesSQL(c.r.changeTables([]table.Name{n}, note)...)
		return nil
	}
	return c.r.saveTables(c.writes, []table.Name{n}, note)
}
