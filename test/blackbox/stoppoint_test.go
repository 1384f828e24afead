package blackbox

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// end returns where the source's log ends: as file and position, and as a GTID
// set, empty without GTIDs.
func end(t *testing.T, srv *servers.Server) (file, gtids string) {
	t.Helper()
	query := "SHOW BINARY LOG STATUS"
	if srv.Kind.IsMariaDB() {
		query = "SHOW MASTER STATUS"
	}
	rows, err := srv.DB().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	row, into := make([]string, len(columns)), make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	if !rows.Next() {
		t.Fatalf("%s has no row: %v", query, rows.Err())
	}
	if err := rows.Scan(into...); err != nil {
		t.Fatal(err)
	}
	switch srv.Kind {
	case servers.MySQL:
		gtids = strings.ReplaceAll(testdb.Value(t, srv, "SELECT @@global.gtid_executed"), "\n", "")
	case servers.MariaDB1011, servers.MariaDB118:
		gtids = testdb.Value(t, srv, "SELECT @@global.gtid_binlog_pos")
	}
	return row[0] + ":" + row[1], gtids
}

// A given stop point is exact: what was written before it is there, what was
// written after it is not. never ends by a signal only.
func TestStopPoints(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "shop", 2, 20)
		m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}})
		m.RequireRun()
		ids := "SELECT CONCAT(COUNT(*), ' ', MAX(id)) FROM shop.load1"
		for round, byGTID := range []bool{false, true} {
			after := strconv.Itoa(200_000 + round)
			testdb.Exec(t, source, "INSERT INTO shop.load1 (k) VALUES (1), (2); DELETE FROM shop.load2 LIMIT 1")
			file, gtids := end(t, source)
			want := testdb.Value(t, source, ids)
			testdb.Exec(t, source, "INSERT INTO shop.load1 (k) VALUES (3); UPDATE shop.load1 SET k = "+after)
			until := "file:" + file
			if byGTID {
				if gtids == "" {
					continue
				}
				until = "gtid:" + gtids
			}
			p := m.RequireResume("--json", "--until", until)
			if got := testdb.Value(t, target, ids); got != want {
				t.Errorf("round %d, %s: the target has %s, want %s", round, until, got, want)
			}
			if n := testdb.Value(t, target, "SELECT COUNT(*) FROM shop.load1 WHERE k = "+after); n != "0" {
				t.Errorf("%s: %s rows of after the stop point", until, n)
			}
			stop := p.Last("summary").Position("stop_point")
			if at := fmt.Sprintf("%s:%d", stop.File, stop.Pos); at != file && stop.GTIDSet != gtids {
				t.Errorf("%s: stop point %+v, want %s or %s", until, stop, file, gtids)
			}
			m.RequireResume() // up to the source's end
			testdb.RequireEqual(t, source, target, []string{"shop"})
		}
		p := m.StartResume("--json", "--until", "never")
		testdb.Exec(t, source, "INSERT INTO shop.load1 (pad) VALUES ('x')")
		arrives(t, p, source, target, "shop")
		stopRun(t, p, syscall.SIGINT, 130)
		finish(t, m, nil, []string{"shop"})
	})
}

// A stop point that lies before what the snapshot saw is refused; one that is no
// position is a usage error.
func TestStopPointsThatCannotBe(t *testing.T) {
	source, target := sharedPair(t, servers.MySQL)
	testdb.CreateLoadTables(t, source, "shop", 1, 20)
	file, _ := end(t, source)
	testdb.Exec(t, source, "FLUSH BINARY LOGS; INSERT INTO shop.load1 (k) VALUES (1)")
	m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}})
	p := m.Run("--until", "file:"+file)
	if p.ExitCode() == 0 || !strings.Contains(p.Stderr(), "stop point") && !strings.Contains(p.Stderr(), "until") {
		t.Errorf("exit code %d", p.ExitCode())
	}
	for _, wrong := range []string{"file:", "file:x", "gtid:", "soon", "cutover"} {
		m.Command().Start(t, m.ResumeArgs("--until", wrong)...).RequireExit(time.Minute, 64)
	}
}

var position = regexp.MustCompile(`\b\w+\.\d{6}:\d+\b`)

// A DDL on a selected table stops the run at its position, again and again,
// until it is passed over.
func TestDDLStops(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "shop", 2, 20)
		m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}})
		m.RequireRun()
		const ddl = "ALTER TABLE shop.load1 ADD COLUMN more INT NOT NULL DEFAULT 5"
		testdb.Exec(t, source, "UPDATE shop.load2 SET k = 1 WHERE id = 1; "+ddl+"; INSERT INTO shop.load1 (k, more) VALUES (1, 7)")
		where := ""
		for range 3 {
			p := m.Resume()
			at := position.FindString(p.Stderr()[max(strings.Index(p.Stderr(), "error: "), 0):])
			if p.ExitCode() != 7 || !strings.Contains(p.Stderr(), ddl) || at == "" || where != "" && at != where {
				t.Fatalf("exit code %d, position %q, before %q", p.ExitCode(), at, where)
			}
			where = at
			requireReleased(t, source, "shop")
		}
		if k := testdb.Value(t, target, "SELECT k FROM shop.load2 WHERE id = 1"); k != "1" {
			t.Error("what comes before the DDL is not applied")
		}
		testdb.Exec(t, target, ddl)
		p := m.Resume("--set", "catch_up.ddl=ignore")
		t.Logf("passed over: exit code %d", p.ExitCode())
		if p.ExitCode() == 0 {
			testdb.RequireEqual(t, source, target, []string{"shop"})
		} else if p.ExitCode() != 7 || !strings.Contains(p.Stderr(), "more") { // a changed structure is a later issue's
			t.Errorf("exit code %d", p.ExitCode())
		}
	})
}

// A DDL that changes no structure is passed over with ddl: ignore, and the rows
// after it arrive.
func TestDDLIgnored(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "shop", 2, 20)
		m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}, Extra: []string{"catch_up: {ddl: ignore}"}})
		m.RequireRun()
		testdb.Exec(t, source, "ALTER TABLE shop.load1 COMMENT = 'x'; INSERT INTO shop.load1 (k) VALUES (1); DELETE FROM shop.load2 WHERE id < 4")
		m.RequireResume()
		testdb.Exec(t, target, "ALTER TABLE shop.load1 COMMENT = 'x'")
		testdb.RequireEqual(t, source, target, []string{"shop"})
	}, families...)
}
