package blackbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// constrained has each kind of constraint, with rows that satisfy all of them:
// children before parents, a table that points at itself, two that point at
// each other, NULLs in part of a composite key, keys that are equal under their
// collation only, a parent in another database.
const constrained = `CREATE DATABASE c1; CREATE DATABASE c2; SET foreign_key_checks = 0;
	CREATE TABLE c1.a_kid (id INT PRIMARY KEY, p INT, CONSTRAINT kid FOREIGN KEY (p) REFERENCES c1.z_mum (id));
	CREATE TABLE c1.z_mum (id INT PRIMARY KEY, u INT, v INT, UNIQUE KEY uq (u), CONSTRAINT positive CHECK (v > 0));
	CREATE TABLE c1.self (id INT PRIMARY KEY, up INT, CONSTRAINT tree FOREIGN KEY (up) REFERENCES c1.self (id));
	CREATE TABLE c1.hen (id INT PRIMARY KEY, egg INT, CONSTRAINT of_egg FOREIGN KEY (egg) REFERENCES c1.egg (id));
	CREATE TABLE c1.egg (id INT PRIMARY KEY, hen INT, CONSTRAINT of_hen FOREIGN KEY (hen) REFERENCES c1.hen (id));
	CREATE TABLE c1.pair (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(10) COLLATE utf8mb4_general_ci NOT NULL, UNIQUE KEY (a, b));
	CREATE TABLE c2.pointer (id INT PRIMARY KEY, a INT, b VARCHAR(10) COLLATE utf8mb4_general_ci,
		KEY (a, b), CONSTRAINT both_parts FOREIGN KEY (a, b) REFERENCES c1.pair (a, b));
	INSERT INTO c1.a_kid VALUES (1, 9), (2, NULL), (3, 8);
	INSERT INTO c1.z_mum VALUES (8, 1, 1), (9, 2, 5);
	INSERT INTO c1.self VALUES (1, 2), (2, 3), (3, 1), (4, 4), (5, NULL);
	INSERT INTO c1.hen VALUES (1, 1); INSERT INTO c1.egg VALUES (1, 1);
	INSERT INTO c1.pair VALUES (1, 1, 'José'), (2, 1, 'x');
	INSERT INTO c2.pointer VALUES (1, 1, 'JOSE'), (2, 1, NULL), (3, NULL, 'nobody'), (4, NULL, NULL), (5, 7, NULL);`

// constrainedChanges come through the log, in transactions that satisfy the
// constraints at their ends only.
const constrainedChanges = `SET foreign_key_checks = 0;
	BEGIN; INSERT INTO c1.a_kid VALUES (4, 10); INSERT INTO c1.z_mum VALUES (10, 3, 1); COMMIT;
	BEGIN; DELETE FROM c1.z_mum WHERE id = 8; DELETE FROM c1.a_kid WHERE p = 8; COMMIT;
	BEGIN; UPDATE c1.z_mum SET u = u + 100; UPDATE c1.z_mum SET u = 105 - u; UPDATE c2.pointer SET b = 'X' WHERE id = 1; COMMIT`

// violations are statements that each constraint must refuse on the target.
var violations = []struct {
	query string
	code  uint16
}{
	{"INSERT INTO c1.a_kid VALUES (99, 12345)", 1452},
	{"DELETE FROM c1.z_mum WHERE id = 9", 1451},
	{"INSERT INTO c1.z_mum SELECT 99, u, 1 FROM c1.z_mum LIMIT 1", 1062},
	{"INSERT INTO c1.self VALUES (99, 12345)", 1452},
	{"DELETE FROM c1.self WHERE id = 2", 1451},
	{"INSERT INTO c1.hen VALUES (99, 12345)", 1452},
	{"DELETE FROM c1.hen", 1451},
	{"INSERT INTO c2.pointer VALUES (99, 1, 'nobody')", 1452},
	{"DELETE FROM c1.pair WHERE id = 2", 1451},
}

