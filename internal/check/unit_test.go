package check

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

func TestGrantLines(t *testing.T) {
	g := grants{}
	for _, line := range []string{
		"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*AB ON CD'",
		"GRANT XA_RECOVER_ADMIN,PROCESS ON *.* TO `u`@`%`",
		"GRANT SELECT, INSERT ON `sh\\_p%`.* TO `u`@`%` WITH GRANT OPTION",
		"GRANT ALL PRIVILEGES ON `a`` ON b`.* TO `u`@`%`",
		"GRANT DELETE ON `shop`.`t` TO `u`@`%`",
		"GRANT UPDATE (`a`, `b`) ON `shop`.`t` TO `u`@`%`",
		"GRANT `role`@`%` TO `u`@`%`",
		"GRANT PROXY ON ``@`` TO `u`@`%`",
		"REVOKE INSERT ON `sh_p2`.* FROM `u`@`%`",
		"SET DEFAULT ROLE `r1` FOR `u`@`%`",
	} {
		g.add(line)
	}
	for _, c := range []struct {
		db, privilege string
		want          bool
	}{
		{"", "REPLICATION CLIENT", true}, {"", "REPLICATION SLAVE", true}, {"", "XA_RECOVER_ADMIN", true}, {"", "PROCESS", true}, {"", "SELECT", false},
		{"sh_p", "SELECT", true}, {"sh_p1", "INSERT", true}, {"shop", "SELECT", false}, {"shop", "DELETE", false}, {"shop", "UPDATE", false},
		{"sh_p2", "SELECT", true}, {"sh_p2", "INSERT", false}, {"a` ON b", "DROP", true},
	} {
		if got := g.on(c.db, c.privilege); got != c.want {
			t.Errorf("%s on %q: %v", c.privilege, c.db, got)
		}
	}
}

