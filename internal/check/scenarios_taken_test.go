package check

import (
	"testing"
	"time"

	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

func ruled(rule string) func(*Input) { return func(in *Input) { in.ExistingTables = rule } }

// takenScenarios: tables that the target has and may be used, and what tables
// need that is not part of them.
var takenScenarios = []scenario{
	{name: "used", target: "CREATE DATABASE used; CREATE TABLE used.t (id INT PRIMARY KEY, v VARCHAR(10))", change: ruled(RuleUseEmpty),
		id: "existing_used", severity: SeverityInfo},
	{name: "used_full", target: "CREATE DATABASE used_full; CREATE TABLE used_full.t (id INT PRIMARY KEY, v VARCHAR(10)); INSERT INTO used_full.t VALUES (1,'x'),(2,'y')", change: ruled(RuleUseEmpty),
		id: "existing_not_empty", severity: SeverityError, parts: []string{"2 rows"}},
	{name: "used_other", target: "CREATE DATABASE used_other; CREATE TABLE used_other.t (v VARCHAR(10) NOT NULL, id INT PRIMARY KEY, KEY (v))", change: ruled(RuleUseEmpty),
		id: "existing_differs", severity: SeverityError, parts: []string{"ALTER TABLE `used_other`.`t` DROP INDEX `v`, MODIFY COLUMN `v` varchar(10)"}, also: []string{"existing_used", "existing_options"}},
	{name: "used_charset", target: "CREATE DATABASE used_charset; CREATE TABLE used_charset.t (id INT PRIMARY KEY, v VARCHAR(10)) CHARACTER SET koi8r", change: ruled(RuleTruncate),
		id: "existing_differs", severity: SeverityError, parts: []string{"koi8r_general_ci", "MODIFY COLUMN `v` varchar(10) CHARACTER SET"}, also: []string{"existing_truncated", "existing_options"}},
	{name: "used_engine", target: "CREATE DATABASE used_engine; CREATE TABLE used_engine.t (id INT PRIMARY KEY, v VARCHAR(10) DEFAULT 'x') ENGINE=MyISAM COMMENT 'c'", change: ruled(RuleUseEmpty),
		id: "existing_options", severity: SeverityWarning, parts: []string{"engine MyISAM", "column v", "table options"}, also: []string{"existing_used"}},
	{name: "emptied", target: "CREATE DATABASE emptied; CREATE TABLE emptied.t (id INT PRIMARY KEY, v VARCHAR(10)); INSERT INTO emptied.t VALUES (1,'x')", change: ruled(RuleTruncate),
		id: "existing_truncated", severity: SeverityWarning, parts: []string{"1 row "}},
	{name: "renewed", target: "CREATE DATABASE renewed; CREATE TABLE renewed.t (x INT); INSERT INTO renewed.t VALUES (1); CREATE TRIGGER renewed.tr BEFORE INSERT ON renewed.t FOR EACH ROW SET NEW.x = 1", change: ruled(RuleRecreate),
		id: "existing_recreated", severity: SeverityWarning, parts: []string{"1 row"}, also: []string{"target_trigger"}},
	{name: "renewed_view", target: "CREATE DATABASE renewed_view; CREATE VIEW renewed_view.t AS SELECT 1", change: ruled(RuleRecreate),
		id: "existing_table", severity: SeverityError, parts: []string{"view renewed_view.t"}},
	{name: "child", target: "CREATE DATABASE child; CREATE TABLE child.t (id INT PRIMARY KEY, v VARCHAR(10)); CREATE TABLE child.c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES child.t (id))", change: ruled(RuleRecreate),
		id: "foreign_child", severity: SeverityError, parts: []string{"child.c"}, also: []string{"existing_recreated"}},
	{name: "child_emptied", target: "CREATE DATABASE child_emptied; CREATE TABLE child_emptied.t (id INT PRIMARY KEY, v VARCHAR(10)); CREATE TABLE child_emptied.c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES child_emptied.t (id))", change: ruled(RuleTruncate),
		id: "foreign_child", severity: SeverityWarning, parts: []string{"child_emptied.c"}, also: []string{"existing_truncated"}},
	{name: "taken_resume", target: "CREATE DATABASE taken_resume; CREATE TABLE taken_resume.t (id INT PRIMARY KEY, v VARCHAR(10)); INSERT INTO taken_resume.t VALUES (1,'x')",
		change: func(in *Input) {
			in.ExistingTables = RuleUseEmpty
			in.Resume = &Resume{Created: []state.Object{{Type: "used_table", Database: "taken_resume", Name: "t"}}}
		}},
	{name: "taken_replaced", target: "CREATE DATABASE taken_replaced; CREATE TABLE taken_replaced.t (id INT PRIMARY KEY, v VARCHAR(10)); INSERT INTO taken_replaced.t VALUES (1,'x')",
		change: func(in *Input) {
			in.Replaced = []state.Object{{Type: "used_table", Database: "taken_replaced", Name: "t"}}
		},
		id: "existing_table", severity: SeverityError},
	{name: "nextval", kinds: onMariaDB, source: "CREATE SEQUENCE nextval.s; CREATE TABLE nextval.n (id INT PRIMARY KEY DEFAULT (NEXT VALUE FOR nextval.s), v VARCHAR(20) DEFAULT 'nextval(`no`)')",
		id: "sequence", severity: SeverityError, parts: []string{"nextval.s", "nextval.n", "SHOW CREATE SEQUENCE"}, also: []string{"left_out_sequence"}},
	{name: "nextval_there", kinds: onMariaDB, source: "CREATE SEQUENCE nextval_there.s; CREATE TABLE nextval_there.n (id INT PRIMARY KEY DEFAULT (NEXT VALUE FOR nextval_there.s))",
		target: "CREATE DATABASE nextval_there; CREATE SEQUENCE nextval_there.s", id: "sequence_value", severity: SeverityWarning, parts: []string{"SETVAL"}, also: []string{"left_out_sequence"}},
	{name: "merge", source: "CREATE TABLE merge.m (id INT PRIMARY KEY) ENGINE=MyISAM; CREATE TABLE merge.u (id INT PRIMARY KEY) ENGINE=MERGE UNION=(merge.m)",
		id: "merge_table", severity: SeverityError, parts: []string{"merge.u"}, also: []string{"non_transactional"}},
	{name: "general_space", kinds: onMySQL, source: "CREATE TABLESPACE cdb_ts ADD DATAFILE 'cdb_ts.ibd'; CREATE TABLE general_space.x (id INT PRIMARY KEY) TABLESPACE cdb_ts",
		id: "tablespace", severity: SeverityError, parts: []string{"cdb_ts", "general_space.x"}},
	{name: "target_zone", kinds: onMariaDB, target: "SET GLOBAL time_zone = '+03:00'", undoTarget: "SET GLOBAL time_zone = SYSTEM"},
	{name: "huge", source: "CREATE TABLE huge.l (id INT PRIMARY KEY, v LONGTEXT)", id: "max_allowed_packet", severity: SeverityInfo, parts: []string{"huge.l"}},
}

func TestCopyTime(t *testing.T) {
	if d := copyTime(10, 100<<30); d < time.Hour || d > 24*time.Hour {
		t.Errorf("100 GiB: %s", d)
	}
	if d := copyTime(1e9, 1); d < time.Hour || d > 24*time.Hour {
		t.Errorf("10^9 rows: %s", d)
	}
	f := Facts{Rows: 1e9, Bytes: 1}
	r := &runner{in: &Input{Facts: f}, source: &side{facts: &ServerFacts{Variables: map[string]string{"binlog_expire_logs_seconds": "600"}}}}
	if err := checkForecast(t.Context(), r); err != nil || len(r.found) != 1 {
		t.Errorf("%v %v", r.found, err)
	}
}

func TestFolders(t *testing.T) {
	r := &runner{in: &Input{}, target: &side{facts: &ServerFacts{Variables: map[string]string{"innodb_directories": "/a/b;/c/", "datadir": "/data/"}}}}
	for dir, known := range map[string]bool{"/a/b": true, "/a/b/c": true, "/a/bc": false, "/c": true, "/data/x": true, "/d": false} {
		tail := ") ENGINE=InnoDB DATA DIRECTORY='" + dir + "'"
		r.found = nil
		r.directories(&table.Table{Database: "a", Table: "t", Engine: "InnoDB"}, tail)
		if len(r.found) != 1 || (r.found[0].Severity == SeverityWarning) != known {
			t.Errorf("%s: %v", dir, r.found)
		}
	}
}

// TestEncryptedTables: how the servers print encrypted tables.
func TestEncryptedTables(t *testing.T) {
	for tail, want := range map[string]bool{") ENGINE=InnoDB ENCRYPTION='Y'": true, ") ENGINE=InnoDB /*!80016 ENCRYPTION='N' */": false,
		") ENGINE=InnoDB `ENCRYPTED`=YES `ENCRYPTION_KEY_ID`=1": true, ") ENGINE=InnoDB": false} {
		if encrypted.MatchString(tail) != want {
			t.Errorf("%s: %v", tail, !want)
		}
	}
}
