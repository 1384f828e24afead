package streamer

import (
	"errors"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
)

// TestDefinitions streams statements that change structures and looks at what
// is handed over of them.
func TestDefinitions(t *testing.T) {
	bothFamilies(t, func(t *testing.T, src *source) {
		for _, c := range []struct{ sql, want string }{
			{"ALTER TABLE a.t ADD COLUMN x INT", "a.t"},
			{"USE a; ALTER TABLE t DROP COLUMN x", "a.t"},
			{"CREATE INDEX i ON a.t (v)", "a.t"},
			{"SET sql_mode='ANSI_QUOTES'; DROP INDEX i ON \"a\".\"t\"", "a.t"},
			{"TRUNCATE a.t", "a.t"},
			{"RENAME TABLE a.u TO b.u", "a.u"},
			{"RENAME TABLE b.u TO a.u", "a.u"},
			{"CREATE TABLE b.s AS SELECT * FROM a.t", ""},
			{"CREATE TABLE a.s AS SELECT * FROM a.t", "a.s"},
			{"DROP TABLE b.s, a.s", "a.s"},
			{"USE b; CREATE TABLE x (id INT); ALTER TABLE x ADD y INT", ""},
			{"CREATE VIEW a.v AS SELECT 1", ""},
			{"CREATE TRIGGER a.g BEFORE INSERT ON a.t FOR EACH ROW SET @x=1; DROP TRIGGER a.g", ""},
			{"CREATE PROCEDURE a.p() DROP TABLE a.t", ""},
			{"CREATE USER x@y", ""},
			{"DROP USER x@y", ""},
			{"ANALYZE TABLE a.t; OPTIMIZE TABLE b.x; FLUSH TABLES", ""},
			{"CREATE TEMPORARY TABLE a.tmp (id INT); DROP TABLE a.tmp", ""},
			{"ALTER DATABASE a CHARACTER SET latin1", "databases a"},
			{"ALTER DATABASE b CHARACTER SET latin1", ""},
			{"DROP DATABASE b", ""},
			{"CREATE DATABASE b", ""},
			{"DROP DATABASE a", "a.t a.u"},
		} {
			if strings.HasSuffix(c.sql, "CREATE DATABASE b") || c.want == "" && strings.HasPrefix(c.sql, "DROP DATABASE b") {
				src.exec(t, c.sql)
				continue
			}
			src.exec(t, "CREATE DATABASE IF NOT EXISTS a", "CREATE DATABASE IF NOT EXISTS b",
				"CREATE TABLE IF NOT EXISTS a.t (id INT PRIMARY KEY, v INT)", "REPLACE INTO a.t (id) VALUES (1)")
			if c.sql != "RENAME TABLE b.u TO a.u" {
				src.exec(t, "CREATE TABLE IF NOT EXISTS a.u (id INT)")
			}
			start := src.here(t)
			testdb.Exec(t, src.Server, c.sql)
			end := src.here(t)
			tables := map[table.Name]*TableSpec{}
			for _, n := range []string{"t", "u"} {
				name := table.Name{Database: "a", Table: n}
				tables[name] = &TableSpec{Structure: &table.Table{Database: "a", Table: n, Columns: []table.Column{{Name: "id", Type: "int", Kind: table.Integer}}}}
			}
			all, err := tryRead(t, src.config(start, tables), end)
			if err != nil {
				t.Fatalf("%s: %v", c.sql, err)
			}
			if got := definitions(all); got != c.want {
				t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
			}
			if len(describe(all)) != 0 {
				t.Errorf("%s: rows %v", c.sql, describe(all))
			}
		}
	})
}

func definitions(all []*Transaction) string {
	var out []string
	for _, tx := range all {
		if tx.DDL == nil {
			continue
		}
		for _, n := range tx.DDL.Tables {
			out = append(out, n.String())
		}
		for _, db := range tx.DDL.Databases {
			out = append(out, "databases "+db)
		}
		if tx.DDL.Unknown {
			out = append(out, "unknown")
		}
		if tx.DDL.Query == "" {
			out = append(out, "no text")
		}
	}
	return strings.Join(out, " ")
}

// TestCovered: rows and DDL before a table's start are in its copy; tables made
// before the list was read are in it if at all.
func TestCovered(t *testing.T) {
	everyKind(t, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY)", "CREATE TABLE a.u (id INT PRIMARY KEY)")
		start := src.here(t)
		src.exec(t, "INSERT INTO a.t VALUES (1)", "INSERT INTO a.u VALUES (1)", "SET SESSION binlog_format=STATEMENT", "INSERT INTO a.t VALUES (-1)",
			"SET SESSION binlog_format=ROW", "ALTER TABLE a.t ADD v INT", "CREATE TABLE a.gone (id INT)", "INSERT INTO a.gone VALUES (1)", "DROP TABLE a.gone")
		middle := src.here(t)
		src.exec(t, "INSERT INTO a.t VALUES (2,2)", "INSERT INTO a.u VALUES (2)")
		tables := src.tables(t, "a")
		tables[table.Name{Database: "a", Table: "t"}].Start = middle
		tables[table.Name{Database: "a", Table: "u"}].Start = start
		cfg := src.config(start, tables)
		cfg.TableListAt = middle
		all := read(t, cfg, src.here(t))
		wantChanges(t, all, "insert u()(1)", "insert t()(2,2)", "insert u()(2)")
		if got := definitions(all); got != "" {
			t.Errorf("DDL of what is covered: %s", got)
		}

		src.exec(t, "CREATE TABLE a.new (id INT)", "INSERT INTO a.new VALUES (1)")
		cfg.ServerID++
		all, err := tryRead(t, cfg, src.here(t))
		var stop *StopError
		if !errors.As(err, &stop) || stop.Table.Table != "new" || definitions(all) != "a.new" {
			t.Errorf("a table made later: %v, %s", err, definitions(all))
		}
	})
}

// TestSequences are moved by row events, and are no tables of the run.
func TestSequences(t *testing.T) {
	for _, kind := range everyMariaDB {
		onKind(t, kind, func(t *testing.T, src *source) {
			src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY)", "CREATE SEQUENCE a.old")
			start := src.here(t)
			src.exec(t, "CREATE SEQUENCE a.s", "DO NEXTVAL(a.s)", "DO NEXTVAL(a.old)", "INSERT INTO a.t VALUES (NEXTVAL(a.s))")
			cfg := src.config(start, src.tables(t, "a"))
			cfg.Ignore = func(n table.Name) bool { return n.Table == "old" }
			wantChanges(t, read(t, cfg, src.here(t)), "insert t()(2)")
		})
	}
}
