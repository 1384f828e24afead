package check

import (
	"slices"
	"testing"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
)

// scenario is something that a check must see. Its database is named like it.
type scenario struct {
	name           string
	kinds          []servers.Kind // nil: all
	source, target string         // SQL before
	undoSource     string         // SQL after
	undoTarget     string
	change         func(*Input)
	id             string
	severity       Severity
	parts          []string // of the finding's text
	also           []string // ids that come with it
}

var (
	onMySQL   = []servers.Kind{servers.MySQL, servers.MySQLNoGTID}
	onMariaDB = []servers.Kind{servers.MariaDB1011, servers.MariaDB118}
)

var scenarios = []scenario{
	{name: "binlog_format", source: "SET GLOBAL binlog_format = MIXED", undoSource: "SET GLOBAL binlog_format = ROW",
		id: "binlog_format", severity: SeverityError, parts: []string{"MIXED"}},
	{name: "row_image", source: "SET GLOBAL binlog_row_image = MINIMAL", undoSource: "SET GLOBAL binlog_row_image = FULL",
		id: "binlog_row_image", severity: SeverityError, parts: []string{"MINIMAL"}},
	{name: "partial_json", kinds: onMySQL, source: "SET GLOBAL binlog_row_value_options = PARTIAL_JSON", undoSource: "SET GLOBAL binlog_row_value_options = ''",
		id: "binlog_row_value_options", severity: SeverityError},
	{name: "gtid_permissive", kinds: []servers.Kind{servers.MySQL}, source: "SET GLOBAL gtid_mode = ON_PERMISSIVE", undoSource: "SET GLOBAL gtid_mode = ON",
		id: "gtid_mode", severity: SeverityError, parts: []string{"ON_PERMISSIVE"}},
	{name: "expiry", source: "SET GLOBAL binlog_expire_logs_seconds = 3600", undoSource: "SET GLOBAL binlog_expire_logs_seconds = 0",
		id: "binlog_expiry", severity: SeverityWarning, parts: []string{"1h0m0s"}},
	{name: "source_sync", source: "SET GLOBAL sync_binlog = 0", undoSource: "SET GLOBAL sync_binlog = 1", id: "source_sync_binlog", severity: SeverityWarning},
	{name: "target_sync", target: "SET GLOBAL sync_binlog = 100", undoTarget: "SET GLOBAL sync_binlog = 1", id: "target_sync_binlog", severity: SeverityWarning},
	{name: "flush", target: "SET GLOBAL innodb_flush_log_at_trx_commit = 2", undoTarget: "SET GLOBAL innodb_flush_log_at_trx_commit = 1",
		id: "target_durability", severity: SeverityWarning},
	{name: "redo", kinds: onMySQL, target: "ALTER INSTANCE DISABLE INNODB REDO_LOG", undoTarget: "ALTER INSTANCE ENABLE INNODB REDO_LOG",
		id: "target_redo_log", severity: SeverityError},
	{name: "redo_ours", kinds: onMySQL, target: "ALTER INSTANCE DISABLE INNODB REDO_LOG", undoTarget: "ALTER INSTANCE ENABLE INNODB REDO_LOG",
		change: func(in *Input) { in.RedoOff = true }},
	{name: "fast", kinds: onMySQL, target: "CREATE DATABASE beside_fast", undoTarget: "DROP DATABASE beside_fast",
		change: func(in *Input) { in.FastLoad = true }, id: "fast_load", severity: SeverityWarning, parts: []string{"does not start again", "beside_fast"}},
	{name: "fast_mariadb", kinds: onMariaDB, change: func(in *Input) { in.FastLoad = true }, id: "fast_load", severity: SeverityError, parts: []string{"MariaDB cannot"}},
	{name: "replicas_unlogged", change: func(in *Input) { in.SQLLogBin, in.Replicas = false, []*mysqlconn.Server{in.Target} }, id: "replica_without_log", severity: SeverityError},
	{name: "xa", source: "CREATE TABLE xa.x (id INT PRIMARY KEY); XA START 'left','over'; INSERT INTO xa.x VALUES (1); XA END 'left','over'; XA PREPARE 'left','over'",
		undoSource: "XA ROLLBACK 'left','over'", id: "xa_prepared", severity: SeverityError, parts: []string{"X'6C656674',X'6F766572',1"}},
	{name: "read_only", target: "SET GLOBAL read_only = ON", undoTarget: "SET GLOBAL read_only = OFF", id: "target_read_only", severity: SeverityError},
	{name: "super_read_only", kinds: onMySQL, target: "SET GLOBAL super_read_only = ON", undoTarget: "SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF",
		id: "target_read_only", severity: SeverityError, parts: []string{"super_read_only"}},
	{name: "load_infile", target: "SET GLOBAL local_infile = OFF", undoTarget: "SET GLOBAL local_infile = ON", change: func(in *Input) { in.LoadMethod = "load_data" },
		id: "local_infile", severity: SeverityError},
	{name: "infile_auto", target: "SET GLOBAL local_infile = OFF", undoTarget: "SET GLOBAL local_infile = ON", id: "local_infile", severity: SeverityInfo},
	{name: "packet", target: "SET GLOBAL max_allowed_packet = 1048576", undoTarget: "SET GLOBAL max_allowed_packet = 67108864",
		id: "max_allowed_packet", severity: SeverityWarning},
	{name: "require_pk", kinds: onMySQL, source: "CREATE TABLE require_pk.nopk (id INT NOT NULL UNIQUE)", target: "SET GLOBAL sql_require_primary_key = ON",
		undoTarget: "SET GLOBAL sql_require_primary_key = OFF", id: "target_primary_key", severity: SeverityError, parts: []string{"require_pk.nopk"}},
	{name: "exact", source: "CREATE TABLE exact.nokey (id INT)", id: "exact_table", severity: SeverityInfo, parts: []string{"exact.nokey", "primary key"}},
	{name: "myisam", source: "CREATE TABLE myisam.m (id INT PRIMARY KEY) ENGINE=MyISAM", id: "non_transactional", severity: SeverityWarning, parts: []string{"myisam.m"}},
	{name: "compressed", kinds: onMariaDB, source: "CREATE TABLE compressed.c (id INT PRIMARY KEY, v TEXT COMPRESSED)", id: "compressed_column", severity: SeverityError, parts: []string{"compressed.c.v"}},
	{name: "compressed_elsewhere", kinds: onMariaDB, source: "CREATE DATABASE elsewhere; CREATE TABLE elsewhere.c (id INT PRIMARY KEY, v TEXT COMPRESSED)"},
	{name: "old_temporal", kinds: onMariaDB, source: "SET GLOBAL mysql56_temporal_format = OFF; CREATE TABLE old_temporal.o (id INT PRIMARY KEY, v DATETIME); SET GLOBAL mysql56_temporal_format = ON",
		id: "old_temporal", severity: SeverityError, parts: []string{"old_temporal.o.v"}},
	{name: "locked", source: "CREATE TABLE locked.m (id INT) ENGINE=MyISAM", id: "locked_table", severity: SeverityWarning, parts: []string{"locked.m", "writers wait", "InnoDB"}},
	{name: "not_locked", source: "CREATE TABLE not_locked.m (id INT) ENGINE=MyISAM", change: func(in *Input) { in.AllowLocks = false }, id: "exact_lock", severity: SeverityError,
		parts: []string{"not_locked.m", "allow_locks"}},
	{name: "memory", source: "CREATE TABLE memory.m (id INT) ENGINE=MEMORY", id: "exact_table", severity: SeverityError, parts: []string{"memory.m", "MEMORY"}},
	{name: "second_counter", source: "CREATE TABLE second_counter.m (g INT, id INT AUTO_INCREMENT, KEY (g, id)) ENGINE=MyISAM", id: "exact_table", severity: SeverityError,
		parts: []string{"second_counter.m", "AUTO_INCREMENT"}},
	{name: "versioned", kinds: onMariaDB, source: "CREATE TABLE versioned.v (id INT PRIMARY KEY) WITH SYSTEM VERSIONING", id: "history", severity: SeverityWarning,
		parts: []string{"versioned.v"}, also: []string{"exact_table"}},
	{name: "versioned_trx", kinds: onMariaDB, source: "CREATE TABLE versioned_trx.v (id INT PRIMARY KEY, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
		id: "exact_table", severity: SeverityError, parts: []string{"versioned_trx.v", "as statements"}},
	{name: "casc", kinds: onMariaDB, source: "CREATE TABLE casc.p (id INT PRIMARY KEY); CREATE TABLE casc.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES casc.p (id) ON DELETE SET NULL)",
		id: "exact_table", severity: SeverityInfo, parts: []string{"casc.c", "foreign keys"}},
	{name: "casc_outside", kinds: onMariaDB, source: "CREATE DATABASE casc_of; CREATE TABLE casc_of.p (id INT PRIMARY KEY); CREATE TABLE casc_outside.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES casc_of.p (id) ON DELETE SET NULL)",
		id: "unlogged_cascade", severity: SeverityError, parts: []string{"casc_outside.c", "casc_of.p"}, also: []string{"foreign_parent"}},
	{name: "cascade_logged", kinds: onMySQL, source: "CREATE TABLE cascade_logged.p (id INT PRIMARY KEY); CREATE TABLE cascade_logged.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES cascade_logged.p (id) ON DELETE CASCADE)"},
	{name: "restrict_only", source: "CREATE TABLE restrict_only.p (id INT PRIMARY KEY); CREATE TABLE restrict_only.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES restrict_only.p (id))"},
	{name: "parent", source: "CREATE DATABASE par; CREATE TABLE par.p (id INT PRIMARY KEY); CREATE TABLE parent.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES par.p (id))",
		id: "foreign_parent", severity: SeverityError, parts: []string{"par.p", "parent.c"}},
	{name: "parent_there", source: "CREATE DATABASE par2; CREATE TABLE par2.p (id INT PRIMARY KEY); CREATE TABLE parent_there.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES par2.p (id))",
		target: "CREATE DATABASE par2; CREATE TABLE par2.p (id INT PRIMARY KEY)", id: "foreign_parent", severity: SeverityWarning},
	{name: "generated_unique", source: "CREATE TABLE generated_unique.g (id INT PRIMARY KEY, ts TIMESTAMP NULL, v VARCHAR(40) AS (CONCAT(ts, 'x')) STORED UNIQUE)",
		id: "session_expression", severity: SeverityError, parts: []string{"TIMESTAMP column ts"}},
	{name: "generated_plain", source: "CREATE TABLE generated_plain.g (id INT PRIMARY KEY, ts TIMESTAMP NULL, v VARCHAR(40) AS (CONCAT(ts, 'x')) STORED)",
		id: "session_expression", severity: SeverityWarning},
	{name: "generated_fine", source: "CREATE TABLE generated_fine.g (id INT PRIMARY KEY, ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP COMMENT 'user() now() `ts`', d DATETIME DEFAULT NOW(), `user` INT, v INT AS (`user` + 1) STORED UNIQUE, CHECK (`user` > 1 AND v <> 7))"},
	{name: "functional", kinds: onMySQL, source: "CREATE TABLE functional.f (id INT PRIMARY KEY, ts TIMESTAMP NULL, UNIQUE KEY k ((CONCAT(ts))))",
		id: "session_expression", severity: SeverityError, parts: []string{"index k"}},
	{name: "check_now", kinds: onMariaDB, source: "CREATE TABLE check_now.c (id INT PRIMARY KEY, ts TIMESTAMP NULL, v INT CHECK (v < UNIX_TIMESTAMP(ts)))",
		id: "session_expression", severity: SeverityWarning, parts: []string{"check of column v"}},
	{name: "existing", target: "CREATE DATABASE existing; CREATE TABLE existing.t (id INT PRIMARY KEY)", id: "existing_table", severity: SeverityError, parts: []string{"table existing.t"}},
	{name: "existing_view", target: "CREATE DATABASE existing_view; CREATE VIEW existing_view.t AS SELECT 1", id: "existing_table", severity: SeverityError, parts: []string{"view existing_view.t"}},
	{name: "existing_ours", target: "CREATE DATABASE existing_ours; CREATE TABLE existing_ours.t (id INT PRIMARY KEY)",
		change: func(in *Input) {
			in.Resume = &Resume{Created: []state.Object{{Type: "table", Database: "existing_ours", Name: "t"}}}
		}},
	{name: "trig", target: "CREATE DATABASE trig; CREATE TABLE trig.t (id INT PRIMARY KEY); CREATE TRIGGER trig.bad BEFORE INSERT ON trig.t FOR EACH ROW SET NEW.id = 1",
		id: "target_trigger", severity: SeverityError, parts: []string{"trig.bad"}, also: []string{"existing_table"}},
	{name: "trig_resume", target: "CREATE DATABASE trig_resume; CREATE TABLE trig_resume.t (id INT PRIMARY KEY); CREATE TRIGGER trig_resume.bad BEFORE INSERT ON trig_resume.t FOR EACH ROW SET NEW.id = 1",
		change: func(in *Input) {
			in.Resume = &Resume{Created: []state.Object{{Type: "table", Database: "trig_resume", Name: "t"}}}
		},
		id: "target_trigger", severity: SeverityWarning},
	{name: "charset", target: "CREATE DATABASE charset CHARACTER SET koi8r", id: "database_charset", severity: SeverityWarning, parts: []string{"koi8r"}},
	{name: "nothing", change: func(in *Input) { in.Select = selecting("no_such_db.*") }, id: "nothing_selected", severity: SeverityError},
	{name: "server_id_own", change: func(in *Input) { in.ServerID = ownID }, id: "server_id", severity: SeverityError, parts: []string{"own"}},
	{name: "server_id_free", change: func(in *Input) { in.ServerID = 987654 }},
	{name: "until_file", change: func(in *Input) { in.UntilFile, in.UntilPos = "binlog.000001", 4 }, id: "until", severity: SeverityError, parts: []string{"before the start"}},
	{name: "until_alien", change: func(in *Input) { in.UntilFile, in.UntilPos = "mysql-bin.000001", 4 }, id: "until", severity: SeverityError, parts: []string{"no place"}},
	{name: "until_ahead", change: func(in *Input) { in.UntilFile, in.UntilPos = "binlog.999999", 4 }},
	{name: "until_gtid_mariadb", kinds: onMariaDB, change: func(in *Input) { in.UntilGTID = "0-1-1" }, id: "until", severity: SeverityError, parts: []string{"before the start"}},
	{name: "until_gtid_bad", kinds: []servers.Kind{servers.MySQL, servers.MariaDB118}, change: func(in *Input) { in.UntilGTID = "nonsense" }, id: "until", severity: SeverityError, parts: []string{"not a GTID"}},
	{name: "until_gtid_none", kinds: []servers.Kind{servers.MySQLNoGTID}, change: func(in *Input) { in.UntilGTID = "3E11FA47-71CA-11E1-9E33-C80AA9429562:1" }, id: "until", severity: SeverityError, parts: []string{"gtid_mode"}},
	{name: "views", source: "CREATE VIEW views.v AS SELECT 1; CREATE PROCEDURE views.p() SELECT 1; CREATE TRIGGER views.tr BEFORE INSERT ON views.t FOR EACH ROW SET NEW.id = 1",
		id: "left_out_view", severity: SeverityWarning, parts: []string{"views.v"}, also: []string{"left_out_procedure", "left_out_trigger"}},
	{name: "sequence", kinds: onMariaDB, source: "CREATE SEQUENCE sequence.s", id: "left_out_sequence", severity: SeverityWarning},
	{name: "replica_target", target: "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '192.0.2.1'", undoTarget: "RESET REPLICA ALL", kinds: onMySQL, id: "target_replica", severity: SeverityWarning},
	{name: "replica_target_maria", target: "CHANGE MASTER TO MASTER_HOST = '192.0.2.1'", undoTarget: "RESET SLAVE ALL", kinds: onMariaDB, id: "target_replica", severity: SeverityWarning},
}