// Constraints of all kinds are enforced on the target at the end, and nothing is
// said of them where the rows satisfy them.
func TestB3_07_ConstraintsEnforcedAtTheEnd(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Exec(t, source, constrained)
		m := constrainedMigration(t, source, target)
		m.Hold(harness.HoldCatchUp)
		p := m.Start("--json")
		m.WaitReached(p, harness.HoldCatchUp)
		testdb.Exec(t, source, constrainedChanges)
		m.Release(harness.HoldCatchUp)
		p.RequireExit(harness.RunTimeout, 0)
		for _, w := range warnings(p) {
			t.Errorf("a warning: %s", w)
		}
		testdb.RequireEqual(t, source, target, []string{"c1", "c2"})
		check := uint16(3819)
		if kind.IsMariaDB() {
			check = 4025
		}
		for _, v := range append(violations, struct {
			query string
			code  uint16
		}{"UPDATE c1.z_mum SET v = -1", check}) {
			if _, err := target.DB().ExecContext(t.Context(), v.query); mysqlconn.ErrorNumber(err) != v.code {
				t.Errorf("%s on the target: %v, want error %d", v.query, err, v.code)
			}
		}
	})
}

func constrainedMigration(t *testing.T, source, target *servers.Server) *harness.Migration {
	t.Helper()
	return harness.New(t, source, target, harness.Config{Include: []string{"c1.*", "c2.*"}, Build: harness.HoldPoints})
}

// warnings returns the messages of warning records.
func warnings(p *harness.Process) []string {
	var all []string
	for _, r := range p.Records() {
		if r.Type() == "warning" {
			all = append(all, r.Text("message"))
		}
	}
	return all
}

// requireWarning returns the one warning that names all of the texts.
func requireWarning(t *testing.T, p *harness.Process, texts ...string) string {
	t.Helper()
	var found []string
	for _, w := range warnings(p) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(w, text)
		}
		if all {
			found = append(found, w)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d warnings name %q, want 1; all: %q", len(found), texts, warnings(p))
	}
	return found[0]
}

// Rows without a parent that the source has, too, are named with their number
// and a statement that lists them, and no value of them; so are rows that violate
// a CHECK that MariaDB did not check, or MySQL does not enforce.
func TestB3_07_OrphansOfTheSourceAreNamed(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Exec(t, source, constrained)
		testdb.Exec(t, source, `SET foreign_key_checks = 0;
			INSERT INTO c1.a_kid VALUES (11, 987654), (12, 987654), (13, 987655);
			INSERT INTO c2.pointer VALUES (11, 987656, 'secret-orphan')`)
		// More values than the source is asked about at a time.
		testdb.Exec(t, source, `SET foreign_key_checks = 0; CREATE TABLE c1.many (id INT PRIMARY KEY, p INT, CONSTRAINT lots FOREIGN KEY (p) REFERENCES c1.z_mum (id));
			INSERT INTO c1.many WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 250) SELECT n, 987000 + n FROM s`)
		off := "NOT ENFORCED"
		if kind.IsMariaDB() {
			off = ""
		}
		testdb.Exec(t, source, "CREATE TABLE c1.checked (id INT PRIMARY KEY, v INT CHECK (v <> 4), w INT, CONSTRAINT `small (x)` CHECK (w < 10 OR w = 987) "+off+")")
		if kind.IsMariaDB() {
			testdb.Exec(t, source, "SET check_constraint_checks = 0; INSERT INTO c1.checked VALUES (1, 4, 1), (2, 5, 987654), (3, NULL, 987653), (4, 1, NULL)")
		} else {
			testdb.Exec(t, source, "INSERT INTO c1.checked VALUES (2, 5, 987654), (3, NULL, 987653), (4, 1, NULL)")
		}
		m := constrainedMigration(t, source, target)
		p := m.RequireRun("--json")
		testdb.RequireEqual(t, source, target, []string{"c1", "c2"})
		listed := []struct {
			rows  int
			texts []string
		}{{3, []string{"foreign key kid of table c1.a_kid: 3 rows", "c1.z_mum"}}, {1, []string{"foreign key both_parts of table c2.pointer: 1 rows"}},
			{250, []string{"foreign key lots of table c1.many: 250 rows"}}}
		if kind.IsMariaDB() {
			listed = append(listed, struct {
				rows  int
				texts []string
			}{2, []string{"constraint small (x) of table c1.checked: 2 rows"}}, struct {
				rows  int
				texts []string
			}{1, []string{"constraint v of table c1.checked: 1 rows"}})
		}
		for _, l := range listed {
			w := requireWarning(t, p, l.texts...)
			_, list, _ := strings.Cut(w, "with: ")
			if n := len(names(t, target, list)); n != l.rows {
				t.Errorf("%s lists %d rows, want %d", list, n, l.rows)
			}
		}
		if len(warnings(p)) != len(listed) {
			t.Errorf("warnings: %q", warnings(p))
		}
		for _, secret := range []string{"987654", "987655", "987656", "secret-orphan"} {
			if strings.Contains(p.Stdout()+p.Stderr(), secret) {
				t.Errorf("a row's value %s was printed", secret)
			}
		}
	})
}

