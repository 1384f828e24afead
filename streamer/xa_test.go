package streamer

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
)

// TestB4_12_XA: what is prepared waits for its commit on the disk, from each
// boundary on; what is rolled back leaves nothing; one phase is a commit.
func TestB4_12_XA(t *testing.T) {
	everyKind(t, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(200))", "INSERT INTO a.t VALUES (1,'one')",
			"CREATE TABLE a.u (id INT PRIMARY KEY)")
		start := src.here(t)
		compress := "DO 0"
		if !src.Kind.IsMariaDB() {
			compress = "SET SESSION binlog_transaction_compression=ON"
		}
		for i, c := range []string{"DO 0", compress} {
			n := 1000 * (i + 1)
			src.prepare(t, c, "XA START 'r'", insert(n, 40), "UPDATE a.t SET v='never' WHERE id=1", "XA END 'r'", "XA PREPARE 'r'")
			src.prepare(t, c, "XA START 'c','b',7", insert(n+100, 40), "SAVEPOINT s", insert(n+200, 40), "ROLLBACK TO s", "XA END 'c','b',7", "XA PREPARE 'c','b',7")
			src.exec(t, fmt.Sprintf("INSERT INTO a.u VALUES (%d),(%d)", n, n+1))
			src.exec(t, "XA ROLLBACK 'r'", "XA COMMIT 'c','b',7", c, "XA START 'o'", insert(n+400, 40), "XA END 'o'", "XA COMMIT 'o' ONE PHASE",
				"XA START 'r'", insert(n+500, 3), "XA END 'r'", "XA PREPARE 'r'", "XA COMMIT 'r'")
		}
		end := src.here(t)
		cfg := src.config(start, src.tables(t, "a"))
		cfg.PartBytes = 2 << 10
		all := read(t, cfg, end)
		want := describe(all)
		rows := "t " + testdb.Value(t, src.Server, "SELECT GROUP_CONCAT(id ORDER BY id) FROM a.t WHERE id > 1")
		if got := replay(all); !got[rows] {
			t.Errorf("replayed: %v, want %s", got, rows)
		}
		if strings.Contains(strings.Join(want, "\n"), "6e65766572") {
			t.Error("a change that was rolled back is there")
		}
		checkSpills(t, all)
		seen := 0
		for i, tx := range all {
			seen += len(tx.Changes)
			if tx.EndPosition().IsZero() || i == len(all)-1 {
				continue
			}
			if got := describe(read(t, src.resume(t, tx, cfg.Tables), end)); !slices.Equal(got, want[seen:]) {
				t.Fatalf("from %+v with %v: %d changes, want %d", tx.EndPosition(), tx.SpillFiles, len(got), len(want)-seen)
			}
		}
	})
}

