package blackbox

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// One large transaction on a table without a key, mixed with rows of one with a
// key, killed again and again after some of its parts were applied: each row is
// there once at the end (behaviours 1.14, 3.4).
func TestB1_14_LargeTransactionExactlyOnce(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithBinlogSize(servers.LoadBinlog), testdb.WithFast())
		testdb.Exec(t, source, "CREATE DATABASE mk; CREATE TABLE mk.keyed (id INT PRIMARY KEY, b LONGBLOB); CREATE TABLE mk.plain (id INT, b LONGBLOB)")
		m := harness.New(t, source, target, harness.Config{Include: []string{"mk.*"}})
		m.RequireRun()
		largeTransaction(t, source)
		killedInParts(t, m, func(kill int) {
			done, rows := doneOf(t, target), testdb.Value(t, target, "SELECT COUNT(*) FROM mk.plain")
			t.Logf("%s: kill %d: marker %d, %s rows", kind, kill, done, rows)
			if fmt.Sprint(done) != rows {
				t.Errorf("the marker says %d, %s rows are there", done, rows)
			}
		})
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"mk"})
	}, families...)
}

// killedInParts kills resumes of a migration that apply one large transaction,
// each after one more of its parts.
func killedInParts(t *testing.T, m *harness.Migration, killed func(kill int)) {
	t.Helper()
	for kill := range 4 {
		was := doneOf(t, m.Target)
		p := m.StartResume("--json")
		testdb.Eventually(t, time.Minute, func() bool { return !p.Running() || doneOf(t, m.Target) != was })
		if !p.Running() {
			if kill == 0 {
				t.Error("the run was through before it could be killed")
			}
			return
		}
		p.Kill9()
		killed(kill + 1)
	}
}

func largeTransaction(t *testing.T, source *servers.Server) {
	t.Helper()
	tx, err := source.DB().Begin()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		for k := range 3 {
			if _, err := tx.Exec(fmt.Sprintf("INSERT INTO mk.plain VALUES (%d, REPEAT('a', 1500000))", 3*i+k)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tx.Exec(fmt.Sprintf("INSERT INTO mk.keyed VALUES (%d, REPEAT('b', 1500000))", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// doneOf is the count of the target's marker.
func doneOf(t *testing.T, target *servers.Server) int64 {
	t.Helper()
	var m progress.Marker
	if err := json.Unmarshal([]byte(testdb.Value(t, target, "SELECT marker FROM _copydb.migration")), &m); err != nil {
		t.Fatal(err)
	}
	return m.Done
}