// Where the parent is not selected, the target's own table counts, and what it
// lacks is no error of the copy.
func TestB3_07_ParentThatIsNotSelected(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Exec(t, source, constrained)
		testdb.Exec(t, target, "CREATE DATABASE c1; CREATE TABLE c1.pair (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(10) COLLATE utf8mb4_general_ci NOT NULL, UNIQUE KEY (a, b))")
		m := harness.New(t, source, target, harness.Config{Include: []string{"c2.*"}})
		testdb.Exec(t, target, "GRANT SELECT, REFERENCES ON c1.* TO "+harness.User)
		p := m.RequireRun("--json")
		requireWarning(t, p, "foreign key both_parts of table c2.pointer: 1 rows have no parent in the target's own table c1.pair")
		testdb.RequireEqual(t, source, target, []string{"c2"})
	})
}

// changedOnTarget lets a run go on with a target that somebody has changed before
// catch-up.
func changedOnTarget(t *testing.T, m *harness.Migration, change string) *harness.Process {
	t.Helper()
	m.Hold(harness.HoldCatchUp)
	p := m.Start("--json")
	m.WaitReached(p, harness.HoldCatchUp)
	testdb.Exec(t, m.Target, change)
	m.Release(harness.HoldCatchUp)
	return p
}

// requireStops fails the test unless the run, and each resume, ends with an error
// at that table that has the text and lists the one row that is its cause, until
// that is mended.
func requireStops(t *testing.T, m *harness.Migration, p *harness.Process, where, text, cause, mend string) {
	t.Helper()
	for range 2 {
		p.RequireExit(harness.RunTimeout, 7)
		e := p.Last("exit_error")
		if !strings.Contains(e.Text("message"), text) || e.Text("where") != where {
			t.Errorf("the error is %v", e)
		}
		_, list, _ := strings.Cut(e.Text("next"), "with: ")
		list, _, _ = strings.Cut(list, ";")
		if n := names(t, m.Target, list); len(n) != 1 || n[0] != cause {
			t.Errorf("%s lists %q", list, n)
		}
		if len(cause) > 3 && strings.Contains(p.Stdout()+p.Stderr(), cause) {
			t.Error("a row's value was printed")
		}
		p = m.StartResume("--json")
	}
	p.RequireExit(harness.RunTimeout, 7)
	testdb.Exec(t, m.Target, mend)
	m.RequireResume()
	testdb.RequireEqual(t, m.Source, m.Target, []string{"c1", "c2"})
	m.RequireClean()
}

// A parent row that the target has lost ends the run, and each resume, with what
// and where, until it is there again.
func TestB3_07_LostParentIsAnError(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Exec(t, source, constrained)
		testdb.Exec(t, source, "INSERT INTO c2.pointer SELECT 987654, 1, 'x'")
		m := constrainedMigration(t, source, target)
		p := changedOnTarget(t, m, "DELETE FROM c1.pair WHERE id = 2")
		requireStops(t, m, p, "c2.pointer", "foreign key both_parts: the target has rows without a parent in c1.pair (1 values of a, b)", "987654",
			"INSERT INTO c1.pair VALUES (2, 1, 'x')")
	})
}

// Rows without a parent that the source has put right since are told from lost
// ones: the run goes on until the target has that, too. A stop point before it
// cannot be reached.
func TestB3_07_OrphansThatTheSourceHasPutRight(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Exec(t, source, constrained)
		testdb.Exec(t, source, "SET foreign_key_checks = 0; INSERT INTO c1.a_kid VALUES (11, 77), (12, 78)")
		m := constrainedMigration(t, source, target)
		m.Hold(harness.HoldCatchUp)
		p := m.Start("--json")
		m.WaitReached(p, harness.HoldCatchUp)
		at := m.State().Sources[0].ConsistentAt
		testdb.Exec(t, source, "INSERT INTO c1.z_mum VALUES (77, 77, 77); DELETE FROM c1.a_kid WHERE id = 12")
		p.Kill9()
		m.Release(harness.HoldCatchUp)
		early := m.Resume("--json", "--set", fmt.Sprintf("catch_up.until={file: %s, pos: %d}", at.File, at.Pos))
		early.RequireExit(harness.RunTimeout, 7)
		if e := early.Last("exit_error"); !strings.Contains(e.Text("message"), "cannot be told") {
			t.Errorf("the error is %v", e)
		}
		p = m.RequireResume("--json")
		for _, w := range warnings(p) {
			t.Errorf("a warning: %s", w)
		}
		testdb.RequireEqual(t, source, target, []string{"c1", "c2"})
	})
}

