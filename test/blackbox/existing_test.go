package blackbox

import (
	"strings"
	"syscall"
	"testing"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
	"github.com/google/go-cmp/cmp"
)

// shopSource makes tables that foreign keys tie, with secondary indexes of all
// kinds.
const shopSource = `CREATE DATABASE shop;
CREATE TABLE shop.customer (id INT PRIMARY KEY AUTO_INCREMENT, mail VARCHAR(40) CHARACTER SET latin1 NOT NULL, name VARCHAR(40),
  low VARCHAR(40) AS (LOWER(name)) STORED, UNIQUE KEY by_mail (mail), KEY by_name (name(10), id));
CREATE TABLE shop.bill (id INT PRIMARY KEY, customer INT, mail VARCHAR(40) CHARACTER SET latin1, total DECIMAL(9,2) NOT NULL DEFAULT 0,
  KEY by_customer (customer), CONSTRAINT bill_customer FOREIGN KEY (customer) REFERENCES shop.customer (id),
  CONSTRAINT bill_mail FOREIGN KEY (mail) REFERENCES shop.customer (mail), CONSTRAINT positive CHECK (total >= 0));
INSERT INTO shop.customer (id, mail, name) VALUES (1,'a@x','Ann'),(2,'b@x','Bob'),(3,'c@x',NULL);
INSERT INTO shop.bill VALUES (1,1,'a@x',10),(2,1,'b@x',20.5),(3,3,NULL,0);`

// sameTables makes the source's tables of a database on the target, empty.
func sameTables(t *testing.T, m *harness.Migration, database string) {
	t.Helper()
	script := "SET foreign_key_checks = 0; CREATE DATABASE IF NOT EXISTS " + database + "; USE " + database + ";"
	for _, create := range testdb.Creates(t, m.Source, []string{database}) {
		if strings.HasPrefix(create, "CREATE TABLE") {
			script += create + ";"
		}
	}
	testdb.Exec(t, m.Target, script)
}

func existing(t *testing.T, kind servers.Kind, rule string) *harness.Migration {
	t.Helper()
	source, target := sharedPair(t, kind)
	testdb.Exec(t, source, shopSource)
	return harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}, Extra: []string{"existing_tables: " + rule}, Build: harness.HoldPoints,
		Env: []string{harness.ChunkRows(1)}})
}

// requireSame compares rows and structures.
func requireSame(t *testing.T, m *harness.Migration) {
	t.Helper()
	testdb.RequireEqual(t, m.Source, m.Target, []string{"shop"})
	if diff := cmp.Diff(testdb.Creates(t, m.Source, []string{"shop"}), testdb.Creates(t, m.Target, []string{"shop"})); diff != "" {
		t.Errorf("structures differ: %s", diff)
	}
	m.RequireClean()
}

// requireFindings runs a fresh run that the preflight must refuse, which changes
// nothing.
func requireFindings(t *testing.T, m *harness.Migration, says string) {
	t.Helper()
	before := everything(t, m.Target)
	p := m.Run()
	if p.ExitCode() != 3 || !strings.Contains(p.Stderr(), says) {
		t.Errorf("exit code %d; %q is not said", p.ExitCode(), says)
	}
	if diff := cmp.Diff(before, everything(t, m.Target)); diff != "" {
		t.Errorf("the target was changed: %s", diff)
	}
}

// requireKept fails the test if the table has lost the comment that it had on
// the target before, and takes it away.
func requireKept(t *testing.T, m *harness.Migration, table string) {
	t.Helper()
	if c := testdb.Value(t, m.Target, "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = '"+table+"'"); c != "kept" {
		t.Errorf("table %s was made anew: its comment is %q", table, c)
	}
	testdb.Exec(t, m.Target, "ALTER TABLE shop."+table+" COMMENT ''")
}

