package blackbox

import (
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// lockedTables are in no snapshot and have no usable key.
const lockedTables = `CREATE DATABASE lockd; USE lockd;
	CREATE TABLE plain (a INT, b VARCHAR(10), f DOUBLE, t TEXT, FULLTEXT KEY (t)) ENGINE=MyISAM CHECKSUM=1 DELAY_KEY_WRITE=1;
	CREATE TABLE fixed (a INT, c CHAR(10), UNIQUE KEY (a, c)) ENGINE=MyISAM ROW_FORMAT=FIXED PACK_KEYS=1 COMMENT='ENGINE=MyISAM';
	CREATE TABLE counted (id INT NOT NULL AUTO_INCREMENT, v INT, KEY (id)) ENGINE=MyISAM;
	CREATE TABLE safe (id INT PRIMARY KEY, v INT);
	INSERT INTO plain SELECT a.n % 5, CONCAT('row', b.n % 3), c.n, REPEAT('x', c.n) FROM keyless_digits.d a, keyless_digits.d b, keyless_digits.d c;
	INSERT INTO fixed SELECT a.n, b.n FROM keyless_digits.d a, keyless_digits.d b; INSERT INTO fixed VALUES (NULL, 'x'), (NULL, 'x');
	INSERT INTO counted (v) SELECT n FROM keyless_digits.d;`

// lockedChanges are the statements of the load; %[1]d and %[2]d are random.
var lockedChanges = []string{
	"INSERT INTO plain VALUES (%[1]d %% 5, 'row1', -0e0, 'x'), (%[1]d %% 5, 'row1', 0e0, 'x'), (%[1]d %% 5, 'ROW1', NULL, 'x')",
	"UPDATE plain SET b = 'changed', f = %[2]d / 3 WHERE a = %[1]d %% 5 LIMIT 2",
	"UPDATE plain SET t = CONCAT(t, 'y') WHERE a = %[1]d %% 5 AND LENGTH(t) < 20 LIMIT 3",
	"DELETE FROM plain WHERE a = %[1]d %% 5 LIMIT 4",
	"INSERT INTO fixed VALUES (%[1]d %% 50, NULL), (NULL, 'k')",
	"INSERT IGNORE INTO fixed VALUES (%[1]d %% 50, %[2]d %% 50), (%[1]d %% 50, %[2]d %% 60)",
	"UPDATE IGNORE fixed SET c = %[2]d %% 50 WHERE a = %[1]d %% 50 LIMIT 1",
	"DELETE FROM fixed WHERE a <=> NULLIF(%[1]d %% 50, 49) LIMIT 2",
	"INSERT INTO counted (v) VALUES (%[1]d), (%[2]d)",
	"UPDATE counted SET v = v + 1 WHERE v %% 10 = %[1]d %% 10 LIMIT 3",
	"DELETE FROM counted WHERE id %% 20 = %[2]d %% 20 LIMIT 1",
	"INSERT INTO safe VALUES (%[1]d, %[2]d) ON DUPLICATE KEY UPDATE v = v + 1",
	"BEGIN; INSERT INTO safe VALUES (1000 + %[1]d, 1); ROLLBACK",
}

// Tables of engines that do not roll back and without a usable key are read
// while they are locked, get InnoDB on the target, and hold the same rows in the
// end, through kills in the copy and in catch-up.
func TestB3_04_LockedUnderLoad(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, digits)
		testdb.Load(t, source, lockedTables)
		statements := lockedChanges
		if kind.IsMariaDB() {
			testdb.Exec(t, source, "CREATE TABLE lockd.aria (a INT, b CHAR(10)) ENGINE=Aria TRANSACTIONAL=1 ROW_FORMAT=PAGE; INSERT INTO lockd.aria SELECT n % 3, 'x' FROM keyless_digits.d")
			statements = append(statements, "INSERT INTO aria VALUES (%[1]d %% 3, 'x'), (%[2]d %% 3, 'y')", "UPDATE aria SET b = %[2]d WHERE a = %[1]d %% 3 LIMIT 2", "DELETE FROM aria LIMIT 2")
		}
		m := harness.New(t, source, target, harness.Config{Include: []string{"lockd.*"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(50)}})
		mayLock(t, source, "lockd")
		n := throughKills(t, m, "lockd.plain", writeRandom(t, source, "lockd", statements))
		t.Logf("%d statements", n)
		want, got := testdb.Digest(t, source, []string{"lockd"}), testdb.Digest(t, target, []string{"lockd"})
		for name := range want {
			if want[name] != got[name] {
				t.Errorf("%s: source %s, target %s", name, want[name], got[name])
			}
		}
		if len(want) < 4 || len(got) != len(want) {
			t.Errorf("the source has %d tables, the target %d", len(want), len(got))
		}
		if others := testdb.Value(t, target, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'lockd' AND ENGINE <> 'InnoDB'"); others != "0" {
			t.Errorf("%s tables of the target are not of InnoDB", others)
		}
	}, servers.Kinds()...)
}

// While such a table is read, its writers wait, and nobody else.
func TestB3_04_WritersWaitForALockedTable(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, digits)
		testdb.Load(t, source, strings.ReplaceAll(lockedTables, "lockd", "waits"))
		m := harness.New(t, source, target, harness.Config{Include: []string{"waits.plain"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(50)}})
		mayLock(t, source, "waits")
		point := harness.HoldChunkRead("waits.plain")
		m.Hold(point)
		p := begin(m, "--json")
		m.WaitReached(p, point)
		testdb.Exec(t, source, "INSERT INTO waits.safe VALUES (1, 1)")
		done := make(chan error, 1)
		go func() {
			_, err := source.DB().ExecContext(t.Context(), "INSERT INTO waits.plain VALUES (1, 'late', 0, 'x')")
			done <- err
		}()
		if !testdb.Eventually(t, 20*time.Second, func() bool {
			return testdb.Value(t, source, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO waits.plain%' AND STATE LIKE 'Waiting for table%'") == "1"
		}) {
			t.Error("the writer does not wait for the lock")
		}
		m.Release(point)
		p.RequireExit(time.Minute, 0)
		if err := <-done; err != nil {
			t.Errorf("the writer that waited: %v", err)
		}
		m.RequireResume()
		if n := testdb.Value(t, target, "SELECT COUNT(*) FROM waits.plain WHERE b = 'late'"); n != "1" {
			t.Errorf("the target has %s rows of the writer that waited", n)
		}
	}, families...)
}

// mayLock grants what the preflight asks for once it has seen the tables.
func mayLock(t *testing.T, source *servers.Server, database string) {
	t.Helper()
	testdb.Exec(t, source, "GRANT LOCK TABLES ON "+database+".* TO '"+harness.User+"'@'%'")
}
