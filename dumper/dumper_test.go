package dumper

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
	"github.com/google/go-cmp/cmp"
)

// bench is a Dumper on a source with the torture schema.
type bench struct {
	server *servers.Server
	conn   *mysqlconn.Server
	dumper *Dumper
}

func newBench(t *testing.T, kind servers.Kind, rung position.Rung) *bench {
	t.Helper()
	b := &bench{server: testdb.One(t, kind, testdb.WithFast())}
	var err error
	b.conn, err = mysqlconn.New(mysqlconn.Config{Name: "source", Host: b.server.Host, Port: b.server.Port, User: b.server.RootUser,
		ConnectTimeout: 10 * time.Second, NetworkTimeout: 30 * time.Second, RunID: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.conn.Close() })
	id, err := b.conn.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.dumper, err = New(Config{Source: b.conn, Identity: id, Rung: rung, AllowLocks: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) tables(t *testing.T, database string) []*table.Table {
	t.Helper()
	var names []string
	rows, err := b.server.DB().Query("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'BASE TABLE'", database)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		names = append(names, n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	start, err := b.dumper.TakeStart(t.Context(), database, names)
	if err != nil {
		t.Fatal(err)
	}
	if start.Position.IsZero() {
		t.Error("no start position")
	}
	return start.Tables
}

func (b *bench) count(t *testing.T, tab *table.Table) int64 {
	t.Helper()
	var n int64
	if err := b.server.DB().QueryRow("SELECT COUNT(*) FROM " + tab.Quoted()).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func job(tab *table.Table, chunkBytes int64) *Job {
	return &Job{Layout: applier.NewLayout(tab, applier.LoadData, applier.Config{MaxNotes: 65535}), ChunkBytes: chunkBytes,
		Seen:  func(*applier.Chunk, Seen, bool, bool) error { return nil },
		Begin: func(context.Context) error { return nil }, Read: func(int64) {},
		Room:  func(context.Context, int64) (func(), error) { return func() {}, nil },
		Alone: func(context.Context) (func(), error) { return func() {}, nil }}
}

var kinds = map[servers.Kind]position.Rung{servers.MySQL: position.RungGTID, servers.MySQLNoGTID: position.RungFlush, servers.MariaDB118: position.RungMariaDB}

// Every row of every keyed table is read once, whatever its key is, in chunks
// whose ranges follow one another without gaps (behaviours 2.2, 3.5).
func TestB3_05_ChunksCoverEveryKey(t *testing.T) {
	for kind, rung := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, kind, rung)
			testdb.LoadTypes(t, b.server, testdb.Tables)
			for _, db := range []string{"tt_keys", "tt_text"} {
				for _, tab := range b.tables(t, db) {
					if tab.UsableKey() != nil {
						checkChunks(t, b, tab, 40)
					}
				}
			}
		})
	}
}

