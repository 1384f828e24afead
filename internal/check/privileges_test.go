package check

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
)

func account(t *testing.T, srv *servers.Server, user string, grants ...string) {
	t.Helper()
	testdb.Exec(t, srv, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY 'secret-x'", user))
	for _, g := range grants {
		testdb.Exec(t, srv, g)
	}
}

// missingSourceGrants: accounts that lack one grant each get an error that
// names it; see case 76.
func missingSourceGrants(t *testing.T, source, target *servers.Server) {
	testdb.Exec(t, source, "CREATE DATABASE b76; CREATE TABLE b76.t (id INT PRIMARY KEY); CREATE TABLE b76.u (id INT PRIMARY KEY, a INT, b INT)")
	monitor := "REPLICATION CLIENT"
	if source.Kind.IsMariaDB() {
		monitor = "BINLOG MONITOR"
	}
	const on = " ON *.* TO "
	account(t, source, "no_client", "GRANT SELECT, REPLICATION SLAVE"+on+"no_client")
	account(t, source, "no_slave", "GRANT SELECT, REPLICATION CLIENT"+on+"no_slave")
	account(t, source, "no_select", "GRANT REPLICATION SLAVE, REPLICATION CLIENT"+on+"no_select")
	account(t, source, "one_table", "GRANT REPLICATION SLAVE, REPLICATION CLIENT"+on+"one_table", "GRANT SELECT ON b76.t TO one_table", "GRANT INSERT ON b76.u TO one_table")
	account(t, source, "one_column", "GRANT REPLICATION SLAVE, REPLICATION CLIENT"+on+"one_column", "GRANT SELECT ON b76.t TO one_column", "GRANT SELECT (id, a) ON b76.u TO one_column")
	for _, c := range []struct {
		user, id string
		parts    []string
	}{
		{"no_client", "source_replication_client", []string{"GRANT " + monitor + " ON *.* TO 'no_client'@'%'"}},
		{"no_slave", "source_replication_slave", []string{"GRANT REPLICATION SLAVE ON *.* TO 'no_slave'@'%'"}},
		{"no_select", "nothing_selected", []string{"GRANT SELECT ON `b76`.* TO 'no_select'@'%'"}},
		{"no_select", "not_visible", []string{"b76.t"}},
		{"one_table", "source_select", []string{"b76.u", "GRANT SELECT"}},
		{"one_column", "source_select", []string{"b76.u", "GRANT SELECT"}},
	} {
		t.Run(c.user, func(t *testing.T) {
			in := input(t, source, target, "b76.*")
			in.Source = connTo(t, "source", source, c.user, "secret-x")
			in.Literal = []table.Name{{Database: "b76", Table: "t"}}
			found := run(t, in)
			want(t, found, SeverityError, c.id, c.parts...)
			if strings.Contains(show(found), "secret-x") || strings.Contains(show(found), "PASSWORD") {
				t.Errorf("a secret is shown:\n%s", show(found))
			}
			for _, f := range found {
				if f.Severity == SeverityError && f.ID != c.id && f.ID != "nothing_selected" && f.ID != "not_visible" {
					t.Errorf("unwanted %s: %s", f.ID, f.Message)
				}
			}
		})
	}
}

// missingTargetGrants takes one of the needed privileges away at a time.
func missingTargetGrants(t *testing.T, source, target *servers.Server) {
	testdb.Exec(t, source, "CREATE DATABASE shop_1; CREATE TABLE shop_1.t (id INT PRIMARY KEY)")
	for i, missing := range targetPrivileges {
		user := fmt.Sprintf("u%d", i)
		rest := slices.DeleteFunc(slices.Clone(targetPrivileges), func(p string) bool { return p == missing })
		account(t, target, user, "GRANT "+strings.Join(rest, ", ")+" ON `shop\\_1`.* TO "+user,
			"GRANT "+strings.Join(targetPrivileges, ", ")+" ON `\\_copydb`.* TO "+user)
		in := input(t, source, target, "shop_1.*")
		in.Target = connTo(t, "target", target, user, "secret-x")
		found := run(t, in)
		if missing == "TRIGGER" {
			want(t, found, SeverityWarning, "target_trigger_right", "shop_1")
			wantNoErrors(t, found)
			continue
		}
		want(t, found, SeverityError, "target_rights", "lacks "+missing+" on database shop_1", "GRANT "+missing+" ON `shop\\_1`.* TO '"+user+"'@'%'")
	}
	in := input(t, source, target, "shop_1.*")
	in.Target, in.SQLLogBin = connTo(t, "target", target, "u0", "secret-x"), false
	want(t, run(t, in), SeverityError, "target_sql_log_bin", logBinPrivilege(mustVersion(t, in)))
}

func mustVersion(t *testing.T, in *Input) mysqlconn.Version {
	t.Helper()
	id, err := in.Target.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id.Version
}

// roles: privileges that come through a role count.
func roles(t *testing.T, source, target *servers.Server) {
	testdb.Exec(t, source, "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)")
	activate := "SET DEFAULT ROLE copier TO via_role"
	if source.Kind.IsMariaDB() {
		activate = "SET DEFAULT ROLE copier FOR via_role"
	}
	account(t, source, "via_role", "CREATE ROLE copier", "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO copier", "GRANT copier TO via_role", activate)
	account(t, target, "via_role", "CREATE ROLE copier", "GRANT ALL ON `sho%`.* TO copier", "GRANT ALL ON `_copydb`.* TO copier", "GRANT copier TO via_role", activate)
	in := input(t, source, target, "shop.*")
	in.Source, in.Target = connTo(t, "source", source, "via_role", "secret-x"), connTo(t, "target", target, "via_role", "secret-x")
	wantNoErrors(t, run(t, in))
}

// printedGrants: accounts that are made with the printed statements have
// nothing missing, and can do what a copy does.
func printedGrants(t *testing.T, source, target *servers.Server) {
	testdb.Exec(t, source, "CREATE DATABASE shop_2; CREATE TABLE shop_2.t (id INT PRIMARY KEY, p INT); CREATE DATABASE `o'd``d%`; CREATE TABLE `o'd``d%`.t (id INT PRIMARY KEY)")
	include := []string{"shop_2.*", "`o'd``d%`.*"}
	account(t, source, "little")
	account(t, target, "little")
	plan := input(t, source, target, include...)
	plan.SQLLogBin, plan.FastLoad = false, !target.Kind.IsMariaDB()
	run(t, plan)
	plan.Facts.Source.Account, plan.Facts.Target.Account = "'little'@'%'", "'little'@'%'"
	atSource, atTarget := Grants(plan)
	for _, g := range atSource {
		testdb.Exec(t, source, g)
	}
	for _, g := range atTarget {
		testdb.Exec(t, target, g)
	}
	in := input(t, source, target, include...)
	in.SQLLogBin, in.FastLoad = false, plan.FastLoad
	in.Source, in.Target = connTo(t, "source", source, "little", "secret-x"), connTo(t, "target", target, "little", "secret-x")
	found := run(t, in)
	for _, f := range found {
		if f.ID == "fast_load" && in.FastLoad {
			continue // what it risks
		}
		if f.Severity != SeverityInfo || strings.Contains(f.Fix, "GRANT") && f.ID != "left_out_unseen" {
			t.Errorf("unwanted %s %s: %s", f.Severity, f.ID, f.Message)
		}
	}
	if len(in.Facts.Tables) != 2 || in.Facts.Rung != plan.Facts.Rung {
		t.Errorf("tables %v, rung %s", in.Facts.Tables, in.Facts.Rung)
	}
	sufficient(t, in, source)
}

// sufficient runs the kinds of statements that a copy needs.
func sufficient(t *testing.T, in *Input, source *servers.Server) {
	t.Helper()
	src, err := in.Source.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	read := []string{"SHOW BINARY LOGS", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT * FROM shop_2.t", "SHOW CREATE TABLE shop_2.t",
		"XA RECOVER", "ROLLBACK", "SHOW PROCESSLIST"}
	if in.Facts.Rung == position.RungFlush {
		read = append(read, "FLUSH BINARY LOGS")
	}
	if source.Kind.IsMariaDB() {
		read = append(read, "SELECT * FROM information_schema.INNODB_SYS_TABLES LIMIT 1", "SELECT BINLOG_GTID_POS('binlog.000001', 4)")
	} else {
		read = append(read, "SELECT * FROM information_schema.INNODB_TABLES LIMIT 1")
	}
	for _, q := range read {
		if _, err := src.QueryMaps(t.Context(), q); err != nil {
			t.Errorf("source: %s: %v", q, err)
		}
	}
	tgt, err := in.Target.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tgt.Close()
	for _, q := range []string{"SET SESSION sql_log_bin = 0", "CREATE DATABASE `_copydb`", "CREATE TABLE `_copydb`.e (id INT PRIMARY KEY, v INT)", "CREATE DATABASE shop_2",
		"CREATE TABLE shop_2.t (id INT PRIMARY KEY, p INT)", "START TRANSACTION", "SELECT * FROM `_copydb`.e LOCK IN SHARE MODE", "REPLACE INTO shop_2.t VALUES (1, 1)",
		"INSERT INTO `_copydb`.e VALUES (1, 1) ON DUPLICATE KEY UPDATE v = 2", "DELETE FROM shop_2.t WHERE id = 2", "COMMIT", "CREATE INDEX k ON shop_2.t (p)",
		"ALTER TABLE shop_2.t ADD CONSTRAINT fk FOREIGN KEY (p) REFERENCES shop_2.t (id)", "TRUNCATE TABLE `_copydb`.e", "DROP TABLE shop_2.t", "DROP DATABASE shop_2", "DROP DATABASE `_copydb`"} {
		if _, err := tgt.Exec(t.Context(), q); err != nil {
			t.Errorf("target: %s: %v", q, err)
		}
	}
	readLog(t, source)
}

// readLog lets the server's own tool read the binary log over the network.
func readLog(t *testing.T, source *servers.Server) {
	t.Helper()
	argv := append(source.Tool("mysqlbinlog"), "--no-defaults", "--read-from-remote-server", "--host="+source.Host, fmt.Sprint("--port=", source.Port),
		"--user=little", "--password=secret-x", "--result-file="+t.TempDir()+"/log", "binlog.000001")
	if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Errorf("read the binary log: %v\n%s", err, out)
	}
}