// ownID is replaced by the source's own id before the test.
var ownID uint32

// benign are findings that every plain pair may have.
var benign = []string{"binlog_expiry"}

// allScenarios: each check sees what it is for, and nothing else is found.
func allScenarios(t *testing.T, source, target *servers.Server) {
	testdb.Exec(t, source, "SET GLOBAL binlog_expire_logs_seconds = 0")
	ownID = source.ServerID
	for _, s := range slices.Concat(scenarios, takenScenarios) {
		if s.kinds == nil || slices.Contains(s.kinds, source.Kind) {
			t.Run(s.name, func(t *testing.T) { s.run(t, source, target) })
		}
	}
}

func (s scenario) run(t *testing.T, source, target *servers.Server) {
	create := "CREATE DATABASE " + s.name + "; CREATE TABLE " + s.name + ".t (id INT PRIMARY KEY, v VARCHAR(10)); "
	testdb.Exec(t, source, create+s.source)
	if s.target != "" {
		testdb.Exec(t, target, s.target)
	}
	in := input(t, source, target, s.name+".*")
	if s.change != nil {
		s.change(in)
	}
	found := run(t, in)
	if s.id != "" {
		want(t, found, s.severity, s.id, s.parts...)
	}
	for _, f := range found {
		if f.ID != s.id && !slices.Contains(s.also, f.ID) && !slices.Contains(benign, f.ID) {
			t.Errorf("unwanted %s %s: %s", f.Severity, f.ID, f.Message)
		}
	}
	for _, id := range s.also {
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.ID == id }) {
			t.Errorf("no %s", id)
		}
	}
	if s.undoSource != "" {
		testdb.Exec(t, source, s.undoSource)
	}
	if s.undoTarget != "" {
		testdb.Exec(t, target, s.undoTarget)
	}
}