// prepare carries out statements on a session and waits until that is gone:
// MariaDB keeps the locks of an XA transaction for good that is committed
// elsewhere in the moment in which its own session ends.
func (s *source) prepare(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := s.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	if err := conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	for _, q := range statements {
		if _, err := conn.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // ends the session
	gone := testdb.Eventually(t, time.Minute, func() bool {
		return testdb.Value(t, s.Server, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d", id)) == "0"
	})
	if !gone {
		t.Fatal("the session that prepared is still there")
	}
}

func insert(from, n int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO a.t VALUES ")
	for i := range n {
		fmt.Fprintf(&b, "(%d,REPEAT('x',150)),", from+i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// checkSpills: a file is named from its PREPARE up to the group that ends it.
func checkSpills(t *testing.T, all []*Transaction) {
	t.Helper()
	listed, ended := map[string]bool{}, map[string]bool{}
	for _, tx := range all {
		for _, name := range tx.SpillFiles {
			if !tx.Partial && ended[name] {
				t.Errorf("%s is listed at %s, behind its end", name, tx.Streamed)
			}
			listed[name] = true
		}
		if tx.SpillEnded != "" {
			ended[tx.SpillEnded] = true
		}
	}
	if len(listed) != 6 || len(ended) != 6 || len(all[len(all)-1].SpillFiles) != 0 {
		t.Errorf("%d files, %d ended, at the end %v", len(listed), len(ended), all[len(all)-1].SpillFiles)
	}
}

// TestSpillFileLost: a stream does not begin without a file that its start
// needs, and does not take a damaged one.
func TestSpillFileLost(t *testing.T) {
	bothFamilies(t, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(200))")
		start := src.here(t)
		src.prepare(t, "XA START 'x'", insert(1, 20), "XA END 'x'", "XA PREPARE 'x'")
		all := read(t, src.config(start, src.tables(t, "a")), src.here(t))
		last := all[len(all)-1]
		src.exec(t, "XA COMMIT 'x'")
		end := src.here(t)
		if len(last.SpillFiles) != 1 {
			t.Fatalf("%+v", last)
		}
		for name, spoil := range map[string]func(path string, content []byte) error{
			"gone": func(path string, _ []byte) error { return os.Remove(path) },
			"cut":  func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o600) },
			"no end": func(path string, b []byte) error {
				return os.WriteFile(path, b[:strings.LastIndex(string(b), "e{")-recordHeader], 0o600)
			},
			"flipped":  func(path string, b []byte) error { b[len(b)/2] ^= 1; return os.WriteFile(path, b, 0o600) },
			"empty":    func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
			"appended": func(path string, b []byte) error { return os.WriteFile(path, append(b, 0), 0o600) },
		} {
			cfg := src.resume(t, last, src.tables(t, "a"))
			path := state.SpillPath(cfg.StatePath, last.SpillFiles[0])
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(path, content); err != nil {
				t.Fatal(err)
			}
			if all, err := tryRead(t, cfg, end); !errors.Is(err, ErrSpillLost) || len(all) > 0 {
				t.Errorf("%s: %v, %v", name, describe(all), err)
			}
		}
		cfg := src.resume(t, last, src.tables(t, "a"))
		stray := state.SpillPath(cfg.StatePath, state.SpillPrefix+"of-a-dead-run")
		if err := os.WriteFile(stray, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if n := len(describe(read(t, cfg, end))); n != 20 {
			t.Errorf("%d changes", n)
		}
		if _, err := os.Stat(stray); err == nil {
			t.Error("a file that nobody needs is still there")
		}
		cfg = src.resume(t, last, src.tables(t, "a"))
		for _, spec := range cfg.Tables {
			spec.Structure.Columns[1].FullType = "varchar(100)"
		}
		var stop *StopError
		if _, err := tryRead(t, cfg, end); !errors.As(err, &stop) || stop.Table.Table != "t" {
			t.Errorf("another structure: %v", err)
		}
	})
}

// TestXAAndCoverage: rows of an XA transaction count where it is committed.
func TestXAAndCoverage(t *testing.T) {
	bothFamilies(t, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(200))", "CREATE TABLE a.u (id INT PRIMARY KEY)",
			"CREATE TABLE a.w (id INT PRIMARY KEY)")
		start := src.here(t)
		src.prepare(t, "INSERT INTO a.w VALUES (1)", "ALTER TABLE a.w ADD v INT", "XA START 'x'", insert(1, 1), "INSERT INTO a.u VALUES (1)", "XA END 'x'", "XA PREPARE 'x'")
		between := src.here(t)
		src.exec(t, "XA COMMIT 'x'")
		behind := src.here(t)
		src.exec(t, insert(2, 1), "INSERT INTO a.u VALUES (2)")
		tables := src.tables(t, "a")
		tables[table.Name{Database: "a", Table: "t"}].Start = between
		tables[table.Name{Database: "a", Table: "u"}].Start = behind
		tables[table.Name{Database: "a", Table: "w"}].Start = behind
		all := read(t, src.config(start, tables), src.here(t))
		if got := replay(all); !got["t 1,2"] || !got["u 2"] {
			t.Errorf("%v", describe(all))
		}

		// Rows before an ALTER that the copy covers cannot be read; they are covered
		// with it, unless the commit is not.
		start = src.here(t)
		src.prepare(t, "XA START 'y'", "INSERT INTO a.u VALUES (3)", "XA END 'y'", "XA PREPARE 'y'")
		between = src.here(t)
		src.exec(t, "XA COMMIT 'y'", "ALTER TABLE a.u ADD v INT")
		behind = src.here(t)
		src.exec(t, "INSERT INTO a.u VALUES (4,4)")
		tables = src.tables(t, "a")
		u := tables[table.Name{Database: "a", Table: "u"}]
		u.Start = behind
		wantChanges(t, read(t, src.config(start, tables), src.here(t)), "insert u()(4,4)")
		u.Start = between
		var stop *StopError
		if _, err := tryRead(t, src.config(start, tables), src.here(t)); !errors.As(err, &stop) || stop.Table.Table != "u" {
			t.Errorf("got %v", err)
		}
	})
}

// TestUnseenXA: where XA RECOVER could not be asked, only what was streamed may
// be committed, also after a resume.
func TestUnseenXA(t *testing.T) {
	bothFamilies(t, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(200))", "CREATE DATABASE b", "CREATE TABLE b.t (id INT)")
		start := src.here(t)
		src.prepare(t, "XA START 'x'", "INSERT INTO b.t VALUES (1)", "XA END 'x'", "XA PREPARE 'x'")
		end := src.here(t)
		cfg := src.config(start, src.tables(t, "a"))
		cfg.StopUnseenXA = true
		all := read(t, cfg, end)
		src.exec(t, "XA COMMIT 'x'")
		next := src.resume(t, all[len(all)-1], cfg.Tables)
		next.StopUnseenXA = true
		read(t, next, src.here(t))

		cfg.Start = end
		var stop *StopError
		if _, err := tryRead(t, cfg, src.here(t)); !errors.As(err, &stop) {
			t.Errorf("not prepared since the start: %v", err)
		}
		cfg.StopUnseenXA = false
		read(t, cfg, src.here(t))
	})
}
