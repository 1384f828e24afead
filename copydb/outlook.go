package copydb

import "time"

// amount is rows and their bytes, as read.
type amount struct{ rows, bytes int64 }

// rowWork is what a row costs besides its bytes, in bytes: short rows move fewer
// of them.
const rowWork = 64

func (a amount) work() float64 { return float64(a.bytes) + rowWork*float64(a.rows) }

// eta is how long what is left will take at the pace since then; negative where
// that is not known.
func eta(left, moved amount, since time.Duration) float64 {
	pace := moved.work() / since.Seconds()
	if left.work() <= 0 || !(pace > 0) {
		return -1
	}
	return left.work() / pace
}

// left is what is still to be copied, as far as that is known: rows by what the
// segments think, which they correct by what they read and by counting keys
// where they are cut; their sizes by those of the table's rows so far, or by the
// source's estimate.
func (c *copier) left() amount {
	c.mu.Lock()
	rest := map[*copying]int64{}
	add := func(p *piece) {
		rest[p.table] += p.segment.Rest()
		for _, t := range p.table.with {
			rest[t] = 0
		}
	}
	for _, p := range c.todo {
		add(p)
	}
	for p := range c.active {
		add(p)
	}
	c.mu.Unlock()
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	var sum amount
	for t, rows := range rest {
		structure, done := t.job.Layout.Table, &c.r.st.Tables[c.r.tables[t.name].index]
		if structure.UsableKey() == nil { // read whole: its segment knows nothing
			rows = max(structure.Rows-done.Rows, 0)
		}
		average := 0.0
		switch {
		case done.Rows > 0:
			average = float64(done.Bytes) / float64(done.Rows)
		case structure.Rows > 0:
			average = float64(structure.Bytes) / float64(structure.Rows)
		}
		sum.rows += rows
		sum.bytes += int64(average * float64(rows))
	}
	return sum
}
