package blackbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// cascadeTables are chains of three, one of whose links has two columns, two
// foreign keys to one parent, a table that points at itself, one whose rows
// refuse deletes, a text key, a child without a key, and two tables that cascades
// leave alone.
const cascadeTables = `CREATE DATABASE casc; USE casc;
	CREATE TABLE area (id INT PRIMARY KEY, v INT);
	CREATE TABLE mum (id INT PRIMARY KEY, code VARCHAR(20) COLLATE utf8mb4_general_ci NOT NULL UNIQUE, area INT, v INT, INDEX (v), FOREIGN KEY (area) REFERENCES area (id));
	CREATE TABLE kid (id INT PRIMARY KEY AUTO_INCREMENT, p INT, v INT, UNIQUE KEY (p, id), at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
	  FOREIGN KEY (p) REFERENCES mum (id) ON DELETE CASCADE ON UPDATE CASCADE);
	CREATE TABLE grandkid (id INT PRIMARY KEY AUTO_INCREMENT, p INT, kid INT, ` + twoColumns + ` ON DELETE CASCADE ON UPDATE CASCADE);
	CREATE TABLE twice (id INT PRIMARY KEY AUTO_INCREMENT, p INT, code VARCHAR(20) COLLATE utf8mb4_general_ci,
	  FOREIGN KEY (p) REFERENCES mum (id) ON DELETE SET NULL ON UPDATE SET NULL, FOREIGN KEY (code) REFERENCES mum (code) ON DELETE CASCADE ON UPDATE CASCADE);
	CREATE TABLE bare (p INT, v INT, FOREIGN KEY (p) REFERENCES mum (id) ON DELETE CASCADE ON UPDATE CASCADE);
	CREATE TABLE heir (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES mum (id) ON DELETE CASCADE ON UPDATE CASCADE);
	CREATE TABLE heirloom (id INT PRIMARY KEY, v INT, FOREIGN KEY (id) REFERENCES heir (id) ON DELETE CASCADE ON UPDATE CASCADE);
	CREATE TABLE guard (id INT PRIMARY KEY AUTO_INCREMENT, kid INT, FOREIGN KEY (kid) REFERENCES kid (id));
	CREATE TABLE tree (id INT PRIMARY KEY, up INT, ` + toTree + ` ON DELETE CASCADE);
	CREATE TABLE free (id INT PRIMARY KEY AUTO_INCREMENT, v INT);
	CREATE TABLE below (id INT PRIMARY KEY AUTO_INCREMENT, free INT, FOREIGN KEY (free) REFERENCES free (id));
	INSERT INTO area VALUES (0,0),(1,1),(2,2);
	INSERT INTO free (v) SELECT n FROM keyless_digits.d; INSERT INTO below (free) SELECT id FROM free;
	INSERT INTO mum SELECT a.n * 10 + b.n, CONCAT('code', a.n, b.n), b.n % 3, 0 FROM keyless_digits.d a, keyless_digits.d b;
	INSERT INTO kid (p, v) SELECT id, n FROM mum, keyless_digits.d; INSERT INTO grandkid (p, kid) SELECT p, id FROM kid WHERE v < 4;
	INSERT INTO twice (p, code) SELECT id, code FROM mum; INSERT INTO bare SELECT p, v FROM kid; INSERT INTO guard (kid) SELECT id FROM kid WHERE v = 9 AND p < 20;
	INSERT INTO heir SELECT id FROM mum WHERE id % 2 = 0; INSERT INTO heirloom SELECT id, 1 FROM heir; INSERT INTO tree VALUES (0, NULL);`

const (
	twoColumns = "FOREIGN KEY (p, kid) REFERENCES kid (p, id)"
	toTree     = "FOREIGN KEY (up) REFERENCES tree (id)"
)

