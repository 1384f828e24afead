package copydb

import (
	"testing"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/streamer"
)

func changes(t *table.Table, n int) []applier.Change {
	out := make([]applier.Change, n)
	for i := range out {
		out[i].Table = t
	}
	return out
}

// While a large transaction that the target has in part is read again, no
// window may say less of it than the target has: a second kill would apply the
// rest of that once more.
func TestMarkerNeverFallsBehindTheTarget(t *testing.T) {
	keyless := &table.Table{Database: "d", Table: "keyless"}
	for name, gtid := range map[string]string{"gtid": "u:7", "file": ""} {
		t.Run(name, func(t *testing.T) {
			start := state.Position{File: "binlog.000001", Pos: 1000}
			part := func(n int, more bool) *streamer.Transaction {
				return &streamer.Transaction{Start: start, GTID: gtid, Changes: changes(keyless, n), Partial: more}
			}
			target := progress.Marker{Start: start, GTID: gtid, Done: 25}
			e := exactly{done: target}
			if got := e.marker(); got != target {
				t.Errorf("before the transaction is met: %+v", got)
			}
			e.take(&streamer.Transaction{Start: state.Position{File: "binlog.000001", Pos: 500}, GTID: "u:6"[:len(gtid)]})
			if got := e.marker(); got != target {
				t.Errorf("after another one, without changes of ours: %+v", got)
			}
			for i, want := range []struct {
				kept int
				done int64
			}{{0, 25}, {0, 25}, {5, 30}, {10, 40}} {
				tx := part(10, true)
				if got := e.take(tx); got.Done != want.done || got.GTID != gtid || got.Start != start || len(tx.Changes) != want.kept {
					t.Errorf("part %d: %d changes kept, marker %+v, want %+v", i+1, len(tx.Changes), got, want)
				}
			}
			tx := part(10, false)
			if got := e.take(tx); got != (progress.Marker{}) || len(tx.Changes) != 10 {
				t.Errorf("last part: %d changes kept, marker %+v", len(tx.Changes), got)
			}
			if got := e.marker(); got != (progress.Marker{}) {
				t.Errorf("after the last part: %+v", got)
			}
		})
	}
}
