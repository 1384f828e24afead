package streamer

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
)

// scene is something in the log that stops the stream where it touches a
// selected table (database a), and passes where it touches another (b).
type scene struct {
	name    string
	only    servers.Family // "" for both
	script  string         // with $ for the database
	reason  string         // part of the message
	noTable bool           // the stop names no table
}

var scenes = []scene{
	{"statement", "", "SET SESSION binlog_format=STATEMENT; INSERT INTO $.t VALUES (1, 'x')", "logged as a statement", false},
	{"statement with variables", "", "SET SESSION binlog_format=STATEMENT; SET @v='secret'; BEGIN; INSERT INTO $.t VALUES (1, @v); COMMIT", "logged as a statement", false},
	{"statement update", "", "INSERT INTO $.t VALUES (1,'x'); SET SESSION binlog_format=STATEMENT; UPDATE $.t AS o SET v=RAND() WHERE id=1", "logged as a statement", false},
	{"load data", servers.FamilyMariaDB, "SET SESSION binlog_format=STATEMENT; LOAD DATA INFILE '@PATH@' INTO TABLE $.t", "logged as a statement", false},
	{"minimal image", "", "INSERT INTO $.t VALUES (1,'x'); SET SESSION binlog_row_image=MINIMAL; UPDATE $.t SET v='secret' WHERE id=1", "lacks columns", false},
	{"noblob image", "", "INSERT INTO $.j VALUES (1,'{}',''); SET SESSION binlog_row_image=NOBLOB; UPDATE $.j SET id=2 WHERE id=1", "lacks columns", false},
	{"partial json", servers.FamilyMySQL, `INSERT INTO $.j VALUES (1,CONCAT('{"a":"',REPEAT('x',500),'","b":1}'),''); SET SESSION binlog_row_value_options=PARTIAL_JSON; UPDATE $.j SET j=JSON_SET(j,'$$.b',2)`, "parts of JSON", false},
	{"compressed column", servers.FamilyMariaDB, "INSERT INTO $.c VALUES (1,REPEAT('secret',200))", "COMPRESSED", false},
	{"cascade", servers.FamilyMariaDB, "INSERT INTO $.p VALUES (1,'x'); DELETE FROM $.p", "foreign key", false},
	{"cascade of a key", servers.FamilyMariaDB, "INSERT INTO $.p VALUES (1,'x'); UPDATE $.p SET v='y'; UPDATE $.p SET id=2", "foreign key", false},
	{"old time", servers.FamilyMariaDB, "INSERT INTO $.old VALUES (1,'-01:00:00')", "time format from before", false},
	{"statement of an unknown kind", "", "SET SESSION binlog_format=STATEMENT; INSERT INTO b.t VALUES (9,'x'); WITH c AS (SELECT 9 AS i) DELETE FROM $.t WHERE id IN (SELECT i FROM c)", "may touch selected tables", true},
}

func TestB4_10_Stops(t *testing.T) {
	bothFamilies(t, func(t *testing.T, src *source) {
		file := filepath.Join(src.DataDir, "load.txt")
		if err := os.WriteFile(file, []byte("1\tsecret\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, s := range scenes {
			if s.only != "" && s.only != src.Kind.Family() || src.Kind.IsMariaDB() && strings.Contains(s.script, "WITH c") {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				makeScene(t, src)
				script := strings.ReplaceAll(s.script, "@PATH@", file)
				tables := src.tables(t, "a")
				for n, spec := range tables {
					if n.Table == "p" {
						spec.CascadesDelete, spec.CascadesUpdate = true, []string{"ID"}
					}
				}
				if !s.noTable {
					goesOn(t, src, tables, place(script, "b"))
				}
				stops(t, src, tables, s, place(script, "a"))
			})
		}
	})
}

func place(script, db string) string {
	return strings.ReplaceAll(strings.ReplaceAll(script, "$$", "\x00"), "$.", db+".") + ";"
}

// makeScene makes the same tables in both databases.
func makeScene(t *testing.T, src *source) {
	t.Helper()
	for _, db := range []string{"a", "b"} {
		src.exec(t, "DROP DATABASE IF EXISTS "+db, "CREATE DATABASE "+db, "USE "+db,
			"CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "CREATE TABLE j (id INT PRIMARY KEY, j JSON, b LONGBLOB)",
			"CREATE TABLE p (id INT PRIMARY KEY, v VARCHAR(20))", "CREATE TABLE k (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)")
		if src.Kind.IsMariaDB() {
			src.exec(t, "CREATE TABLE "+db+".c (id INT PRIMARY KEY, v TEXT COMPRESSED)", "SET GLOBAL mysql56_temporal_format=OFF",
				"CREATE TABLE "+db+".old (id INT PRIMARY KEY, v TIME)", "SET GLOBAL mysql56_temporal_format=ON")
		}
	}
}

