package blackbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// swapTable has 50 rows and two unique keys besides the primary one.
const swapTable = digits + `CREATE DATABASE swaps; USE swaps;
	CREATE TABLE s (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(10) COLLATE utf8mb4_general_ci, v INT, UNIQUE KEY (a), UNIQUE KEY (b, a));
	INSERT INTO s SELECT n, n, CONCAT('v', n), 0 FROM (SELECT x.n * 10 + y.n AS n FROM keyless_digits.d x, keyless_digits.d y) AS t WHERE n < 50;`

// swapChanges are whole transactions on rows of which 1 to 9 are copied and 40
// to 49 are not: a swap, two rotations, and one key that comes and goes.
var swapChanges = []string{
	"BEGIN; UPDATE s SET a = -1 WHERE id = 1; UPDATE s SET a = 1 WHERE id = 41; UPDATE s SET a = 41 WHERE id = 1; COMMIT",
	"BEGIN; UPDATE s SET a = -1 WHERE id = 2; UPDATE s SET a = 2 WHERE id = 42; UPDATE s SET a = 42 WHERE id = 22; UPDATE s SET a = 22 WHERE id = 2; COMMIT",
	"BEGIN; UPDATE s SET b = 'x', a = -1 WHERE id = 43; UPDATE s SET b = 'V43', a = 43 WHERE id = 3; UPDATE s SET b = 'v3', a = 3 WHERE id = 43; COMMIT",
	"BEGIN; DELETE FROM s WHERE id = 4; INSERT INTO s VALUES (4, 44000, 'n', 1); UPDATE s SET a = 4, v = 2 WHERE id = 4; DELETE FROM s WHERE id = 4; INSERT INTO s VALUES (4, 4, 'last', 3); COMMIT",
	"BEGIN; DELETE FROM s WHERE id = 45; INSERT INTO s VALUES (45, 5000, 'n', 1); UPDATE s SET a = 45 WHERE id = 45; DELETE FROM s WHERE id = 45; INSERT INTO s VALUES (45, 45, 'last5', 3); COMMIT",
	"BEGIN; DELETE FROM s WHERE id = 6; UPDATE s SET a = 6 WHERE id = 46; INSERT INTO s VALUES (6, 46, 'v46x', 9); COMMIT",
	"BEGIN; INSERT INTO s VALUES (1000, 1000, 'gone', 0); UPDATE s SET id = -1000 WHERE id = 1000; DELETE FROM s WHERE id = -1000; COMMIT",
}

// Unique values change places between rows that are copied and rows that are
// not, and one key comes and goes within a transaction; the same in catch-up.
func TestB3_01_UniqueValuesChangePlaces(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, swapTable)
		grown := harness.New(t, source, target, harness.Config{Include: []string{"swaps.*"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(10)}})
		for _, extra := range []string{"schema: {defer_indexes: true}", "schema: {defer_indexes: false}"} {
			for _, point := range []string{harness.HoldChunkRead("swaps.s"), harness.HoldChunkWritten("swaps.s")} {
				for n := 1; n <= 5; n += 2 {
					t.Run(fmt.Sprintf("%s %s %d", extra, point, n), func(t *testing.T) {
						testdb.Exec(t, target, "DROP DATABASE IF EXISTS swaps")
						m := grown.In(t)
						m.SetConfig(func(c *harness.Config) { c.Extra = []string{extra} })
						m.HoldAt(point, n)
						m.Hold(harness.HoldCatchUp)
						p := m.Start("--json")
						for _, h := range []string{point, harness.HoldCatchUp} {
							m.WaitReached(p, h)
							for _, c := range swapChanges {
								testdb.Exec(t, source, "USE swaps; "+c)
							}
							m.Release(h)
						}
						p.RequireExit(time.Minute, 0)
						testdb.RequireEqual(t, source, target, []string{"swaps"})
					})
				}
			}
		}
	})
}