func checkChunks(t *testing.T, b *bench, tab *table.Table, bytes int64) {
	r := b.dumper.NewReader()
	defer r.Close()
	var rows int64
	var last []state.Text
	done := false
	err := r.Copy(t.Context(), job(tab, bytes), NewSegment(progress.Range{}, 0), func(_ context.Context, c *applier.Chunk) error {
		rows += c.Rows
		if done {
			return fmt.Errorf("a chunk follows the last one")
		}
		if done = c.Range.Done; !done && slices.Equal(last, c.Range.To) {
			return fmt.Errorf("a chunk does not go on: %q", last)
		}
		last = c.Range.To
		if c.Range.Rows != rows {
			return fmt.Errorf("the range counts %d rows, came %d", c.Range.Rows, rows)
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", tab, err)
	}
	if want := b.count(t, tab); rows != want || !done {
		t.Errorf("%s: %d rows of %d, end %v", tab, rows, want, done)
	}
}

// Keys that begin with an ENUM or a SET are read by their index: what the server
// reads does not grow with the number of chunks.
func TestB3_05_EnumKeysByIndex(t *testing.T) {
	for kind, rung := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, kind, rung)
			testdb.Load(t, b.server, `CREATE DATABASE enums; USE enums;
				CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
				CREATE TABLE by_enum (e ENUM('9','z','it''s,','m','0') NOT NULL, id INT NOT NULL, v INT, PRIMARY KEY (e, id));
				CREATE TABLE by_enum_desc (e ENUM('9','z','it''s,','m','0') NOT NULL, id INT NOT NULL, v INT, PRIMARY KEY (e DESC, id));
				CREATE TABLE by_set (e SET('9','z','it''s','m') NOT NULL, id INT NOT NULL, v INT, PRIMARY KEY (e, id));
				CREATE TABLE behind (v INT, id INT NOT NULL, e SET('9','z','0','1','2','3','4','5','6','7','8','11') NOT NULL, PRIMARY KEY (id, e));
				INSERT IGNORE INTO by_enum (e, id) SELECT f.n % 6, a.n*1000+b.n*100+c.n*10+f.n FROM d a, d b, d c, d f;
				INSERT IGNORE INTO by_enum_desc (e, id) SELECT e+0, id FROM by_enum;
				INSERT IGNORE INTO by_set (e, id) SELECT id % 16, id FROM by_enum;
				INSERT IGNORE INTO behind (id, e) SELECT id DIV 100, id % 4096 FROM by_enum;`)
			for _, tab := range b.tables(t, "enums") {
				if tab.Table == "d" {
					continue
				}
				before := b.rowsRead(t)
				checkChunks(t, b, tab, 1000)
				if n, rows := b.rowsRead(t)-before, b.count(t, tab); rows != 10_000 || n > 3*rows {
					t.Errorf("%s: the server read %d rows for %d", tab, n, rows)
				}
			}
		})
	}
}

// rowsRead is how many rows the server has read for all sessions.
func (b *bench) rowsRead(t *testing.T) int64 {
	t.Helper()
	table := "performance_schema.global_status"
	if b.server.Kind.IsMariaDB() {
		table = "information_schema.global_status"
	}
	var n int64
	err := b.server.DB().QueryRow("SELECT SUM(VARIABLE_VALUE) FROM " + table + " WHERE VARIABLE_NAME IN ('Handler_read_next', 'Handler_read_prev', 'Handler_read_rnd_next')").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Segments that are cut while they are read give each row to one reader, and
// their ranges join to the whole (behaviours 3.6: two dense clusters far apart).
func TestB3_06_CutSegments(t *testing.T) {
	for kind, rung := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, kind, rung)
			testdb.Load(t, b.server, `CREATE DATABASE cuts; USE cuts;
				CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
				CREATE TABLE skew (id BIGINT NOT NULL PRIMARY KEY, v CHAR(20));
				INSERT INTO skew SELECT a.n*10000+b.n*1000+c.n*100+e.n*10+f.n - IF(a.n<5, 4611686018427387904, -4611686018427387904), 'x'
				  FROM d a, d b, d c, d e, d f;
				CREATE TABLE words (k VARCHAR(20) COLLATE utf8mb4_general_ci NOT NULL, n INT NOT NULL, PRIMARY KEY (k, n DESC));
				INSERT INTO words SELECT IF(id % 3 = 0, CONCAT('é', id % 7), CHAR(65 + id % 26)), id % 100000 FROM skew WHERE id > 0;`)
			for _, tab := range b.tables(t, "cuts") {
				checkCuts(t, b, tab)
			}
		})
	}
}