// Cascades that the source does not log are refused where the parent is not
// selected, though the account on the source may do nothing with the tables but
// read them, to which MariaDB's catalogue shows no foreign keys.
func TestB3_07_UnloggedCascadesAreSeen(t *testing.T) {
	source, target := sharedPair(t, servers.MariaDB118)
	testdb.Exec(t, source, `CREATE DATABASE c1; CREATE TABLE c1.mum (id INT PRIMARY KEY);
		CREATE TABLE c1.kid (id INT PRIMARY KEY, p INT, CONSTRAINT gone FOREIGN KEY (p) REFERENCES c1.mum (id) ON DELETE CASCADE)`)
	m := harness.New(t, source, target, harness.Config{Include: []string{"c1.kid"}})
	p := m.Run("--json")
	p.RequireExit(harness.RunTimeout, 3)
	if !strings.Contains(p.Stdout(), "unlogged_cascade") {
		t.Error("the foreign key is not named")
	}
}

// Rows that a unique index finds equal on the target end the run, and each
// resume, with table, index and what to do, until they are gone.
func TestB3_07_UniqueIndexThatCannotBeMade(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Exec(t, source, constrained)
		testdb.Exec(t, source, "ALTER TABLE c1.z_mum ADD w VARCHAR(20) DEFAULT NULL, ADD UNIQUE KEY `odd'name` (v, w(3))")
		m := constrainedMigration(t, source, target)
		p := changedOnTarget(t, m, "INSERT INTO c1.z_mum VALUES (100, 987654, 1, NULL), (101, 987654, 1, NULL)")
		requireStops(t, m, p, "c1.z_mum", "unique index uq ", "987654", "DELETE FROM c1.z_mum WHERE id >= 100")
	})
}

// big takes seconds to index, twice: by itself and with its unique keys.
const big = `CREATE DATABASE big; CREATE TABLE big.mum (id INT PRIMARY KEY, u INT NOT NULL, UNIQUE KEY (u));
	CREATE TABLE big.t (id INT PRIMARY KEY, a VARCHAR(64) NOT NULL, b VARCHAR(64) NOT NULL, p INT, KEY by_a (a), KEY by_b (b, a), KEY (p),
		UNIQUE KEY ua (a, id), UNIQUE KEY ub (b, id), CONSTRAINT to_mum FOREIGN KEY (p) REFERENCES big.mum (u));
	INSERT INTO big.mum VALUES (1, 10), (2, 20);
	INSERT INTO big.t SELECT n, SHA2(n, 256), REVERSE(SHA2(n, 256)), IF(MOD(n, 3) = 0, NULL, 10) FROM (
	  SELECT a.n * 100000 + b.n * 10000 + c.n * 1000 + d.n * 100 + e.n * 10 + f.n AS n
	  FROM keyless_digits.d a, keyless_digits.d b, keyless_digits.d c, keyless_digits.d d, keyless_digits.d e, keyless_digits.d f) AS s WHERE n < %d`

// SIGKILL while an ALTER of the run waits for the table, while it works, and when
// it is done and nobody has noticed, for each kind of index and constraint; the
// resume comes at once. The target's session outlives the process: the resume
// ends it and waits for its end before it looks at what is there.
func TestB3_07_KilledWhileIndexesAreMade(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, digits)
		testdb.Load(t, source, fmt.Sprintf(big, times(80_000, 400_000)))
		m := harness.New(t, source, target, harness.Config{Include: []string{"big.*"}, Build: harness.HoldPoints})
		killAt(m, harness.HoldChunkWritten("big.t")) // from there on the table stays
		for _, step := range []struct{ what, add, name string }{
			{"indexes", "ADD KEY", "by_b"}, {"unique indexes", "ADD UNIQUE", "ub"}, {"foreign keys", "ADD CONSTRAINT", "to_mum"}} {
			killWaiting(t, m, step.add)
			if step.what != "foreign keys" { // that changes nothing but the dictionary
				killWorking(t, m, step.add)
			}
			create := testdb.Creates(t, target, []string{"big"})["big.t"]
			if strings.Contains(create, "`"+step.name+"`") {
				t.Logf("%s: the killed statement was carried out", step.what)
			} else {
				killAt(m, "added "+step.what+":big.t")
			}
		}
		killAt(m, "validated:big.t")
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"big"})
		m.RequireClean()
	})
}