// cascadeChanges are the statements of the load; %[1]d and %[2]d are random.
var cascadeChanges = []string{
	"INSERT INTO mum VALUES (%[1]d %% 150, CONCAT('code', %[2]d %% 200), %[2]d %% 3, 1)",
	"INSERT INTO mum VALUES (%[1]d %% 150, CONCAT('new', %[2]d), 1, 1) ON DUPLICATE KEY UPDATE id = %[2]d %% 150, v = v + 1",
	"REPLACE INTO mum VALUES (%[1]d %% 150, CONCAT('CODE', %[2]d %% 200), %[2]d %% 3, 2)",
	"UPDATE mum SET id = 1000 + %[2]d, area = %[1]d %% 3 WHERE id = %[1]d %% 150",
	"UPDATE mum SET id = %[2]d %% 150 WHERE id >= 1000 ORDER BY id LIMIT 1",
	"UPDATE mum SET code = IF(BINARY code LIKE 'c%%', UPPER(code), CONCAT('code', %[1]d %% 200)), v = v + 1 WHERE id = %[2]d %% 150",
	"UPDATE mum SET v = v + 1 WHERE id %% 10 = %[1]d %% 10",
	"DELETE FROM mum WHERE id BETWEEN %[1]d %% 150 AND %[1]d %% 150 + 2",
	"DELETE mum, kid FROM mum JOIN kid ON kid.p = mum.id WHERE mum.id = %[1]d %% 150",
	"DELETE mum, kid, twice FROM mum JOIN kid ON kid.p = mum.id JOIN twice ON twice.p = mum.id WHERE mum.id BETWEEN %[1]d %% 150 AND %[1]d %% 150 + 3",
	"DELETE mum, bare FROM mum JOIN bare ON bare.p = mum.id WHERE mum.id BETWEEN %[1]d %% 150 AND %[1]d %% 150 + 1",
	"UPDATE mum JOIN kid ON kid.p = mum.id JOIN twice ON twice.p = mum.id SET mum.id = 3000 + %[2]d, kid.v = kid.v + 1, twice.code = NULL WHERE mum.id = %[1]d %% 150",
	"BEGIN; DELETE FROM grandkid WHERE p = %[1]d %% 150 LIMIT 2; DELETE FROM mum WHERE id = %[1]d %% 150; INSERT INTO mum VALUES (%[1]d %% 150, CONCAT('again', %[2]d), 0, 3); COMMIT",
	"INSERT INTO kid (p, v) SELECT id, %[2]d %% 10 FROM mum ORDER BY id LIMIT 20; INSERT INTO grandkid (p, kid) SELECT p, id FROM kid ORDER BY id DESC LIMIT 10",
	"UPDATE kid SET v = v + 1 WHERE p = %[1]d %% 150; UPDATE kid SET p = (SELECT MAX(id) FROM mum) WHERE v = %[2]d %% 10 LIMIT 2",
	"DELETE FROM kid WHERE v = %[2]d %% 10 ORDER BY id LIMIT 3",
	"INSERT INTO twice (p, code) SELECT id, code FROM mum ORDER BY v LIMIT 5; INSERT INTO bare SELECT id, v FROM mum LIMIT 5",
	"INSERT INTO guard (kid) SELECT id FROM kid WHERE v = 8 ORDER BY id LIMIT 1; DELETE FROM guard WHERE id %% 7 = %[1]d %% 7",
	"INSERT INTO heir SELECT id FROM mum WHERE id %% 7 = %[1]d %% 7 AND id NOT IN (SELECT id FROM heir); INSERT INTO heirloom SELECT id, 2 FROM heir WHERE id NOT IN (SELECT id FROM heirloom)",
	"INSERT INTO tree SELECT %[1]d, MAX(id) FROM tree WHERE id <= %[2]d; UPDATE tree SET up = NULL WHERE id = %[2]d",
	"DELETE FROM tree WHERE id IN (%[1]d, %[2]d) OR id > 900",
	"SET foreign_key_checks = 0; DELETE FROM mum WHERE id = %[1]d %% 150; UPDATE mum SET id = 2000 + %[2]d WHERE id = %[2]d %% 150; SET foreign_key_checks = 1",
	"INSERT INTO free (v) VALUES (%[1]d), (%[2]d); INSERT INTO below (free) SELECT MAX(id) FROM free; UPDATE free SET v = v + 1 WHERE v %% 5 = %[1]d %% 5",
	"INSERT INTO area VALUES (%[1]d, 1); UPDATE mum SET area = %[1]d WHERE id %% 20 = %[2]d %% 20; DELETE FROM area WHERE id = %[2]d AND id > 2",
}

