package applier

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
)

// bench is a target with a migration begun.
type bench struct {
	server *servers.Server
	cfg    Config
	conn   *mysqlconn.Control
}

func newBench(t *testing.T, kind servers.Kind) *bench {
	t.Helper()
	b := &bench{server: testdb.One(t, kind, testdb.WithFast())}
	target, err := mysqlconn.New(mysqlconn.Config{Name: "target", Host: b.server.Host, Port: b.server.Port, User: b.server.RootUser,
		ConnectTimeout: 10 * time.Second, NetworkTimeout: 30 * time.Second, RunID: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	if b.conn, err = target.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.conn.Close() })
	id, err := b.conn.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := progress.Ensure(t.Context(), b.conn); err != nil {
		t.Fatal(err)
	}
	p, err := progress.Begin(t.Context(), b.conn, strings.Repeat("a", 32), "run1")
	if err != nil {
		t.Fatal(err)
	}
	b.cfg = Config{Target: target, Version: id.Version, Progress: p, SQLLogBin: true, MaxPacket: 16 << 20, MaxNotes: AllNotes, Flavor: id.Version.Flavor}
	return b
}

func (b *bench) load(t *testing.T, n table.Name) *table.Table {
	t.Helper()
	s, err := b.cfg.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := table.Load(t.Context(), s, b.cfg.Version.Flavor, n.Database, []string{n.Table})
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

func row(literals ...string) Row {
	r := make(Row, len(literals))
	for i, l := range literals {
		r[i] = []byte(l)
	}
	return r
}

func unit(at uint64, changes ...Change) Unit {
	p := state.Position{File: "binlog.000001", Pos: at}
	return Unit{Changes: changes, End: func() End { return End{Low: p, Streamed: p, High: p} }}
}

func window(units ...Unit) *Window {
	w := &Window{}
	for _, u := range units {
		w.Add(u)
	}
	return w
}

func (b *bench) rows(t *testing.T, query string) string {
	t.Helper()
	return strings.TrimSpace(testdb.Value(t, b.server, query))
}

var families = []servers.Kind{servers.MySQL, servers.MariaDB118}

func TestApply(t *testing.T) {
	for _, kind := range families {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, kind)
			testdb.Load(t, b.server, `CREATE DATABASE a; USE a;
				CREATE TABLE u (id INT PRIMARY KEY, x INT UNIQUE, y INT UNIQUE, e ENUM('p','q') NOT NULL);
				CREATE TABLE n (f DOUBLE, s VARCHAR(10) COLLATE utf8mb4_general_ci);
				INSERT INTO u VALUES (1,1,1,'p'),(2,2,2,'q'); INSERT INTO n VALUES (0,'A'),(0,'a'),(-0e0,'a'),(NULL,'a ');`)
			t.Run("two unique keys at once", func(t *testing.T) { b.twoKeys(t) })
			t.Run("one by one up to the one that fails", func(t *testing.T) { b.oneByOne(t) })
			t.Run("exactly one row", func(t *testing.T) { b.exactly(t) })
			t.Run("fenced", func(t *testing.T) { b.fenced(t) })
		})
	}
}

// A row that meets stale rows under two unique keys takes the place of both;
// index 0 of an ENUM is written in spite of the strict mode.
func (b *bench) twoKeys(t *testing.T) {
	u := b.load(t, table.Name{Database: "a", Table: "u"})
	a := NewApplier(b.cfg, state.Position{})
	defer a.Close()
	n, err := a.Apply(t.Context(), window(unit(100,
		Change{Table: u, Op: Insert, After: row("3", "1", "2", "0")},
		Change{Table: u, Op: Update, Before: row("3", "1", "2", "0"), After: row("4", "1", "2", "0")})))
	if err != nil || n != 1 {
		t.Fatalf("%d units, %v", n, err)
	}
	if got := b.rows(t, "SELECT GROUP_CONCAT(id,':',x,':',y,':',e+0) FROM a.u"); got != "4:1:2:0" {
		t.Errorf("rows %s", got)
	}
	rec, err := progress.Load(t.Context(), b.conn, b.cfg.Progress.Migration)
	if err != nil || rec.LowWater.Pos != 100 {
		t.Errorf("low-water %v, %v", rec.LowWater, err)
	}
}

func (b *bench) oneByOne(t *testing.T) {
	u := b.load(t, table.Name{Database: "a", Table: "u"})
	a := NewApplier(b.cfg, state.Position{})
	defer a.Close()
	put := func(id, x string) Change {
		return Change{Table: u, Op: Insert, After: row(id, x, x, "1"), At: "binlog.000001:" + id}
	}
	n, err := a.Apply(t.Context(), window(unit(200, put("20", "20")), unit(210, put("21", "21")), unit(220, put("22", "'no number'")), unit(230, put("23", "23"))))
	var failed *ApplyError
	if n != 2 || !errors.As(err, &failed) || failed.At != "binlog.000001:22" || failed.Table != "a.u" {
		t.Fatalf("%d units, %v", n, err)
	}
	if strings.Contains(err.Error(), "no number") {
		t.Errorf("the message has a row value: %v", err)
	}
	if got := b.rows(t, "SELECT GROUP_CONCAT(id ORDER BY id) FROM a.u WHERE id >= 20"); got != "20,21" {
		t.Errorf("rows %s", got)
	}
	rec, err := progress.Load(t.Context(), b.conn, b.cfg.Progress.Migration)
	if err != nil || rec.LowWater.Pos != 210 {
		t.Errorf("low-water %v, %v", rec.LowWater, err)
	}
}