// variants are the cases that docs/privileges.md shows.
func variants(t *testing.T) []*Input {
	t.Helper()
	var out []*Input
	for _, v := range []struct{ version, gtid string }{{"8.4.0", "ON"}, {"8.4.0", "OFF"}, {"11.8.2-MariaDB", ""}} {
		version, err := mysqlconn.ParseVersion(v.version)
		if err != nil {
			t.Fatal(err)
		}
		facts := ServerFacts{Identity: mysqlconn.Identity{Version: version}, Account: "'copydb'@'%'", Variables: map[string]string{"gtid_mode": v.gtid}}
		out = append(out, &Input{AllowLocks: true, FastLoad: true, Replicas: []*mysqlconn.Server{nil}, Literal: []table.Name{{Database: "shop"}}, Facts: Facts{Source: facts, Target: facts}})
	}
	return out
}

// TestPrivilegesDoc: the document shows exactly the statements that are printed.
func TestPrivilegesDoc(t *testing.T) {
	text, err := os.ReadFile("../../docs/privileges.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?m)^GRANT .*[^;\n]").FindAllString(string(text), -1)
	var printed []string
	for _, in := range variants(t) {
		source, target := Grants(in)
		printed = append(append(printed, source...), target...)
	}
	for _, g := range printed {
		if !slices.Contains(shown, g) {
			t.Errorf("docs/privileges.md lacks: %s", g)
		}
	}
	for _, g := range shown {
		if !slices.Contains(printed, g) {
			t.Errorf("docs/privileges.md has what is never printed: %s", g)
		}
	}
}

func TestGrantsOfNothingKnown(t *testing.T) {
	source, target := Grants(&Input{SQLLogBin: true, Facts: Facts{Source: ServerFacts{Account: "'a'@'%'"}, Target: ServerFacts{Account: "'a'@'%'"}}})
	if len(source) != 2 || source[1] != "GRANT SELECT ON *.* TO 'a'@'%'" || len(target) != 1 || !strings.HasSuffix(target[0], " ON *.* TO 'a'@'%'") {
		t.Errorf("%q %q", source, target)
	}
}
