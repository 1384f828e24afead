package dumper

import (
	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/hold"
)

const (
	firstChunkMax = 10_000 // rows of the first chunk: the estimate may be far off
	minFullBytes  = 64 << 10
)

// sizer aims the number of rows of a chunk at a number of bytes. It goes by
// bytes that were read, never by time, which the writer's pace would distort.
type sizer struct {
	aim     int64   // bytes
	average float64 // bytes per row
	learned bool
	most    int64 // rows
}

func newSizer(job *Job, seg *Segment) *sizer {
	s := &sizer{aim: max(job.ChunkBytes, 1), most: job.Layout.MaxRows()}
	t := job.Layout.Table
	switch {
	case seg.read.Rows > 0:
		s.average, s.learned = float64(seg.read.Bytes)/float64(seg.read.Rows), true
	case t.Rows > 0:
		s.average = float64(t.Bytes) / float64(t.Rows)
	}
	return s
}

// rows is how many rows to ask for.
func (s *sizer) rows() int64 {
	if n := hold.ChunkRows(); n > 0 {
		return n
	}
	n := int64(float64(s.aim) / max(s.average, 1))
	if !s.learned {
		n = min(n, firstChunkMax)
	}
	return min(max(n, 1), s.most)
}

// full is the size in memory at which a chunk is ended whatever was asked for.
func (s *sizer) full() int { return int(max(s.aim+s.aim/2, minFullBytes)) }

// room is how much memory the next chunk is expected to take: rows that are
// larger than a chunk count as they were, twice, since each is taken in before
// it is added.
func (s *sizer) room() int64 { return max(s.aim+s.aim/2, int64(2.25*s.average)) }

// learn takes in what a chunk was like; recent chunks count more.
func (s *sizer) learn(c *applier.Chunk) {
	if c.Rows == 0 {
		return
	}
	avg := float64(max(c.Bytes, int64(c.Size()))) / float64(c.Rows)
	if s.learned {
		avg = (s.average + 3*avg) / 4
	}
	s.average, s.learned = avg, true
}