// Changes that foreign keys carry on reach the children on the target, through
// kills in the copy, between copy and catch-up and in catch-up, whether or not
// the source logs them.
func TestB3_07_CascadesUnderLoad(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		cascadesUnderLoad(t, source, target, cascadeTables, kind.IsMariaDB())
	}, servers.MariaDB1011, servers.MariaDB118, servers.MySQL)
}

// A MySQL whose engine carries cascades out below the log, as all did before 9.6,
// to one whose SQL layer does.
func TestB3_07_CascadesOfTheEngine(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source := testdb.One(t, kind, testdb.WithFast(), testdb.WithArgs("--innodb-native-foreign-keys=ON"))
		target := testdb.One(t, kind, testdb.WithFast())
		// The SQL layer of MySQL 9.7 refuses to carry a new key on to several rows over
		// two columns, and a delete to many rows of one table.
		tables := strings.NewReplacer(twoColumns, "FOREIGN KEY (kid) REFERENCES kid (id)", toTree+" ON DELETE CASCADE", toTree+" ON DELETE SET NULL").Replace(cascadeTables)
		cascadesUnderLoad(t, source, target, tables, true)
	}, servers.MySQL, servers.MySQLNoGTID)
}

func cascadesUnderLoad(t *testing.T, source, target *servers.Server, tables string, unlogged bool) {
	t.Helper()
	testdb.Load(t, source, digits)
	testdb.Load(t, source, tables)
	m := harness.New(t, source, target, harness.Config{Include: []string{"casc.*"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(100)}})
	n := throughKills(t, m, "casc.kid", writeRandom(t, source, "casc", cascadeChanges))
	t.Logf("%d statements, of the rows left: %s of kid, %s of grandkid, %s of twice, %s of tree", n, testdb.Value(t, source, "SELECT COUNT(*) FROM casc.kid"),
		testdb.Value(t, source, "SELECT COUNT(*) FROM casc.grandkid"), testdb.Value(t, source, "SELECT COUNT(*) FROM casc.twice"), testdb.Value(t, source, "SELECT COUNT(*) FROM casc.tree"))
	testdb.RequireEqual(t, source, target, []string{"casc"})
	requireClasses(t, m, unlogged)
}

// A large transaction whose changes are carried on by foreign keys is killed again
// and again after some of its parts were applied: each change, and each cascade,
// is made once.
func TestB3_07_KilledInsideALargeCascade(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := testdb.Pair(t, kind, testdb.WithBinlogSize(servers.LoadBinlog), testdb.WithFast())
		testdb.Exec(t, source, `CREATE DATABASE lc; CREATE TABLE lc.mum (id INT PRIMARY KEY, v INT);
			CREATE TABLE lc.kid (id INT PRIMARY KEY, p INT, b LONGBLOB, FOREIGN KEY (p) REFERENCES lc.mum (id) ON DELETE CASCADE ON UPDATE CASCADE)`)
		m := harness.New(t, source, target, harness.Config{Include: []string{"lc.*"}})
		m.RequireRun()
		script := "BEGIN;"
		for i := range 12 {
			script += fmt.Sprintf("INSERT INTO lc.mum VALUES (%[1]d, 1); INSERT INTO lc.kid VALUES (%[2]d, %[1]d, REPEAT('a', 1500000)), (%[2]d + 1, %[1]d, REPEAT('b', 1500000));"+
				"UPDATE lc.mum SET id = %[1]d + 100 WHERE id = %[1]d; INSERT INTO lc.kid VALUES (%[2]d + 2, %[1]d + 100, REPEAT('c', 1500000)); DELETE FROM lc.mum WHERE id = %[1]d + 99 AND MOD(id, 3) = 0;", i, 3*i)
		}
		testdb.Exec(t, source, script+"COMMIT")
		killedInParts(t, m, func(kill int) {
			t.Logf("%s: kill %d: marker %d, %s rows of kid", kind, kill, doneOf(t, target), testdb.Value(t, target, "SELECT COUNT(*) FROM lc.kid"))
		})
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"lc"})
	}, servers.MariaDB1011, servers.MariaDB118)
}

