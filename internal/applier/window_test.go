package applier

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
	"github.com/google/go-cmp/cmp"
)

func TestWindowFolds(t *testing.T) {
	tab := &table.Table{Database: "d", Table: "t", Engine: "InnoDB",
		Columns: []table.Column{{Name: "id", Kind: table.Integer}, {Name: "v", Kind: table.Integer}},
		Keys:    []table.Key{{Name: "PRIMARY", Columns: []table.KeyColumn{{Name: "id"}}}}}
	put := func(id, v string) Change { return Change{Table: tab, Op: Insert, After: row(id, v)} }
	del := func(id string) Change { return Change{Table: tab, Op: Delete, Before: row(id, "0")} }
	move := func(from, to, v string) Change {
		return Change{Table: tab, Op: Update, Before: row(from, v), After: row(to, v)}
	}
	tests := []struct {
		name    string
		changes []Change
		want    string
	}{
		{"the last image counts", []Change{put("1", "1"), put("1", "2")}, "1=2"},
		{"inserted and deleted is a delete", []Change{put("1", "1"), del("1")}, "-1"},
		{"deleted and inserted", []Change{del("1"), put("1", "5")}, "1=5"},
		{"a key that moves", []Change{move("1", "2", "7")}, "-1 2=7"},
		{"there and back", []Change{move("1", "2", "7"), move("2", "1", "7")}, "-2 1=7"},
		{"a chain", []Change{move("1", "9", "1"), move("2", "1", "2"), move("9", "2", "1")}, "-9 1=2 2=1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := &Window{}
			for _, c := range tt.changes {
				w.Add(Unit{Changes: []Change{c}})
			}
			var got []string
			for _, gone := range []bool{true, false} {
				for _, r := range w.nets[0].sorted(gone) {
					if gone {
						got = append(got, "-"+string(r.row()[0]))
					} else {
						got = append(got, string(r.row()[0])+"="+string(r.row()[1]))
					}
				}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("folded to %s, want %s", s, tt.want)
			}
		})
	}
}

// Large windows over several sessions: unique values that rotate between rows,
// keys and unique values that are equal to the server only, rows that move.
// After each the table is what the changes say, and the position is kept.
func TestB3_03_WindowsSpread(t *testing.T) {
	for _, kind := range families {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, kind)
			testdb.Load(t, b.server, `CREATE DATABASE w; USE w;
				CREATE TABLE r (id INT PRIMARY KEY, u INT NOT NULL, UNIQUE KEY (u));
				CREATE TABLE s (k VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, u VARCHAR(20) COLLATE utf8mb4_general_ci, UNIQUE KEY (u));`)
			b.cfg.Threads = 4
			a := NewApplier(b.cfg, state.Position{})
			defer a.Close()
			const rows = 2000
			for i, next := range []func() []Change{rotations(b.load(t, table.Name{Database: "w", Table: "r"}), rows),
				spellings(b.load(t, table.Name{Database: "w", Table: "s"}), rows)} {
				for n := range 6 {
					at := uint64(1000*i + n + 1)
					changes := next()
					w := window(unit(at, changes...))
					if w.Net() < spreadRows {
						t.Fatalf("a window of %d rows is not spread", w.Net())
					}
					if done, err := a.Apply(t.Context(), w); err != nil || done != 1 {
						t.Fatalf("window %d: %d, %v", n, done, err)
					}
					b.requireRows(t, changes[0].Table, rows)
					rec, err := progress.Load(t.Context(), b.conn, b.cfg.Progress.Migration)
					if err != nil || rec.LowWater.Pos != at || rec.HighWater.Pos != at {
						t.Errorf("low-water %v, high-water %v, %v", rec.LowWater, rec.HighWater, err)
					}
				}
			}
			if got := b.rows(t, "SELECT CONCAT_WS(' ', COUNT(*), SUM(id), COUNT(DISTINCT u)) FROM w.r"); got != fmt.Sprintf("%d %d %d", rows, rows*(rows-1)/2, rows) {
				t.Errorf("rows of r: %s", got)
			}
		})
	}
}

// last is what the rows of the two tables must be.
var last = map[*table.Table]map[string]string{}

