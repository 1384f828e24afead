package streamer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
)

// TestB1_02_EveryBoundaryIsAStart streams a workload of all kinds of groups over files
// of 4 KiB, and then from each boundary that was handed over: each stream must
// see exactly what the first one saw behind it.
func TestB1_02_EveryBoundaryIsAStart(t *testing.T) {
	everyKind(t, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(200))",
			"CREATE TABLE a.m (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=MyISAM", "CREATE DATABASE b", "CREATE TABLE b.t (id INT)")
		start := src.here(t)
		src.exec(t, workload(src.Kind)...)
		end := src.here(t)
		cfg := src.config(start, src.tables(t, "a"))
		all := read(t, cfg, end)
		want := describe(all)
		if len(want) < times(25, 80) {
			t.Fatalf("%d changes: %v", len(want), want)
		}
		if got := all[len(all)-1].EndPosition(); got != end {
			t.Errorf("ends at %+v, the log at %+v", got, end)
		}
		got := replay(all)
		for _, n := range []string{"t", "m"} {
			rows := n + " " + testdb.Value(t, src.Server, "SELECT GROUP_CONCAT(id ORDER BY id) FROM a."+n)
			if !got[rows] {
				t.Errorf("replayed: %v, want %s", got, rows)
			}
		}
		seen := 0
		for i, tx := range all {
			seen += len(tx.Changes)
			if i%step(len(all), times(8, 40)) != 0 || tx.EndPosition() == end {
				continue
			}
			rest := read(t, src.resume(t, tx, cfg.Tables), end)
			if got := describe(rest); !slices.Equal(got, want[seen:]) {
				t.Fatalf("from %+v: %d changes, want %d\n%s", tx.EndPosition(), len(got), len(want)-seen, strings.Join(got, "\n"))
			}
		}
	})
}

func step(n, want int) int { return max(1, n/want) }

// workload makes groups of every kind that are no DDL of selected tables.
func workload(kind servers.Kind) []string {
	var b []string
	for i := range times(2, 6) {
		n := i * 100
		b = append(b,
			fmt.Sprintf("INSERT INTO a.t VALUES (%d,REPEAT('x',190)),(%d,REPEAT('y',190)),(%d,NULL),(%d,'z')", n, n+1, n+2, n+3),
			fmt.Sprintf("UPDATE a.t SET v = CONCAT('u', id) WHERE id >= %d", n),
			"INSERT INTO b.t VALUES (1)",
			fmt.Sprintf("INSERT INTO a.m VALUES (%d,'m'),(%d,'n')", n, n+1),
			"BEGIN", "SAVEPOINT s", fmt.Sprintf("INSERT INTO a.t VALUES (%d,'in')", n+10), "SAVEPOINT r",
			fmt.Sprintf("DELETE FROM a.t WHERE id=%d", n+1), "RELEASE SAVEPOINT r", "COMMIT",
			fmt.Sprintf("CREATE TABLE b.x%d (id INT)", i), "CREATE TEMPORARY TABLE a.tmp (id INT)", "DROP TEMPORARY TABLE a.tmp",
			fmt.Sprintf("CREATE TABLE b.s%d AS SELECT * FROM a.t", i),
			"XA START 'x'", "INSERT INTO b.t VALUES (2)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'",
			"XA START 'z','1'", fmt.Sprintf("INSERT INTO a.t VALUES (%d,REPEAT('z',190)),(%d,REPEAT('z',190))", n+21, n+22), "XA END 'z','1'", "XA PREPARE 'z','1'",
			"XA COMMIT 'z','1'", "XA START 'r'", fmt.Sprintf("INSERT INTO a.t VALUES (%d,'never')", n+23), "XA END 'r'", "XA PREPARE 'r'", "XA ROLLBACK 'r'",
			"XA START 'y'", fmt.Sprintf("INSERT INTO a.t VALUES (%d,'xa')", n+20), "XA END 'y'", "XA COMMIT 'y' ONE PHASE",
			"BEGIN", "INSERT INTO a.m VALUES (1000,'k')", "INSERT INTO b.t VALUES (4)", "ROLLBACK", "DELETE FROM a.m WHERE id=1000",
			"ANALYZE TABLE a.t", "FLUSH TABLES", "CREATE OR REPLACE VIEW a.w AS SELECT 1 AS x")
		if !kind.IsMariaDB() {
			b = append(b, "SET binlog_transaction_compression=ON", fmt.Sprintf("INSERT INTO a.t VALUES (%d,REPEAT('c',150)),(%d,'d')", n+30, n+31),
				"SET binlog_transaction_compression=OFF")
		}
		if kind == servers.MySQL {
			b = append(b, "SET gtid_next='AUTOMATIC:app'", fmt.Sprintf("INSERT INTO a.t VALUES (%d,'tagged')", n+40), "SET gtid_next='AUTOMATIC'")
		}
	}
	return b
}
