package streamer

import (
	"testing"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
	"github.com/go-mysql-org/go-mysql/replication"
)

// TestRollbackTo undoes changes that the log has because a table is involved
// that does not roll back.
func TestRollbackTo(t *testing.T) {
	// With GTIDs MySQL does not mix engines in a transaction.
	for _, kind := range []servers.Kind{servers.MySQLNoGTID, servers.MariaDB1011, servers.MariaDB118} {
		onKind(t, kind, testRollbackTo)
	}
}

func testRollbackTo(t *testing.T, src *source) {
	src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY)", "CREATE TABLE a.m (id INT PRIMARY KEY) ENGINE=MyISAM")
	start := src.here(t)
	src.exec(t, "BEGIN", "INSERT INTO a.t VALUES (1)", "SAVEPOINT `One`", "INSERT INTO a.t VALUES (2)", "INSERT INTO a.m VALUES (1)",
		"INSERT INTO a.t VALUES (3)", "ROLLBACK TO one", "INSERT INTO a.t VALUES (4)", "SAVEPOINT two", "INSERT INTO a.t VALUES (5)",
		"ROLLBACK TO SAVEPOINT two", "COMMIT",
		"BEGIN", "INSERT INTO a.t VALUES (6)", "INSERT INTO a.m VALUES (2)", "ROLLBACK",
		"BEGIN", "INSERT INTO a.t VALUES (7)", "UPDATE a.m, a.t SET a.m.id=9 WHERE a.m.id=1", "ROLLBACK")
	want := map[string]int{}
	for _, q := range []string{"t", "m"} {
		rows := testdb.Value(t, src.Server, "SELECT GROUP_CONCAT(id ORDER BY id) FROM a."+q)
		want[q+" "+rows]++
	}
	tables := src.tables(t, "a")
	all := read(t, src.config(start, tables), src.here(t))
	got := replay(all)
	for k := range want {
		if !got[k] {
			t.Errorf("want %v, got %v from %v", want, got, describe(all))
		}
	}
}

// TestLargeTransactions come in parts, but for what a savepoint may undo.
func TestLargeTransactions(t *testing.T) {
	onKind(t, servers.MariaDB118, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, v TEXT)", "CREATE TABLE a.m (id INT PRIMARY KEY) ENGINE=MyISAM")
		start := src.here(t)
		src.exec(t, "INSERT INTO a.t SELECT seq, REPEAT('x', 1000) FROM a.seq_1_to_3000")
		cfg := src.config(start, src.tables(t, "a"))
		cfg.PartBytes = 256 << 10
		all := read(t, cfg, src.here(t))
		parts := 0
		for _, tx := range all {
			if tx.Bytes > 300<<10 {
				t.Errorf("a part of %d bytes", tx.Bytes)
			}
			if !tx.Partial {
				continue
			}
			parts++
			if !tx.EndPosition().IsZero() || !tx.End.IsZero() || tx.Streamed.IsZero() || tx.Start != all[0].Start {
				t.Errorf("part: %+v", tx)
			}
		}
		if n := len(describe(all)); n != 3000 || parts < 10 {
			t.Errorf("%d changes in %d parts", n, parts)
		}

		start = src.here(t)
		src.exec(t, "BEGIN", "SAVEPOINT s", "UPDATE a.t SET v='y'", "INSERT INTO a.m VALUES (1)", "ROLLBACK TO s", "COMMIT")
		cfg.Start = start
		cfg.PartBytes = 64 << 10
		if n := len(describe(read(t, cfg, src.here(t)))); n != 1 {
			t.Errorf("%d changes", n)
		}
		cfg.PartBytes = 0
		if n := len(describe(read(t, cfg, src.here(t)))); n != 1 {
			t.Errorf("%d changes", n)
		}
	})
}

// TestSavepointNames: a name is in use once, and those behind the one that is
// rolled back to are gone.
func TestSavepointNames(t *testing.T) {
	l := newLog(t, mysqlconn.MySQL, func(c *Config) { c.GTIDs = true })
	l.must(replication.GTID_EVENT, 80, &replication.GTIDEvent{SID: make([]byte, 16), GNO: 1})
	l.query("BEGIN")
	insert := func() {
		t.Helper()
		if err := l.insert(40); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"", "SAVEPOINT `One`", "", "SAVEPOINT two", "", "SAVEPOINT ONE", "", "ROLLBACK TO one", "", "", "ROLLBACK TO TWO", ""} {
		if text == "" {
			insert()
			continue
		}
		l.query(text)
	}
	if n := len(l.group.changes); n != 3 || len(l.group.layouts) > 0 {
		t.Errorf("%d changes, %d layouts", n, len(l.group.layouts))
	}
	if err := l.write(replication.QUERY_EVENT, 40, query("ROLLBACK TO one")); err == nil {
		t.Error("a savepoint that is gone was rolled back to")
	}
}
