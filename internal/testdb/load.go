package testdb

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/copydb/copydb/test/data"
	"github.com/copydb/copydb/test/servers"
)

// OddDatabase is the database of the torture schema whose own name, and those
// of its tables and columns, are odd.
const OddDatabase = "tt-odd db.`名前` %s'\"\\"

// What says which part of the torture schema LoadTypes leaves in place.
type What int

const (
	// Everything is all of it.
	Everything What = iota
	// Tables is only base tables (and MariaDB's sequences): triggers, views,
	// routines and events are dropped after loading, and so is tt_rel, which
	// is about them.
	Tables
)

// Load runs an SQL script with the server's own command-line client, so the
// script may use DELIMITER.
func Load(t testing.TB, srv *servers.Server, script string) {
	t.Helper()
	if _, err := srv.Client(t.Context(), strings.NewReader(script)); err != nil {
		t.Fatal(err)
	}
}

// LoadTypes loads the torture schema of the server's family.
func LoadTypes(t testing.TB, srv *servers.Server, what What) {
	t.Helper()
	Load(t, srv, data.Types)
	if srv.Kind.IsMariaDB() {
		Load(t, srv, data.TypesMariaDB)
	} else {
		Load(t, srv, data.TypesMySQL)
	}
	if what == Tables {
		Exec(t, srv, "DROP DATABASE tt_rel")
		dropObjects(t, srv)
	}
}

// TypeDatabases returns the databases that LoadTypes makes.
func TypeDatabases(kind servers.Kind, what What) []string {
	all := []string{"tt_types", "tt_text", "tt_keys", OddDatabase}
	if kind.IsMariaDB() {
		all = append(all, "tt_mariadb")
	} else {
		all = append(all, "tt_mysql")
	}
	if what == Everything {
		all = append(all, "tt_rel")
	}
	return all
}

// objectQueries list what is in the torture schema beside tables: kind of
// object for DROP, database, name.
var objectQueries = []string{
	"SELECT 'TRIGGER', trigger_schema, trigger_name FROM information_schema.triggers WHERE trigger_schema LIKE 'tt%'",
	"SELECT 'VIEW', table_schema, table_name FROM information_schema.views WHERE table_schema LIKE 'tt%'",
	"SELECT routine_type, routine_schema, routine_name FROM information_schema.routines" +
		" WHERE routine_schema LIKE 'tt%' AND routine_type <> 'PACKAGE BODY'", // goes with its package
	"SELECT 'EVENT', event_schema, event_name FROM information_schema.events WHERE event_schema LIKE 'tt%'",
}

func dropObjects(t testing.TB, srv *servers.Server) {
	t.Helper()
	conn := session(t, srv)
	defer conn.Close()
	for _, q := range objectQueries {
		rows, err := conn.QueryContext(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var drops []string
		for rows.Next() {
			var kind, database, name string
			if err := rows.Scan(&kind, &database, &name); err != nil {
				t.Fatal(err)
			}
			drop := fmt.Sprintf("DROP %s %s.%s", kind, quote(database), quote(name))
			if kind == "PACKAGE" { // not a word of the usual grammar in 10.11
				drop = "SET SESSION sql_mode = 'ORACLE'; " + drop + "; SET SESSION sql_mode = ''"
			}
			drops = append(drops, drop)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		for _, drop := range drops {
			if _, err := conn.ExecContext(t.Context(), drop); err != nil {
				t.Fatalf("%s: %v", drop, err)
			}
		}
	}
}

// quote returns a name as an SQL identifier.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// literal returns text as an SQL string that no sql_mode reads differently.
func literal(text string) string { return fmt.Sprintf("CONVERT(x'%x' USING utf8mb4)", text) }
