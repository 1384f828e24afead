package blackbox

import (
	"fmt"
	"testing"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// windowTables have unique values that are equal to the server only, a key that
// compares by collation, and no key.
const windowTables = `CREATE DATABASE win; USE win;
	CREATE TABLE d (n INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
	CREATE TABLE t (id INT PRIMARY KEY, u INT NOT NULL, s VARCHAR(20) COLLATE utf8mb4_general_ci NOT NULL, UNIQUE KEY (u), UNIQUE KEY (s));
	CREATE TABLE c (k VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT, v INT);
	CREATE TABLE plain (a INT);
	INSERT INTO t SELECT n, n, CONCAT('value', n) FROM (SELECT a.n * 100 + b.n * 10 + c.n AS n FROM d a, d b, d c) AS x;
	INSERT INTO c SELECT CONCAT('key', id), id, 0 FROM t; INSERT INTO plain SELECT id % 7 FROM t;`

// windowChanges rotate unique values through all rows, write keys in another
// case and remove and bring back rows.
const windowChanges = `USE win; BEGIN;
	UPDATE t SET u = -1 - u, s = CONCAT('old', s);
	UPDATE t SET u = (id + %[1]d) %% 1000, s = CONCAT(IF(id %% 2, 'VALUE', 'value'), (id + %[1]d) %% 1000); COMMIT;
	DELETE FROM c WHERE n %% 3 = 0; INSERT INTO c SELECT CONCAT('KEY', id), id, %[1]d FROM t WHERE id %% 3 = 0;
	UPDATE c SET k = IF(k COLLATE utf8mb4_bin LIKE 'key%%', UPPER(k), LOWER(k)), v = v + 1 WHERE n %% 3 = 1;
	INSERT INTO plain SELECT id FROM t WHERE id < 300; DELETE FROM plain WHERE a = 3 LIMIT 40;`

// A run is killed when a part of a window is on the target: what it wrote may
// lie ahead of its position. The next one is equal at the end, and knows before
// that the target is no image of the source yet.
func TestB1_01_KilledInsideAWindow(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, windowTables)
		m := harness.New(t, source, target, harness.Config{Include: []string{"win.*"}, Build: harness.HoldPoints})
		m.RequireRun()
		for i, at := range []string{harness.HoldWindowBegun, harness.HoldWindowRemoved, harness.HoldWindowWritten} {
			testdb.Exec(t, source, "DELETE FROM win.d WHERE n = "+fmt.Sprint(i))
			early, _ := end(t, source)
			testdb.Exec(t, source, fmt.Sprintf(windowChanges, 17*(i+1)))
			m.Hold(at)
			p := m.StartResume("--json")
			m.WaitReached(p, at)
			p.Kill9()
			m.Release(at)
			high := testdb.Value(t, target, "SELECT high_water = low_water FROM _copydb.migration")
			if high != "0" {
				t.Errorf("%s: high-water does not lie ahead of low-water", at)
			}
			m.StartResume("--json", "--until", "file:"+early).RequireExit(harness.RunTimeout, 7)
			m.RequireResume()
			testdb.RequireEqual(t, source, target, []string{"win"})
		}
	}, servers.Kinds()...)
}