func goesOn(t *testing.T, src *source, tables map[table.Name]*TableSpec, script string) {
	t.Helper()
	start := src.here(t)
	testdb.Exec(t, src.Server, strings.ReplaceAll(script, "\x00", "$"))
	src.exec(t, "INSERT INTO a.k VALUES (NULL)")
	all, err := tryRead(t, src.config(start, tables), src.here(t))
	if err != nil || len(describe(all)) != 1 {
		t.Errorf("on a table that is not selected: %v, %v", describe(all), err)
	}
}

func stops(t *testing.T, src *source, tables map[table.Name]*TableSpec, s scene, script string) {
	t.Helper()
	start := src.here(t)
	testdb.Exec(t, src.Server, strings.ReplaceAll(script, "\x00", "$"))
	end := src.here(t)
	first := stopsAt(t, src.config(start, tables), end, s)
	for range 2 {
		if again := stopsAt(t, src.config(first.from, tables), end, s); !reflect.DeepEqual(again, first) {
			t.Errorf("stops at %+v, on a resume at %+v", first, again)
		}
	}
}

// stopped is where a stream stopped, and the boundary to resume from.
type stopped struct {
	err  StopError
	from state.Position
}

func stopsAt(t *testing.T, cfg Config, end state.Position, s scene) stopped {
	t.Helper()
	all, err := tryRead(t, cfg, end)
	var stop *StopError
	if !errors.As(err, &stop) {
		t.Fatalf("got %v and %v", describe(all), err)
	}
	text := stop.Error()
	if !strings.Contains(text, s.reason) || strings.Contains(text, "secret") || stop.Position.File == "" ||
		(stop.Table == table.Name{}) != s.noTable {
		t.Errorf("stop: %s", text)
	}
	from := cfg.Start
	if n := len(all); n > 0 {
		from = all[n-1].EndPosition()
	}
	return stopped{*stop, from}
}

// TestStructureChanged: rows that don't fit the structure stop; with full
// metadata a column at another place is no change.
func TestStructureChanged(t *testing.T) {
	bothFamilies(t, func(t *testing.T, src *source) {
		for _, c := range []struct {
			name, metadata, alter, reason string
		}{
			{"added", "", "ADD COLUMN c INT", "columns where the table's structure has"},
			{"added", "FULL", "ADD COLUMN c INT", "column c: row events have the column"},
			{"renamed", "FULL", "CHANGE v w VARCHAR(20)", "column v: row events do not have the column"},
			{"retyped", "", "MODIFY v INT", "column v: row events have values of"},
			{"narrowed", "", "MODIFY n INT", "column n: row events have values of"},
			{"moved", "FULL", "MODIFY n BIGINT AFTER id", ""},
		} {
			t.Run(c.name+c.metadata, func(t *testing.T) {
				src.exec(t, "DROP DATABASE IF EXISTS a", "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(20), n BIGINT)")
				metadata := c.metadata
				if metadata == "" {
					metadata = testdb.Value(t, src.Server, "SELECT @@global.binlog_row_metadata")
				}
				tables := src.tables(t, "a")
				start := src.here(t)
				src.exec(t, "SET GLOBAL binlog_row_metadata="+metadata, "INSERT INTO a.t VALUES (1,NULL,3)", "ALTER TABLE a.t "+c.alter,
					"INSERT INTO a.t (id, n) VALUES (2, 4)")
				end := src.here(t)
				src.exec(t, "SET GLOBAL binlog_row_metadata=DEFAULT")
				all, err := tryRead(t, src.config(start, tables), end)
				if c.reason == "" {
					if err != nil {
						t.Fatal(err)
					}
					wantChanges(t, all, "insert t()(1,NULL,3)", "insert t()(2,NULL,4)")
					return
				}
				var stop *StopError
				if !errors.As(err, &stop) || !strings.Contains(stop.Error(), c.reason) || !strings.Contains(stop.Error(), "table a.t") {
					t.Errorf("got %v", err)
				}
				wantChanges(t, all, "insert t()(1,NULL,3)")
			})
		}
	})
}
