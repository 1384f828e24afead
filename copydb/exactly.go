package copydb

import (
	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/streamer"
)

// exactly sees to it that changes of exact tables are applied once. Windows
// commit rows and position together, so only a transaction that was applied in
// part is met again: of that one, the target knows how many such changes it has.
type exactly struct {
	done  progress.Marker // what the target had when the stream began
	now   progress.Marker // of the transaction that was taken last
	exact map[*table.Table]bool
}

// take counts the changes of exact tables in tx, drops those that the target
// has, and returns the marker that holds once tx is committed.
func (e *exactly) take(tx *streamer.Transaction) progress.Marker {
	if group := (progress.Marker{Start: tx.Start, GTID: tx.GTID}); !sameGroup(e.now, group) {
		e.now = group
	}
	skip := int64(0)
	if sameGroup(e.done, e.now) {
		skip = e.done.Done - e.now.Done
	}
	kept := tx.Changes[:0]
	for i := range tx.Changes {
		c := &tx.Changes[i]
		if e.isExact(c) {
			e.now.Done++
			if skip > 0 {
				skip--
				continue
			}
		}
		kept = append(kept, *c)
	}
	tx.Changes = kept
	if !tx.Partial {
		if sameGroup(e.done, e.now) {
			e.done = progress.Marker{} // all of it is there now
		}
		e.now = progress.Marker{}
	}
	return e.marker()
}

// marker is what the target must know once everything taken is committed. That
// is never less than it knew when the stream began: until the transaction that
// it has a part of is read as far again, a second kill would else have the rest
// of that part applied twice.
func (e *exactly) marker() progress.Marker {
	if e.now.Done == 0 || e.now.Done < e.done.Done && sameGroup(e.done, e.now) {
		return e.done
	}
	return e.now
}

func (e *exactly) isExact(c *applier.Change) bool {
	exact, known := e.exact[c.Table]
	if !known {
		if e.exact == nil {
			e.exact = map[*table.Table]bool{}
		}
		exact = c.Table.UsableKey() == nil
		e.exact[c.Table] = exact
	}
	return exact
}

// sameGroup reports whether two markers speak of the same group.
func sameGroup(a, b progress.Marker) bool {
	if a.GTID != "" || b.GTID != "" {
		return a.GTID == b.GTID
	}
	return a.Start.File != "" && a.Start == b.Start
}