// requireClasses wants the tables that cascades touch to be exact where they are
// not logged, and those that they leave alone to converge.
func requireClasses(t *testing.T, m *harness.Migration, unlogged bool) {
	t.Helper()
	components := map[int]string{}
	for _, tab := range m.State().Tables {
		if (tab.Class == state.ClassExact) != (tab.Component != 0 || tab.Table == "bare") {
			t.Errorf("table %s is %s and in component %d", tab.Table, tab.Class, tab.Component)
		}
		components[tab.Component] += string(tab.Table) + " "
	}
	want := map[int]string{0: "area bare below free grandkid guard heir heirloom kid mum tree twice "}
	if unlogged {
		want = map[int]string{0: "below free ", 1: "area bare grandkid guard heir heirloom kid mum twice ", 2: "tree "}
	}
	for n, tables := range want {
		if components[n] != tables {
			t.Errorf("component %d is %q, not %q", n, strings.TrimSpace(components[n]), tables)
		}
	}
}

const family = `CREATE DATABASE fam; USE fam; CREATE TABLE mum (id INT PRIMARY KEY, v INT);
	CREATE TABLE kid (id INT PRIMARY KEY, p INT, CONSTRAINT to_mum FOREIGN KEY (p) REFERENCES mum (id) ON DELETE CASCADE);
	CREATE TABLE other (id INT PRIMARY KEY, m INT, CONSTRAINT tie FOREIGN KEY (m) REFERENCES mum (id));`

const familyRows = "INSERT INTO fam.mum VALUES (1,1),(2,2),(3,3); INSERT INTO fam.kid VALUES (1,1),(2,2),(3,3); INSERT INTO fam.other VALUES (1,3);"

// A table of a component is changed before its copy: all of it begins again. If
// then foreign keys tie other tables together, the run ends and says so.
func TestB3_07_ComponentChangedBeforeItsCopy(t *testing.T) {
	for _, c := range []struct {
		alter string
		exit  int
	}{
		{"ALTER TABLE fam.kid ADD w INT DEFAULT 7", 0},
		{"ALTER TABLE fam.kid DROP FOREIGN KEY to_mum", 1},
	} {
		source, target := sharedPair(t, servers.MariaDB118)
		testdb.Load(t, source, family+familyRows)
		m := harness.New(t, source, target, harness.Config{Include: []string{"fam.*"}, Build: harness.HoldPoints})
		m.Hold("schema_made")
		p := m.Start("--json")
		m.WaitReached(p, "schema_made")
		testdb.Exec(t, source, c.alter)
		m.Release("schema_made")
		p.RequireExit(harness.RunTimeout, c.exit)
		if c.exit != 0 {
			if !strings.Contains(p.Stderr()+p.Stdout(), "foreign keys with CASCADE or SET NULL have changed") {
				t.Error("the run does not say what has changed")
			}
			continue
		}
		testdb.Exec(t, source, "DELETE FROM fam.mum WHERE id = 1")
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"fam"})
	}
}

// Tables that the target has already, with their foreign keys, and a cascade of
// an XA transaction that was prepared before the run was killed.
func TestB3_07_CascadesOfTakenTablesAndXA(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, family+familyRows)
		testdb.Load(t, target, family+"INSERT INTO fam.mum VALUES (9,9); INSERT INTO fam.kid VALUES (9,9);")
		m := harness.New(t, source, target, harness.Config{Include: []string{"fam.*"}, Build: harness.HoldPoints, Extra: []string{"existing_tables: truncate"}})
		m.Hold("catch_up")
		p := m.Start("--json")
		m.WaitReached(p, "catch_up")
		testdb.Exec(t, source, "USE fam; DELETE FROM mum WHERE id = 1; XA START 'x'; DELETE FROM mum WHERE id = 2; INSERT INTO mum VALUES (4, 4); INSERT INTO kid VALUES (4, 4); XA END 'x'; XA PREPARE 'x'")
		m.Release("catch_up")
		p.RequireExit(harness.RunTimeout, 0)
		if got := testdb.Value(t, target, "SELECT GROUP_CONCAT(id ORDER BY id) FROM fam.kid"); got != "2,3" {
			t.Errorf("before the XA COMMIT: kid has %s", got)
		}
		testdb.Exec(t, source, "XA COMMIT 'x'")
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"fam"})
	}, servers.MariaDB1011, servers.MariaDB118)
}
