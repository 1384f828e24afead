package streamer

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
)

// apart are tables of the torture schema whose changes stop the stream, or whose
// history no plain statement can write.
var apart = []string{"compressed_cols", "old_temporal", "sysver_implicit", "sysver_explicit", "sysver_parted"}

// TestValues writes every row of the torture schema anew on the source and
// applies what the stream makes of it to a target that had the same rows: each
// delete must find its row by its key, and in the end both sides are equal.
func TestValues(t *testing.T) {
	type setting struct {
		kind     servers.Kind
		metadata string
		big      bool
	}
	all := []setting{{servers.MySQL, "MINIMAL", false}, {servers.MariaDB118, "NO_LOG", false}}
	if long {
		all = append(all, setting{servers.MariaDB1011, "NO_LOG", true}, setting{servers.MariaDB118, "FULL", false})
	}
	for _, c := range all {
		t.Run(string(c.kind)+"/"+c.metadata, func(t *testing.T) { testValues(t, c.kind, c.metadata, c.big) })
	}
}

func testValues(t *testing.T, kind servers.Kind, metadata string, big bool) {
	srv, target := testdb.Pair(t, kind, testdb.WithFast(), testdb.WithBinlogSize(servers.LoadBinlog),
		testdb.WithArgs("--binlog-row-metadata="+metadata))
	src := &source{Server: srv, conn: connection(t, srv, srv.Port), version: versionOf(t, srv), state: filepath.Join(t.TempDir(), "state.json")}
	testdb.LoadTypes(t, srv, testdb.Tables)
	testdb.LoadTypes(t, target, testdb.Tables)
	for _, s := range []*servers.Server{srv, target} {
		if !kind.IsMariaDB() {
			// JSON text has no way to write a DECIMAL, and the library prints a zero
			// TIME without its fraction.
			testdb.Exec(t, s, "DELETE FROM tt_mysql.json_typed WHERE id IN (1, 3, 6)")
		}
		if !big {
			testdb.Exec(t, s, "DELETE FROM tt_types.big_blobs WHERE LENGTH(b) > 1000")
		}
	}
	databases := testdb.TypeDatabases(kind, testdb.Tables)
	tables := src.tables(t, databases...)
	for n := range tables {
		if slices.Contains(apart, n.Table) {
			delete(tables, n)
		}
	}
	emptyKeyless(t, target, tables)
	start := src.here(t)
	script := writeAnew(t, src, tables)
	testdb.Exec(t, srv, script)

	cfg := src.config(start, tables)
	cfg.Selected = nil
	all := read(t, cfg, src.here(t))
	applyAll(t, target, all)
	var excluded []string
	for _, n := range apart {
		excluded = append(excluded, "tt_mariadb."+n)
	}
	testdb.RequireEqual(t, srv, target, databases, excluded...)
}

const anyValue = "SET sql_mode='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', foreign_key_checks=0, time_zone='+00:00', unique_checks=0"

// emptyKeyless empties the target's tables that have no key to delete by.
func emptyKeyless(t *testing.T, target *servers.Server, tables map[table.Name]*TableSpec) {
	for n, spec := range tables {
		if spec.Structure.UsableKey() == nil {
			testdb.Exec(t, target, "SET foreign_key_checks=0; DELETE FROM "+n.Quoted())
		}
	}
}

// writeAnew deletes all rows and inserts them again, by way of a copy.
func writeAnew(t *testing.T, src *source, tables map[table.Name]*TableSpec) string {
	t.Helper()
	b := []string{anyValue, "CREATE DATABASE aside"}
	if src.Kind.IsMariaDB() {
		b = append(b, "SET check_constraint_checks=0")
	}
	i := 0
	for n, spec := range tables {
		i++
		var names []string
		for _, c := range spec.Structure.Stored() {
			names = append(names, c.Name)
		}
		list, copyName := quoteList(names), fmt.Sprintf("aside.t%d", i)
		b = append(b, "CREATE TABLE "+copyName+" LIKE "+n.Quoted(),
			"INSERT INTO "+copyName+" ("+list+") SELECT "+list+" FROM "+n.Quoted(),
			"DELETE FROM "+n.Quoted(),
			"INSERT INTO "+n.Quoted()+" ("+list+") SELECT "+list+" FROM "+copyName)
	}
	return strings.Join(b, ";\n")
}

