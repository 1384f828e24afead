package streamer

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/table"
)

// TestSpillRollsBackAsMemoryDoes: for random changes, savepoints and rollbacks a
// file gives back what a plain list would hold.
func TestSpillRollsBackAsMemoryDoes(t *testing.T) {
	rows := &table.Table{Database: "a", Table: "rows", Engine: "InnoDB"}
	stays := &table.Table{Database: "a", Table: "st\xffays", Engine: "MyISAM"}
	find := func(s spillTable) (*table.Table, error) {
		return map[string]*table.Table{"rows": rows, "st\xffays": stays}[string(s.Table)], nil
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range times(300, 3000) {
		s, err := createSpill(filepath.Join(t.TempDir(), "state.json"))
		if err != nil {
			t.Fatal(err)
		}
		var want []applier.Change
		var number []int // of each in want
		for range r.IntN(60) {
			if r.IntN(4) > 0 || s.end.Count == 0 {
				c := applier.Change{Table: rows, Op: applier.Update, Before: applier.Row{nil, {}, []byte("x")}, After: applier.Row{[]byte(strconv.Itoa(s.end.Count))}, At: "b:1",
					Cascades: r.IntN(2) == 0, MayBeGone: r.IntN(2) == 0}
				if r.IntN(5) == 0 {
					c.Table, c.Op, c.Before = stays, applier.Insert, nil
				}
				want, number = append(want, c), append(number, s.end.Count)
				if err := s.add(&c); err != nil {
					t.Fatal(err)
				}
				continue
			}
			at := r.IntN(s.end.Count)
			if n := s.rollBack(at); n != 0 {
				t.Fatalf("rollback to %d of %d leaves %d", at, s.end.Count, n)
			}
			keep := 0
			for i := range want {
				if number[i] < at || !want[i].Table.Transactional() {
					want[keep], number[keep] = want[i], number[i]
					keep++
				}
			}
			want, number = want[:keep], number[:keep]
		}
		var got []applier.Change
		err = s.replay(find, func(c applier.Change) error { got = append(got, c); return nil })
		s.discard()
		if err != nil || !slices.EqualFunc(got, want, sameChange) {
			t.Fatalf("%v: got %d changes, want %d; void %v", err, len(got), len(want), s.end.Void)
		}
	}
}

func sameChange(a, b applier.Change) bool {
	same := func(x, y applier.Row) bool {
		return (x == nil) == (y == nil) && slices.EqualFunc(x, y, func(v, w []byte) bool { return (v == nil) == (w == nil) && string(v) == string(w) })
	}
	return a.Table == b.Table && a.Op == b.Op && a.At == b.At && a.Cascades == b.Cascades && a.MayBeGone == b.MayBeGone && same(a.Before, b.Before) && same(a.After, b.After)
}