// TestExistingEmptyTables: empty tables of the source's structure are used, also
// where options of theirs differ, and keep those.
func TestExistingEmptyTables(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		m := existing(t, kind, "use_empty")
		sameTables(t, m, "shop")
		m.RequireRun()
		requireSame(t, m)
		if made := testdb.Value(t, m.Target, "SELECT COUNT(*) FROM _copydb.journal WHERE kind = 'table'"); made != "0" {
			t.Errorf("%s tables were made", made)
		}
		testdb.Exec(t, m.Source, "INSERT INTO shop.customer (mail, name) VALUES ('d@x','Dan')")
		m.RequireResume()
		requireSame(t, m)
		p := m.Run("--start-over")
		if p.ExitCode() != 3 || !strings.Contains(p.Stderr(), "existing_not_empty") {
			t.Errorf("tables that were taken over and are full now: exit %d", p.ExitCode())
		}
		m.SetConfig(func(c *harness.Config) { c.Extra = []string{"existing_tables: truncate"} })
		testdb.Exec(t, m.Target, "DROP TABLE shop.bill; ALTER TABLE shop.customer COMMENT 'kept'")
		m.RequireRun("--start-over")
		requireKept(t, m, "customer")
		requireSame(t, m)
	}, families...)
}

// TestExistingTablesThatDiffer: nothing is written, and the statement that is
// printed makes the tables fit.
func TestExistingTablesThatDiffer(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		m := existing(t, kind, "use_empty")
		testdb.Exec(t, m.Target, `SET foreign_key_checks = 0; CREATE DATABASE shop;
			CREATE TABLE shop.customer (id BIGINT PRIMARY KEY, mail VARCHAR(40) CHARACTER SET utf8mb4, low VARCHAR(40), extra INT, KEY by_mail (mail), KEY more (extra)) ENGINE=MyISAM CHARACTER SET koi8r;
			CREATE TABLE shop.bill (customer INT, id INT, total DECIMAL(9,2) NOT NULL DEFAULT 1, CONSTRAINT other CHECK (total > 5)) COMMENT 'mine'`)
		requireFindings(t, m, "column id has type bigint, it should be int")
		p := m.Command().Start(t, "check", "--config", m.ConfigPath, "--json")
		p.RequireExit(harness.RunTimeout, 3)
		for _, r := range p.Records() {
			if r.Text("id") != "existing_differs" {
				continue
			}
			alter, ok := strings.CutPrefix(r.Text("fix"), "on the target: ")
			if !ok {
				t.Errorf("no statement in %s", r.Text("fix"))
			}
			testdb.Exec(t, m.Target, "SET foreign_key_checks = 0; USE shop; "+alter)
		}
		p = m.RequireRun()
		if !strings.Contains(p.Stderr(), "engine MyISAM") || !strings.Contains(p.Stderr(), "the columns stand in another order") {
			t.Error("what differs and does not matter is not said")
		}
		for _, rows := range []string{
			"SELECT GROUP_CONCAT(CONCAT_WS('/', id, mail, HEX(name), low) ORDER BY id) FROM shop.customer",
			"SELECT GROUP_CONCAT(CONCAT_WS('/', id, customer, mail, total) ORDER BY id) FROM shop.bill",
		} {
			if want, got := testdb.Value(t, m.Source, rows), testdb.Value(t, m.Target, rows); want != got {
				t.Errorf("rows are %s, want %s", got, want)
			}
		}
	}, families...)
}

// TestExistingTablesTruncated: rows go, the tables stay, whatever points at
// them, and a run that was killed goes on without asking.
func TestExistingTablesTruncated(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		m := existing(t, kind, "truncate")
		sameTables(t, m, "shop")
		testdb.Exec(t, m.Target, `ALTER TABLE shop.bill COMMENT 'kept'; INSERT INTO shop.customer (id, mail) VALUES (1,'old'),(9,'older'); INSERT INTO shop.bill VALUES (7,9,'old',1);
			CREATE TABLE shop.bystander (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES shop.customer (id)); INSERT INTO shop.bystander VALUES (1,1)`)
		p := m.Command().Start(t, m.FreshArgs("--dry-run")...)
		p.RequireExit(harness.RunTimeout, 0)
		for _, said := range []string{"existing_truncated", "2 rows", "shop.bystander"} {
			if !strings.Contains(p.Stderr()+p.Stdout(), said) {
				t.Errorf("%q is not said", said)
			}
		}
		for _, point := range []string{harness.HoldStartTaken, harness.HoldSchemaMade, harness.HoldChunkWritten("shop.customer"), harness.HoldCatchUp} {
			m.Hold(point)
		}
		p = m.Start()
		for _, point := range []string{harness.HoldStartTaken, harness.HoldSchemaMade, harness.HoldChunkWritten("shop.customer"), harness.HoldCatchUp} {
			m.WaitReached(p, point)
			p.Signal(syscall.SIGKILL)
			<-p.Ended()
			m.Release(point)
			p = m.StartResume()
		}
		p.RequireExit(harness.RunTimeout, 0)
		requireKept(t, m, "bill")
		testdb.Exec(t, m.Target, "DROP TABLE shop.bystander")
		requireSame(t, m)
	}, families...)
}