// Rows whose primary key takes them over the line between what is copied and
// what is not, and back: each is there once. The moments are: a fifth is
// written, the fourth fifth is read, all is written.
func TestB3_02_RowsMoveOverTheLineAndBack(t *testing.T) {
	moves := []struct{ away, back int }{{0, 1}, {0, 2}, {1, 2}, {0, 0}, {1, 1}, {2, 2}, {0, -1}, {1, -1}, {2, -1}}
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, digits+`CREATE DATABASE moves; CREATE TABLE moves.m (id INT PRIMARY KEY, v VARCHAR(20));
			INSERT INTO moves.m SELECT (x.n * 10 + y.n) * 10, CONCAT('row', x.n, y.n) FROM keyless_digits.d x, keyless_digits.d y;`)
		m := harness.New(t, source, target, harness.Config{Include: []string{"moves.*"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(20)}})
		written, read := harness.HoldChunkWritten("moves.m"), harness.HoldChunkRead("moves.m")
		m.HoldAt(written, 1)
		m.HoldAt(read, 4)
		m.Hold(harness.HoldCatchUp)
		p := m.Start("--json")
		for moment, h := range []string{written, read, harness.HoldCatchUp} {
			m.WaitReached(p, h)
			for i, move := range moves {
				low, high := i*10, 900+i*10 // in the first and in the last fifth
				tx := "BEGIN; "
				if move.away == moment {
					tx += fmt.Sprintf("UPDATE m SET id = %d WHERE id = %d; UPDATE m SET id = %d WHERE id = %d; ", low+1, high, high+1, low)
				}
				if move.back == moment {
					tx += fmt.Sprintf("UPDATE m SET id = %d WHERE id = %d; UPDATE m SET id = %d WHERE id = %d; ", high, low+1, low, high+1)
				}
				testdb.Exec(t, source, "USE moves; "+tx+"COMMIT")
			}
			m.Release(h)
		}
		p.RequireExit(time.Minute, 0)
		for _, srv := range []*servers.Server{source, target} {
			if got := testdb.Value(t, srv, "SELECT CONCAT(COUNT(*), ' ', COUNT(DISTINCT v)) FROM moves.m"); got != "100 100" {
				t.Errorf("rows and different ones: %s", got)
			}
		}
		testdb.RequireEqual(t, source, target, []string{"moves"})
	}, servers.Kinds()...)
}

// keyTables have keys of every shape, each a row per chunk.
const keyTables = `CREATE DATABASE shapes; USE shapes;
	CREATE TABLE turned (v INT, c INT NOT NULL, b VARCHAR(5) NOT NULL, a INT NOT NULL, PRIMARY KEY (b, a, c), UNIQUE KEY (c, a, v), KEY (a));
	INSERT INTO turned VALUES (1,1,'',1),(2,2,'',1),(3,1,'a',1),(4,1,'a',0),(5,-1,'b',0),(6,0,'zz',-9),(7,1,'ZZ',-10);
	CREATE TABLE other_unique (v INT NOT NULL, a INT NOT NULL, b VARBINARY(5) NOT NULL, UNIQUE KEY (b, a), UNIQUE KEY (a, v));
	INSERT INTO other_unique VALUES (1,1,''),(2,1,x'00'),(3,1,x'0000'),(4,1,'a'),(5,2,'A');
	CREATE TABLE accents (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, v INT);
	INSERT INTO accents VALUES ('',1),('a',2),('ß',3),('😀',4),('b ',5),('Ä!',6),('z',7);
	CREATE TABLE exactly (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, v INT);
	INSERT INTO exactly VALUES ('',1),('a',2),('A ',3),('á',4),('ß',5),('ss',6),('😀',7),('😁',8);
	CREATE TABLE unicodes (k CHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, n INT NOT NULL, v INT, PRIMARY KEY (n, k), UNIQUE KEY (k, n));
	INSERT INTO unicodes VALUES ('',1,1),('a',1,2),('á',2,3),('ß',1,4),('ss',2,5),('😀',1,6),('漢',1,7);
	CREATE TABLE big5keys (k VARCHAR(20) CHARACTER SET big5 PRIMARY KEY, v INT);
	INSERT INTO big5keys VALUES ('',1),('a',2),('功',3),('許',4),('蓋',5),('~',6);`