// killAt lets the run go on to a hold point and kills it there.
func killAt(m *harness.Migration, point string) {
	m.Hold(point)
	p := begin(m, "--json")
	m.WaitReached(p, point)
	p.Kill9()
	m.Release(point)
}

// altering tells whether the target runs a statement of copydb's that adds
// something to big.t, and whether that waits for the table.
func altering(t *testing.T, m *harness.Migration, add string) (runs, waits bool) {
	t.Helper()
	list := "performance_schema.processlist" // the other fails where a statement has bytes outside utf8mb3
	if m.Target.Kind.IsMariaDB() {
		list = "information_schema.PROCESSLIST"
	}
	states := names(t, m.Target, "SELECT COALESCE(STATE, '') FROM "+list+" WHERE USER = '"+harness.User+"' AND INFO LIKE 'ALTER TABLE%big%"+add+"%'")
	return len(states) > 0, len(states) > 0 && strings.Contains(states[0], "metadata lock")
}

// killWaiting kills the run while its ALTER waits for a transaction that has
// read the table, and the resume when it has ended that.
func killWaiting(t *testing.T, m *harness.Migration, add string) {
	t.Helper()
	conn, err := m.Target.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, q := range []string{"BEGIN", "SELECT 1 FROM big.t LIMIT 1"} {
		if _, err := conn.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	p := begin(m, "--json")
	p.WaitFor("an ALTER that waits: "+add, time.Minute, func() bool {
		_, waits := altering(t, m, add)
		return waits
	})
	p.Kill9()
	endDead(t, m, add)
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}

// endDead lets a run go on until it has the migration, and kills it: what the
// dead one was at must have ended by then.
func endDead(t *testing.T, m *harness.Migration, add string) {
	t.Helper()
	before, _ := altering(t, m, add)
	killAt(m, "begun")
	after, _ := altering(t, m, add)
	t.Logf("%s: the target still worked on it after the kill: %v", add, before)
	if after {
		t.Errorf("%s: the target works on it after the resume has begun", add)
	}
}

func killWorking(t *testing.T, m *harness.Migration, add string) {
	t.Helper()
	p := begin(m, "--json")
	p.WaitFor("an ALTER that works: "+add, time.Minute, func() bool {
		runs, waits := altering(t, m, add)
		return runs && !waits
	})
	p.Kill9()
	endDead(t, m, add)
}

// Rows lose and get their parents all the time on the source: no value that has
// none on the target has one on the source for long, and the run comes to its end.
func TestB3_07_ParentsComeAndGo(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, `CREATE DATABASE flux; USE flux;
			CREATE TABLE p (id INT PRIMARY KEY);
			INSERT INTO p WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 300) SELECT i FROM n;
			CREATE TABLE c (id INT PRIMARY KEY, p INT, q INT, FOREIGN KEY (p) REFERENCES p (id), FOREIGN KEY (q) REFERENCES p (id));
			INSERT INTO c SELECT id, id, id FROM p;`)
		var done atomic.Bool
		var writers sync.WaitGroup
		defer writers.Wait()
		defer done.Store(true)
		writers.Go(func() {
			for !done.Load() {
				_, err := source.DB().ExecContext(context.WithoutCancel(t.Context()),
					"SET foreign_key_checks = 0; UPDATE flux.c SET p = IF(RAND() < 0.5, id, 90000 + id), q = IF(RAND() < 0.5, id, 70000 + id); SET foreign_key_checks = 1")
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
		m := harness.New(t, source, target, harness.Config{Include: []string{"flux.*"}})
		m.RequireRun("--deadline", "30s")
		done.Store(true)
		writers.Wait()
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"flux"})
	})
}
