package dumper

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/state"
)

// Segment is a part of a table's keys that one reader reads, chunk by chunk.
// Another worker may cut off what is not read yet. It is safe for concurrent
// use.
type Segment struct {
	// mu is held while a chunk is read and while the segment is cut: the two must
	// agree on where it ends, and only the server can compare keys.
	mu   sync.Mutex
	read progress.Range // To is the last key that was read; Done: all was

	left sync.Mutex // guards rest
	rest int64      // rows that are thought to be unread

	aside atomic.Bool // somebody waits for the table's metadata lock
}

// NewSegment returns a segment that goes on where r is, with about rest rows
// left.
func NewSegment(r progress.Range, rest int64) *Segment {
	return &Segment{read: r, rest: rest}
}

// Number tells the segments of one table apart.
func (s *Segment) Number() int { return s.read.Number }

// Unread is the segment as it was before anything of it was read.
func (s *Segment) Unread() progress.Range {
	s.mu.Lock()
	defer s.mu.Unlock()
	return progress.Range{Number: s.read.Number, After: s.read.After, Until: s.read.Until}
}

// Rest is how many rows are thought to be left: an estimate.
func (s *Segment) Rest() int64 {
	s.left.Lock()
	defer s.left.Unlock()
	return s.rest
}

func (s *Segment) setRest(n int64) {
	s.left.Lock()
	defer s.left.Unlock()
	s.rest = n
}

// took corrects the estimate by rows that were read. Where more came than was
// thought, as much as came is expected again: estimates of fresh tables are
// worthless.
func (s *Segment) took(rows int64) {
	s.left.Lock()
	defer s.left.Unlock()
	s.rest -= rows
	if s.rest < rows {
		s.rest = max(s.rest, s.read.Rows)
	}
}

// StepAside ends the chunk that is being read at its next row, and with it the
// snapshot that holds the table's metadata lock: a session waits for that.
func (s *Segment) StepAside() { s.aside.Store(true) }

// after is the last key that was read, or the bound below.
func (s *Segment) after() []state.Text {
	if len(s.read.To) > 0 {
		return s.read.To
	}
	return s.read.After
}

const (
	minCutRows = 20_000    // less is not worth a cut
	maxCutScan = 2_000_000 // keys that are passed over to find a middle
)

// cutFloor is how many rows must be left for a cut.
func cutFloor() int64 {
	if n := hold.CutRows(); n > 0 {
		return n
	}
	return minCutRows
}

// Cuttable reports whether enough is left for two.
func (s *Segment) Cuttable() bool { return s.Rest() >= cutFloor() }

// Cut gives the upper half of what is not read yet to a new segment of that
// number, or returns nil where too little is left. It goes by counting keys in
// the index, so skew does not matter. keep is called with the bounds of both
// parts before either is read on; it has to make the cut durable.
func (r *Reader) Cut(ctx context.Context, job *Job, s *Segment, number int, keep func(first, part progress.Range) error) (*Segment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read.Done {
		return nil, nil
	}
	q := newChunkQuery(job.Layout)
	for skip := min(s.Rest()/2, maxCutScan); skip >= cutFloor()/2; skip /= 4 {
		at, err := r.keyAfter(ctx, job, q.keyText(s.after(), s.read.Until, skip))
		if err != nil {
			r.Close()
			return nil, &ReadError{Table: job.Layout.Table.String(), Err: fmt.Errorf("look for the middle of what is left: %w", asChanged(job, err))}
		}
		if at == nil {
			s.setRest(skip)
			continue
		}
		first := progress.Range{Number: s.read.Number, After: s.read.After, Until: at}
		part := progress.Range{Number: number, After: at, Until: s.read.Until}
		if err := keep(first, part); err != nil {
			return nil, err
		}
		rest := max(s.Rest()-skip, skip)
		s.read.Until = at
		s.setRest(skip)
		return NewSegment(part, rest), nil
	}
	return nil, nil
}

// keyAfter returns the key that the query finds, or nil.
func (r *Reader) keyAfter(ctx context.Context, job *Job, query string) ([]state.Text, error) {
	if err := r.open(ctx, job); err != nil {
		return nil, err
	}
	var key []state.Text
	err := r.session.Query(ctx, query, func(fields [][]byte) error {
		for _, f := range fields {
			key = append(key, state.Text(f))
		}
		return nil
	})
	return key, err
}
