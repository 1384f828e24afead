package streamer

import (
	"maps"
	"slices"
	"testing"

	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/test/servers"
)

// TestScan: a table's last DDL is found, and of what cannot be applied only that
// which lies behind it.
func TestScan(t *testing.T) {
	onKind(t, servers.MySQLNoGTID, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE DATABASE b", "CREATE TABLE a.quiet (id INT PRIMARY KEY, v INT)",
			"CREATE TABLE a.bad (id INT PRIMARY KEY, v INT)", "FLUSH BINARY LOGS")
		cfg := src.config(src.here(t), nil)
		cfg.Start.Pos = 4
		scan := func(names ...string) (ddl []string, foreign []string) {
			t.Helper()
			var all []table.Name
			for _, n := range names {
				all = append(all, table.Name{Database: "a", Table: n})
			}
			cfg.ServerID = lastID.Add(1) + 90000
			found, err := Scan(t.Context(), cfg, all, src.here(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range slices.SortedFunc(maps.Keys(found.LastDDL), table.Name.Compare) {
				ddl = append(ddl, n.Table)
				if found.LastDDL[n].Pos <= 4 {
					t.Errorf("%s: %+v", n, found.LastDDL[n])
				}
			}
			for _, f := range found.Foreign {
				foreign = append(foreign, f.Table.Table)
			}
			return ddl, foreign
		}
		if ddl, foreign := scan("quiet", "bad", "mended"); len(ddl)+len(foreign) > 0 {
			t.Errorf("nothing happened: %v %v", ddl, foreign)
		}
		statement := "SET SESSION binlog_format=STATEMENT"
		src.exec(t, "INSERT INTO a.quiet VALUES (1,1)", "CREATE TABLE a.mended (id INT PRIMARY KEY, v INT)",
			statement, "INSERT INTO a.bad VALUES (1,1)", "INSERT INTO a.mended VALUES (1,1)", "CREATE TABLE b.t (id INT)", "INSERT INTO b.t VALUES (1)",
			"ALTER TABLE a.mended ADD x INT", "CREATE TABLE b.u AS SELECT * FROM a.quiet")
		ddl, foreign := scan("quiet", "bad", "mended")
		if !slices.Equal(ddl, []string{"mended"}) || !slices.Equal(foreign, []string{"bad"}) {
			t.Errorf("DDL of %v, foreign in %v", ddl, foreign)
		}
		src.exec(t, statement, "WITH c AS (SELECT 1 AS i) DELETE FROM a.bad WHERE id IN (SELECT i FROM c)")
		if _, foreign := scan("quiet"); !slices.Equal(foreign, []string{""}) {
			t.Errorf("what may touch any table: %v", foreign)
		}
		src.exec(t, "ALTER TABLE a.quiet ADD x INT", "RENAME TABLE a.bad TO a.aside, a.mended TO a.bad, a.aside TO a.mended")
		ddl, foreign = scan("quiet", "bad", "mended")
		if !slices.Equal(ddl, []string{"bad", "mended", "quiet"}) || len(foreign) > 0 {
			t.Errorf("all behind DDL: %v, foreign in %v", ddl, foreign)
		}
	})
}