// rotations gives each row the unique value of another one.
func rotations(t *table.Table, rows int) func() []Change {
	last[t] = map[string]string{}
	return func() (out []Change) {
		values := rand.Perm(rows)
		for id := range rows {
			k, v := strconv.Itoa(id), strconv.Itoa(values[id])
			c := Change{Table: t, Op: Insert, After: row(k, v)}
			if was, ok := last[t][k]; ok {
				c.Op, c.Before = Update, row(k, was)
			}
			out = append(out, c)
			last[t][k] = v
		}
		return out
	}
}

// spellings writes keys in another case each time, as delete and insert or as a
// key that moves, and gives rows the unique values of others, in any case.
func spellings(t *table.Table, rows int) func() []Change {
	last[t] = map[string]string{}
	now := make([]string, rows)
	return func() (out []Change) {
		values := rand.Perm(rows)
		var moved []Change
		for id := range rows {
			k := "_utf8mb4'" + spell("key", id) + "'"
			v := "'" + spell("value", values[id]) + "'"
			switch was := now[id]; {
			case was == "":
				out = append(out, Change{Table: t, Op: Insert, After: row(k, v)})
			case id%2 == 0 && was != k:
				out = append(out, Change{Table: t, Op: Delete, Before: row(was, last[t][was])})
				moved = append(moved, Change{Table: t, Op: Insert, After: row(k, v)})
			default:
				out = append(out, Change{Table: t, Op: Update, Before: row(was, last[t][was]), After: row(k, v)})
			}
			delete(last[t], now[id])
			now[id], last[t][k] = k, v
		}
		return append(out, moved...)
	}
}

func spell(word string, n int) string {
	if rand.IntN(2) == 0 {
		word = strings.ToUpper(word)
	}
	return word + strconv.Itoa(n)
}

func (b *bench) requireRows(t *testing.T, tab *table.Table, n int) {
	t.Helper()
	got := map[string]string{}
	rows, err := b.server.DB().QueryContext(t.Context(), "SELECT HEX("+tab.Columns[0].Name+"), HEX("+tab.Columns[1].Name+") FROM "+tab.Quoted())
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var k, v string
		if err := rows.Scan(&k, &v); err != nil {
			t.Fatal(err)
		}
		got[k] = v
	}
	if err := rows.Err(); err != nil || len(got) != n {
		t.Fatalf("%s has %d rows, want %d; %v", tab, len(got), n, err)
	}
	hex := func(lit string) string {
		if q := strings.Index(lit, "'"); q >= 0 {
			return fmt.Sprintf("%X", lit[q+1:len(lit)-1])
		}
		v, _ := strconv.Atoi(lit)
		return fmt.Sprintf("%X", v)
	}
	want := map[string]string{}
	for k, v := range last[tab] {
		want[hex(k)] = hex(v)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s: %s", tab, d)
	}
}

// MariaDB's REPLACE does not remove a row that a new one meets under a long
// unique key, where it meets another one under the primary key.
func TestB3_03_LongUniqueKeys(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MariaDB1011, servers.MariaDB118} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, kind)
			testdb.Load(t, b.server, `CREATE DATABASE h; USE h;
				CREATE TABLE u (id INT PRIMARY KEY, b BLOB, s TEXT CHARACTER SET latin1 COLLATE latin1_swedish_ci, x INT, UNIQUE KEY (b), UNIQUE KEY (s), UNIQUE KEY (x));
				INSERT INTO u VALUES (1,'a','a',1),(2,'b','b',2),(3,'c','c',3),(4,NULL,NULL,NULL);`)
			u := b.load(t, table.Name{Database: "h", Table: "u"})
			a := NewApplier(b.cfg, state.Position{})
			defer a.Close()
			put := func(id, blob, text, x string) Change {
				return Change{Table: u, Op: Insert, After: row(id, "_binary'"+blob+"'", "'"+text+"'", x)}
			}
			w := window(unit(10, put("1", "b", "C", "3"), put("2", "c", "A", "1"), put("3", "a", "B", "2"), Change{Table: u, Op: Insert, After: row("5", "NULL", "NULL", "NULL")}))
			if _, err := a.Apply(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if got := b.rows(t, "SELECT GROUP_CONCAT(CONCAT_WS(':', id, b, s, x) ORDER BY id) FROM h.u"); got != "1:b:C:3,2:c:A:1,3:a:B:2,4,5" {
				t.Errorf("rows %s", got)
			}
		})
	}
}