func TestLike(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"%", "", true}, {"%", "abc", true}, {"a%c", "abbc", true}, {"a%c", "abb", false}, {"_", "名", true}, {"a_", "a", false},
		{`a\_`, "a_", true}, {`a\_`, "ab", false}, {`a\%`, "ab", false}, {`\\`, `\`, true}, {"", "", true}, {"", "a", false}, {"%%a", "a", true},
	} {
		if got := like(c.pattern, c.name); got != c.want {
			t.Errorf("like(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

func TestQuoteAccount(t *testing.T) {
	for in, want := range map[string]string{"u@h": "'u'@'h'", "a@b@%": "'a@b'@'%'", "o'x@h": `'o\'x'@'h'`, "@": "''@''"} {
		if got := quoteAccount(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestCapped(t *testing.T) {
	var all []Finding
	for i := range maxAlike + 15 {
		all = append(all, Finding{ID: "a", Severity: SeverityError, Object: fmt.Sprint("t", i), Fix: "fix"}, Finding{ID: "a", Severity: SeverityInfo})
	}
	all = append(all, Finding{ID: "b", Severity: SeverityError})
	got := capped(all)
	if len(got) != 2*maxAlike+3 || got[len(got)-1].ID != "b" {
		t.Fatalf("%d findings", len(got))
	}
	n := 0
	for _, f := range got {
		if strings.Contains(f.Message, "15 more") {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d summaries", n)
	}
}

func TestSessionDependent(t *testing.T) {
	tbl := &table.Table{Columns: []table.Column{{Name: "ts", Type: "timestamp"}, {Name: "now", Type: "int"}, {Name: "d", Type: "datetime"}}}
	for text, want := range map[string]string{
		"concat(`ts`)": "TIMESTAMP column ts", "`now` + 1": "", "'now()' <> `d`": "", "unix_timestamp(`d`)": "UNIX_TIMESTAMP()",
		"current_timestamp": "CURRENT_TIMESTAMP()", "concat(user(),'')": "USER()", "@@sql_mode": "a variable", "year(`d`)": "",
		"'it''s @x \\' now()'": "", "date_format(`d`,'%W')": "DATE_FORMAT()", "known(1)": "",
	} {
		if got := sessionDependent(tbl, text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestDefaultOf(t *testing.T) {
	for text, want := range map[string]string{
		"int DEFAULT NULL": "NULL", "datetime DEFAULT current_timestamp() ON UPDATE current_timestamp()": "",
		"timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP(6)": "", "int NOT NULL": "", "varchar(20) DEFAULT concat(user(),'') COMMENT ''": "concat(user(),'')",
	} {
		if got := defaultOf(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestBefore(t *testing.T) {
	at := func(file string, pos uint64) state.Position { return state.Position{File: file, Pos: pos} }
	for _, c := range []struct {
		a, b   state.Position
		is, ok bool
	}{
		{at("b.000009", 9), at("b.000010", 4), true, true}, {at("b.000010", 4), at("b.000010", 4), false, true},
		{at("b.999999", 4), at("b.1000000", 4), true, true}, {at("b.000011", 4), at("b.000010", 9), false, true},
		{at("a.000001", 4), at("b.000010", 4), false, false}, {at("b", 4), at("b.000010", 4), false, false},
	} {
		if is, ok := before(c.a, c.b); is != c.is || ok != c.ok {
			t.Errorf("%s %s: %v %v", c.a, c.b, is, ok)
		}
	}
}

func TestParseMariaDB(t *testing.T) {
	got, err := parseMariaDB("0-1-100, 1-2-3,0-9-90")
	if err != nil || len(got) != 2 || got[0] != 100 || got[1] != 3 {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"x", "0-1", "0-1-2x", "0-1-2-3"} {
		if _, err := parseMariaDB(bad); err == nil {
			t.Errorf("%s parses", bad)
		}
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]Severity{"5.6.51": SeverityError, "5.7.44-log": SeverityWarning, "8.0.11": "", "9.7.4": "",
		"10.2.44-MariaDB": SeverityError, "5.5.5-10.4.30-MariaDB": SeverityWarning, "10.5.0-MariaDB": "", "11.8.2-MariaDB": ""} {
		v, err := mysqlconn.ParseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		r := &runner{}
		r.version(&side{name: "source", facts: &ServerFacts{Identity: mysqlconn.Identity{Version: v}}})
		var got Severity
		if len(r.found) > 0 {
			got = r.found[0].Severity
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestRetention(t *testing.T) {
	for _, c := range []struct {
		variables map[string]string
		want      time.Duration
	}{
		{map[string]string{"binlog_expire_logs_seconds": "60", "binlog_expire_logs_auto_purge": "ON"}, time.Minute},
		{map[string]string{"binlog_expire_logs_seconds": "60", "binlog_expire_logs_auto_purge": "OFF"}, 0},
		{map[string]string{"expire_logs_days": "0.5"}, 12 * time.Hour},
		{map[string]string{"binlog_expire_logs_seconds": "0", "expire_logs_days": "0"}, 0},
	} {
		s := &side{facts: &ServerFacts{Variables: c.variables}}
		if got := s.retention(); got != c.want {
			t.Errorf("%v: %s", c.variables, got)
		}
	}
}

// TestUnloggedCascades: which servers carry cascades out below their log.
func TestUnloggedCascades(t *testing.T) {
	for _, c := range []struct {
		version, native string
		want            bool
	}{{"8.4.0", "", true}, {"9.7.4", "OFF", false}, {"9.7.4", "ON", true}, {"11.8.2-MariaDB", "", true}} {
		v, err := mysqlconn.ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		s := &side{facts: &ServerFacts{Identity: mysqlconn.Identity{Version: v}, Variables: map[string]string{}}}
		if c.native != "" {
			s.facts.Variables["innodb_native_foreign_keys"] = c.native
		}
		if got := s.cascadesUnlogged(); got != c.want {
			t.Errorf("%s %s: %v", c.version, c.native, got)
		}
	}
}

// Large tables with AUTO_INCREMENT go by INSERT where LOAD DATA would let one
// writer at a time write them, and the target has the processors for more.
func TestAutoIncrementLock(t *testing.T) {
	counted := []table.Column{{Name: "id", AutoInc: true}}
	key := []table.Key{{Name: "PRIMARY", Columns: []table.KeyColumn{{Name: "id"}}}}
	tables := []*table.Table{
		{Table: "large", Engine: "InnoDB", Columns: counted, Keys: key, Bytes: sharedBytes},
		{Table: "small", Engine: "InnoDB", Columns: counted, Keys: key, Bytes: sharedBytes - 1},
		{Table: "plain", Engine: "InnoDB", Columns: []table.Column{{Name: "id"}}, Keys: key, Bytes: sharedBytes},
		{Table: "exact", Engine: "InnoDB", Columns: counted, Bytes: sharedBytes},
		{Table: "aria", Engine: "Aria", Columns: counted, Keys: key, Bytes: sharedBytes},
	}
	mariadb := map[string]string{"innodb_autoinc_lock_mode": "1", "thread_pool_size": "4"}
	for _, c := range []struct {
		name    string
		flavor  mysqlconn.Flavor
		changed string // a variable and its value
		threads int
		method  string
		want    int
	}{
		{"mariadb", mysqlconn.MariaDB, "", 0, "auto", 1},
		{"mysql", mysqlconn.MySQL, "", 0, "auto", 0},
		{"mode 2", mysqlconn.MariaDB, "innodb_autoinc_lock_mode 2", 0, "auto", 0},
		{"mode 0", mysqlconn.MariaDB, "innodb_autoinc_lock_mode 0", 2, "auto", 1},
		{"two processors", mysqlconn.MariaDB, "thread_pool_size 2", 0, "auto", 0},
		{"one thread", mysqlconn.MariaDB, "", 1, "auto", 0},
		{"asked for", mysqlconn.MariaDB, "", 0, "load_data", 0},
	} {
		variables := maps.Clone(mariadb)
		if name, value, ok := strings.Cut(c.changed, " "); ok {
			variables[name] = value
		}
		in := &Input{LoadMethod: c.method, Threads: c.threads, Facts: Facts{LoadMethod: "load_data", Tables: tables}}
		r := &runner{in: in, target: &side{facts: &ServerFacts{Variables: variables, Identity: mysqlconn.Identity{Version: mysqlconn.Version{Flavor: c.flavor}}}}}
		if err := checkAutoIncrementLock(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if len(in.Facts.Inserted) != c.want || c.want == 1 && (!in.Facts.Inserted[tables[0].FullName()] || !strings.Contains(in.Facts.LoadReason, "insert (1)")) {
			t.Errorf("%s: %v, %q", c.name, in.Facts.Inserted, in.Facts.LoadReason)
		}
	}
}