// keyChanges move, delete and add rows of those tables.
var keyChanges = []string{
	"UPDATE turned SET v = v + 10; DELETE FROM turned WHERE b = 'a' AND a = 0; UPDATE turned SET b = 'Y' WHERE c = -1; INSERT INTO turned VALUES (20,3,'',1)",
	"UPDATE other_unique SET v = v + 10; DELETE FROM other_unique WHERE HEX(b) = '00'; UPDATE other_unique SET b = '\\0\\0\\0' WHERE HEX(b) = ''",
	"UPDATE accents SET v = v + 10; UPDATE accents SET k = 'Á' WHERE v = 12; DELETE FROM accents WHERE v = 14; INSERT INTO accents VALUES ('c', 20)",
	"UPDATE exactly SET v = v + 10; UPDATE exactly SET k = 'A' WHERE v = 13; DELETE FROM exactly WHERE v = 16; UPDATE exactly SET k = 'á ' WHERE v = 14",
	"UPDATE unicodes SET v = v + 10; UPDATE unicodes SET k = 'A' WHERE v = 12; DELETE FROM unicodes WHERE v = 17; UPDATE unicodes SET n = 3 WHERE v = 15",
	"UPDATE big5keys SET v = v + 10; UPDATE big5keys SET k = '功a' WHERE v = 13; DELETE FROM big5keys WHERE v = 15",
}

// Keys of every shape: each row is there once, whether it was changed before,
// between or behind the chunks.
func TestB3_05_KeysOfEveryShape(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		first := harness.New(t, source, target, harness.Config{Include: []string{"shapes.*"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(1)}})
		for n := 1; n <= 7; n += 2 {
			t.Run(fmt.Sprintf("chunk %d", n), func(t *testing.T) {
				for _, srv := range []*servers.Server{source, target} {
					testdb.Exec(t, srv, "DROP DATABASE IF EXISTS shapes")
				}
				testdb.Load(t, source, keyTables)
				m := first.In(t)
				m.HoldAt(harness.HoldChunkRead("shapes.unicodes"), n)
				p := m.Start("--json", "--set", "snapshot.threads=1")
				m.WaitReached(p, harness.HoldChunkRead("shapes.unicodes"))
				for _, c := range keyChanges {
					testdb.Exec(t, source, "SET NAMES utf8mb4; USE shapes; "+c)
				}
				m.Release(harness.HoldChunkRead("shapes.unicodes"))
				p.RequireExit(time.Minute, 0)
				testdb.RequireEqual(t, source, target, []string{"shapes"})
			})
		}
	})
}

// Two dense clusters of keys 9·10^18 apart take as many statements on the source
// as the same rows without a gap.
func TestB3_06_SkewedKeysAreNoMoreWork(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, digits+`CREATE DATABASE dense; CREATE TABLE dense.k (id BIGINT PRIMARY KEY, v VARCHAR(200));
			INSERT INTO dense.k SELECT a.n * 10000 + b.n * 1000 + c.n * 100 + e.n * 10 + f.n, REPEAT('x', 200)
			  FROM keyless_digits.d a, keyless_digits.d b, keyless_digits.d c, keyless_digits.d e, keyless_digits.d f;
			CREATE DATABASE skewed; CREATE TABLE skewed.k LIKE dense.k;
			INSERT INTO skewed.k SELECT IF(id < 50000, id - 4500000000000000000, id + 4500000000000000000), v FROM dense.k; ANALYZE TABLE dense.k, skewed.k;`)
		chunks := map[string]int{}
		for _, database := range []string{"dense", "skewed"} {
			m := harness.New(t, source, target, harness.Config{Include: []string{database + ".*"}, Extra: []string{"snapshot: {chunk_size: 64KiB, threads: 2}"}})
			before := snapshots(t, source)
			m.RequireRun()
			chunks[database] = snapshots(t, source) - before
			testdb.RequireEqual(t, source, target, []string{database})
		}
		t.Logf("%s: snapshots for chunks: %v", kind, chunks)
		if d, s := chunks["dense"], chunks["skewed"]; d < 50 || s > d*12/10+5 {
			t.Errorf("%d chunks of dense keys, %d of skewed ones", d, s)
		}
	})
}

// snapshots counts the transactions that were begun on the server.
func snapshots(t *testing.T, srv *servers.Server) int {
	t.Helper()
	var name string
	var n int
	if err := srv.DB().QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Com_begin'").Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