// TestExistingTablesRecreated: whatever they were, they become the source's.
func TestExistingTablesRecreated(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		m := existing(t, kind, "recreate")
		testdb.Exec(t, m.Target, `CREATE DATABASE shop; CREATE TABLE shop.customer (id INT PRIMARY KEY, mail VARCHAR(40) CHARACTER SET latin1 NOT NULL UNIQUE);
			CREATE TABLE shop.bill (id INT PRIMARY KEY, m VARCHAR(40) CHARACTER SET latin1, FOREIGN KEY (m) REFERENCES shop.customer (mail)); INSERT INTO shop.customer VALUES (1,'a'); INSERT INTO shop.bill VALUES (5,'a');
			CREATE TRIGGER shop.gone BEFORE INSERT ON shop.bill FOR EACH ROW SET NEW.id = 1;
			CREATE TABLE shop.bystander (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES shop.customer (id))`)
		requireFindings(t, m, "foreign_child")
		testdb.Exec(t, m.Target, "DROP TABLE shop.bystander")
		m.Hold(harness.HoldStartTaken)
		p := m.Start()
		m.WaitReached(p, harness.HoldStartTaken)
		p.Kill9()
		m.Release(harness.HoldStartTaken)
		m.RequireResume()
		requireSame(t, m)
	}, families...)
}

// TestLeftoversAreTold: an unfinished run of the same and of other tables, and
// its sessions, before a fresh run begins.
func TestLeftoversAreTold(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		m := existing(t, kind, "error")
		testdb.Exec(t, m.Source, "CREATE DATABASE other; CREATE TABLE other.t (id INT PRIMARY KEY)")
		m.Hold(harness.HoldStartTaken)
		p := m.Start()
		m.WaitReached(p, harness.HoldStartTaken)
		told := func(include string, want ...string) {
			t.Helper()
			c := m.Config()
			c.Include, c.Build = []string{include}, harness.Release
			check := harness.New(t, m.Source, m.Target, c)
			check.Grant()
			said := check.Command().Start(t, "check", "--config", check.ConfigPath)
			said.RequireExit(harness.RunTimeout, 0, 3)
			for _, w := range want {
				if !strings.Contains(said.Stdout(), w) {
					t.Errorf("%s: %q is not said", include, w)
				}
			}
		}
		told("shop.*", "unfinished_run", "is refused", "open_sessions")
		told("other.*", "unfinished_run", "not selected here")
		p.Kill9()
		m.Release(harness.HoldStartTaken)
		m.RequireResume()
		requireSame(t, m)
	}, families...)
}

// A table that somebody makes on the target beside the run is not the run's: it
// is never dropped.
func TestTableAppearsWhileOthersAreMade(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Exec(t, source, "CREATE DATABASE two; CREATE TABLE two.a (id INT PRIMARY KEY); CREATE TABLE two.b (id INT PRIMARY KEY)")
		m := harness.New(t, source, target, harness.Config{Include: []string{"two.*"}, Build: harness.HoldPoints})
		m.Hold("table_made:two.a")
		p := m.Start()
		m.WaitReached(p, "table_made:two.a")
		testdb.Exec(t, target, "CREATE TABLE two.b (theirs INT PRIMARY KEY); INSERT INTO two.b VALUES (7)")
		m.Release("table_made:two.a")
		p.RequireExit(harness.RunTimeout, 3)
		if !strings.Contains(p.Stderr(), "the table has appeared on the target") {
			t.Errorf("it is not said: %s", p.Stderr())
		}
		if p := m.Resume(); p.ExitCode() != 3 {
			t.Errorf("exit code %d of the resume", p.ExitCode())
		}
		if got := testdb.Value(t, target, "SELECT theirs FROM two.b"); got != "7" {
			t.Errorf("the table that appeared has %q", got)
		}
		testdb.Exec(t, target, "DROP TABLE two.b")
		m.RequireResume()
		testdb.RequireEqual(t, source, target, []string{"two"})
	}, families...)
}