// Changes of a table without a key hit the one row that has the same bytes, and
// stop where there is none.
func (b *bench) exactly(t *testing.T) {
	n := b.load(t, table.Name{Database: "a", Table: "n"})
	a := NewApplier(b.cfg, state.Position{})
	defer a.Close()
	_, err := a.Apply(t.Context(), window(unit(300,
		Change{Table: n, Op: Delete, Before: row("0e+00", "'a'")},
		Change{Table: n, Op: Update, Before: row("NULL", "'a '"), After: row("1e+00", "'b'")},
		Change{Table: n, Op: Update, Before: row("1e+00", "'b'"), After: row("1e+00", "'b'")})))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.rows(t, "SELECT GROUP_CONCAT(HEX(s) ORDER BY HEX(s)) FROM a.n"); got != "41,61,62" {
		t.Errorf("rows %s", got)
	}
	before := b.rows(t, "SELECT COUNT(*) FROM a.n")
	units, err := a.Apply(t.Context(), window(unit(310, Change{Table: n, Op: Delete, Before: row("0e+00", "'A'")}, Change{Table: n, Op: Delete, Before: row("0e+00", "'A'")})))
	if units != 0 || !errors.Is(err, ErrMissed) {
		t.Errorf("%d units, %v", units, err)
	}
	if after := b.rows(t, "SELECT COUNT(*) FROM a.n"); after != before {
		t.Errorf("%s rows of %s: the part before the miss stayed", after, before)
	}
}

// A run whose migration was taken over writes nothing more.
func (b *bench) fenced(t *testing.T) {
	u := b.load(t, table.Name{Database: "a", Table: "u"})
	a := NewApplier(b.cfg, state.Position{})
	defer a.Close()
	if _, err := progress.Begin(t.Context(), b.conn, b.cfg.Progress.Migration, "run2"); err != nil {
		t.Fatal(err)
	}
	_, err := a.Apply(t.Context(), window(unit(400, Change{Table: u, Op: Insert, After: row("40", "40", "40", "1")})))
	if !errors.Is(err, progress.ErrFenced) {
		t.Errorf("apply: %v", err)
	}
	l := NewLoader(b.cfg)
	defer l.Close()
	c := &Chunk{}
	c.Reset(NewLayout(u, LoadData, b.cfg), 0)
	c.Append([][]byte{[]byte("41"), []byte("41"), []byte("41"), []byte("1")})
	if err := l.Load(context.WithoutCancel(t.Context()), c); !errors.Is(err, progress.ErrFenced) {
		t.Errorf("load: %v", err)
	}
	if got := b.rows(t, "SELECT COUNT(*) FROM a.u WHERE id >= 40"); got != "0" {
		t.Errorf("%s rows written behind the fence", got)
	}
}

// Both ways of writing a chunk give the same rows, whatever bytes are in them,
// and refuse what the target would change (behaviours 2.11).
func TestB2_11_LoadRefusesWarnings(t *testing.T) {
	for _, kind := range families {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, kind)
			testdb.Load(t, b.server, "CREATE DATABASE c; CREATE TABLE c.t (id INT PRIMARY KEY, s VARCHAR(5) CHARACTER SET latin1, b BLOB)")
			tab := b.load(t, table.Name{Database: "c", Table: "t"})
			var every []byte
			for i := range 256 {
				every = append(every, byte(i))
			}
			for i, m := range []Method{LoadData, Inserts} {
				l := NewLoader(b.cfg)
				c := &Chunk{}
				c.Reset(NewLayout(tab, m, b.cfg), 0)
				id := []byte{byte('1' + i)}
				c.Append([][]byte{id, []byte("\xe9\\'\n\t"), every})
				if err := l.Load(t.Context(), c); err != nil {
					t.Errorf("%s: %v", m, err)
				}
				c.Reset(NewLayout(tab, m, b.cfg), 0)
				c.Append([][]byte{[]byte("9"), []byte("too long"), nil})
				if err := l.Load(t.Context(), c); err == nil {
					t.Errorf("%s: a value that does not fit was taken", m)
				} else if strings.Contains(err.Error(), "too long'") {
					t.Errorf("%s: the message has the value: %v", m, err)
				}
				l.Close()
			}
			if got := b.rows(t, "SELECT CONCAT(COUNT(*), ' ', MIN(HEX(s)), ' ', COUNT(DISTINCT HEX(b)), ' ', MAX(LENGTH(b))) FROM c.t"); got != "2 E95C270A09 1 256" {
				t.Errorf("rows: %s", got)
			}
		})
	}
}