func quoteList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = table.Quote(n)
	}
	return strings.Join(out, ", ")
}

// explain checks that a comparison with a key's literals finds the row by it.
func explain(t *testing.T, sess *mysqlconn.Session, c *table.Table, where string) {
	t.Helper()
	plan, err := sess.QueryRow(t.Context(), "EXPLAIN FORMAT=JSON SELECT 1 FROM "+c.Quoted()+" WHERE "+where)
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	// The families' words for a row found by a whole unique key.
	for _, sign := range []string{`"const"`, `"system"`, "rows_fetched_before_execution"} {
		if bytes.Contains(plan[0], []byte(sign)) {
			return
		}
	}
	t.Errorf("%s is not read by its key: %.300s", c, plan[0])
}

func applyAll(t *testing.T, target *servers.Server, all []*Transaction) {
	t.Helper()
	conn := connection(t, target, target.Port)
	sess, err := conn.OpenSession(t.Context(), "SET time_zone='+00:00', foreign_key_checks=0")
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	if target.Kind.IsMariaDB() {
		run(t, sess, "SET check_constraint_checks=0", 0)
	}
	run(t, sess, "SET GLOBAL max_allowed_packet=1<<30", 0)
	explained := map[*table.Table]bool{}
	for _, tx := range all {
		if tx.DDL != nil {
			t.Fatalf("DDL: %+v", tx.DDL)
		}
		for i := range tx.Changes {
			applyOne(t, sess, &tx.Changes[i], explained)
		}
	}
}

func applyOne(t *testing.T, sess *mysqlconn.Session, c *applier.Change, explained map[*table.Table]bool) {
	t.Helper()
	key := c.Table.UsableKey()
	var where, names, values []string
	for i := range c.Table.Columns {
		column := &c.Table.Columns[i]
		if key != nil && slices.Contains(key.KeyNames(), column.Name) && c.Before != nil && !column.Generated {
			where = append(where, table.Quote(column.Name)+" = "+string(c.Before[i]))
		}
		if c.After != nil && !column.Generated {
			names, values = append(names, column.Name), append(values, string(c.After[i]))
		}
	}
	mode := "STRICT_ALL_TABLES,"
	if c.Table.Table == "enums" {
		mode = "" // index 0
	}
	run(t, sess, "SET sql_mode='"+mode+"NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'", 0)
	switch {
	case c.Op == applier.Delete && key != nil && len(where) > 0:
		if len(where) == len(key.Columns) && !explained[c.Table] {
			explained[c.Table] = true
			explain(t, sess, c.Table, strings.Join(where, " AND "))
		}
		run(t, sess, "DELETE FROM "+c.Table.Quoted()+" WHERE "+strings.Join(where, " AND "), 1)
	case c.Op == applier.Insert:
		run(t, sess, "INSERT INTO "+c.Table.Quoted()+" ("+quoteList(names)+") VALUES ("+strings.Join(values, ",")+")", 1)
	}
}

// run executes a statement and checks how many rows it affected.
func run(t *testing.T, sess *mysqlconn.Session, query string, want uint64) {
	t.Helper()
	res, err := sess.Exec(t.Context(), query)
	if err != nil {
		t.Fatalf("%.400s: %v", query, err)
	}
	if res.Affected != want {
		t.Errorf("%.400s: %d rows, want %d", query, res.Affected, want)
	}
}

func TestShortDoubles(t *testing.T) {
	for in, want := range map[string]string{
		`[602214076000000000000000.0]`:                  `[6.02214076e+23]`,
		`{"a": "602214076000000000000000.0", "b": 1.0}`: `{"a": "602214076000000000000000.0", "b": 1.0}`,
		`-10000000000000000000000.0`:                    `-1e+22`,
		`["\"", 123456789012345678.0, "x.0"]`:           `["\"", 1.2345678901234568e+17, "x.0"]`,
		`[1, 2.5, 1234567890123456789012.5]`:            `[1, 2.5, 1234567890123456789012.5]`,
	} {
		if got := shortDoubles([]byte(in)); !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