func checkCuts(t *testing.T, b *bench, tab *table.Table) {
	var mu sync.Mutex
	var rows int64
	done := map[int]state.Range{}
	next, cuts := 1, 0
	g, ctx := group.WithContext(t.Context())
	read := func(s *Segment) {
		g.Go("reader", func() error {
			r := b.dumper.NewReader()
			defer r.Close()
			return r.Copy(ctx, job(tab, 20_000), s, func(_ context.Context, c *applier.Chunk) error {
				mu.Lock()
				defer mu.Unlock()
				rows += c.Rows
				if c.Range.Done {
					done[c.Range.Number] = state.Range{After: c.Range.After, To: c.Range.Until}
				}
				return nil
			})
		})
	}
	first := NewSegment(progress.Range{}, 100_000)
	all := []*Segment{first}
	g.Go("cutter", func() error {
		r := b.dumper.NewReader()
		defer r.Close()
		for range 6 {
			s := all[rand.IntN(len(all))]
			part, err := r.Cut(ctx, job(tab, 20_000), s, next, func(progress.Range, progress.Range) error { return nil })
			if err != nil {
				return err
			}
			next++
			if part != nil {
				cuts++
				all = append(all, part)
				read(part)
			}
		}
		return nil
	})
	read(first)
	if err := g.Wait(); err != nil {
		t.Fatalf("%s: %v", tab, err)
	}
	if want := b.count(t, tab); rows != want {
		t.Errorf("%s: %d rows of %d after %d cuts", tab, rows, want, cuts)
	}
	var ranges []state.Range
	for _, g := range done {
		ranges = append(ranges, g)
	}
	if diff := cmp.Diff(1, len(state.MergeRanges(ranges))); diff != "" {
		t.Errorf("%s: the ranges of %d segments do not join: %v", tab, len(ranges), ranges)
	}
}

// An exact snapshot has every transaction up to its position and none behind it:
// what a counter in the table says, and what the log says by then, agree.
func TestExactPositionUnderLoad(t *testing.T) {
	for kind, rung := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, kind, rung)
			testdb.Load(t, b.server, "CREATE DATABASE ex; CREATE TABLE ex.t (a INT, b VARCHAR(10)); INSERT INTO ex.t VALUES (1,'x'),(1,'x')")
			tab := b.tables(t, "ex")[0]
			load := testdb.StartLoad(t, b.server, testdb.LoadOptions{Databases: loadDatabase(t, b.server), Rate: 300})
			defer load.Stop()
			for range 20 {
				r := b.dumper.NewReader()
				var at state.Position
				var rows int64
				err := r.CopyExact(t.Context(), []*Job{job(tab, 1<<20)}, func(p state.Position, _ Seen) error { at = p; return nil },
					func(_ context.Context, c *applier.Chunk) error { rows += c.Rows; return nil })
				r.Close()
				if err != nil {
					t.Fatal(err)
				}
				if want := b.count(t, tab); at.IsZero() || rows != want {
					t.Errorf("position %s, %d rows of %d", at, rows, want)
				}
				if _, err := b.server.DB().Exec("INSERT INTO ex.t SELECT * FROM ex.t LIMIT 3"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func loadDatabase(t *testing.T, srv *servers.Server) []string {
	t.Helper()
	testdb.CreateLoadTables(t, srv, "loaded", 2, 500)
	return []string{"loaded"}
}

// After a reader was closed in the middle of a chunk, nothing of it is left on
// the source: no session, no transaction, no lock (invariant 4).
func TestClosedReaderLeavesNothing(t *testing.T) {
	b := newBench(t, servers.MySQL, position.RungGTID)
	testdb.CreateLoadTables(t, b.server, "left", 1, 20_000)
	tab := b.tables(t, "left")[0]
	ctx, cancel := context.WithCancelCause(t.Context())
	r := b.dumper.NewReader()
	j := job(tab, 200_000)
	j.Read = func(int64) { cancel(context.Canceled) }
	if err := r.Copy(ctx, j, NewSegment(progress.Range{}, 0), func(context.Context, *applier.Chunk) error { return nil }); err == nil {
		t.Fatal("a cancelled copy ended well")
	}
	r.Close()
	if _, err := b.conn.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if open := b.conn.Sessions(); len(open) > 0 {
		t.Errorf("sessions left: %v", open)
	}
	testdb.RequireUnlocked(t, b.server, []string{"left"})
}
