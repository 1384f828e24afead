package applier

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
)

// Changes of a component go in log order over its tables. Those that were carried
// on by foreign keys are by the target's, others are not.
func TestCascades(t *testing.T) {
	for _, kind := range families {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, kind)
			testdb.Load(t, b.server, `CREATE DATABASE k; USE k; CREATE TABLE mum (id VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT);
				CREATE TABLE kid (id INT PRIMARY KEY, p VARCHAR(20) COLLATE utf8mb4_general_ci, FOREIGN KEY (p) REFERENCES mum (id) ON DELETE CASCADE ON UPDATE CASCADE);
				INSERT INTO mum SELECT CONCAT('row', a.n, '-', b.n, '-', c.n), 1 FROM (SELECT 0 n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) a,
				  (SELECT 0 n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) b,
				  (SELECT 0 n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) c;
				INSERT INTO kid SELECT ROW_NUMBER() OVER (ORDER BY id) + 100, id FROM mum`)
			mum, kid := b.load(t, table.Name{Database: "k", Table: "mum"}), b.load(t, table.Name{Database: "k", Table: "kid"})
			mum.Component, kid.Component = 1, 1
			b.cascades(t, mum, kid)
			b.usesKey(t, mum, row("_utf8mb4 x'726F77312D322D33'", "1"))
			b.usesKey(t, kid, row("150", "_utf8mb4 x'726F77312D322D33'"))
		})
	}
}

func (b *bench) cascades(t *testing.T, mum, kid *table.Table) {
	a := NewApplier(b.cfg, state.Position{})
	defer a.Close()
	upTo := uint64(1000)
	for _, step := range []struct {
		changes []Change
		want    string // the first rows of kid; "missed" where the changes must not be found
	}{
		{[]Change{
			{Table: mum, Op: Insert, After: row("'a'", "1")}, {Table: kid, Op: Insert, After: row("1", "'a'")},
			{Table: mum, Op: Delete, Before: row("'a'", "1"), Cascades: true},
			{Table: mum, Op: Insert, After: row("'a'", "2")}, {Table: kid, Op: Insert, After: row("1", "'a'")}, {Table: kid, Op: Insert, After: row("2", "'a'")},
		}, "1:a 2:a"},
		{[]Change{{Table: mum, Op: Update, Before: row("'a'", "2"), After: row("'b'", "3"), Cascades: true}}, "1:b 2:b"},
		{[]Change{{Table: kid, Op: Update, Before: row("2", "'b'"), After: row("2", "NULL")}, {Table: mum, Op: Update, Before: row("'b'", "3"), After: row("'z'", "3")}}, "1:b 2:NULL"},
		{[]Change{{Table: kid, Op: Delete, Before: row("2", "'b'")}}, "missed"},
		{[]Change{{Table: kid, Op: Delete, Before: row("2", "'b'"), MayBeGone: true}, {Table: kid, Op: Delete, Before: row("3", "'b'"), MayBeGone: true}}, "1:b"},
		{[]Change{{Table: mum, Op: Delete, Before: row("'z'", "3")}}, "1:b"},
	} {
		upTo += 10
		_, err := a.Apply(t.Context(), window(unit(upTo, step.changes...)))
		if step.want == "missed" {
			if !errors.Is(err, ErrMissed) {
				t.Errorf("%v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := b.rows(t, "SELECT GROUP_CONCAT(id, ':', IFNULL(p, 'NULL') ORDER BY id SEPARATOR ' ') FROM k.kid WHERE id < 100"); got != step.want {
			t.Errorf("rows %s, not %s", got, step.want)
		}
	}
}

// usesKey wants one row to be found by the primary key, though all columns are
// compared.
func (b *bench) usesKey(t *testing.T, tab *table.Table, r Row) {
	s, err := b.cfg.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := newWriter(context.WithoutCancel(t.Context()), s, b.cfg.Version, tab)
	if err != nil {
		t.Fatal(err)
	}
	explain, key := "EXPLAIN FORMAT=TRADITIONAL ", 6 // MySQL has a column of partitions
	if b.cfg.Version.Flavor == mysqlconn.MariaDB {
		explain, key = "EXPLAIN ", 5
	}
	for _, c := range []Change{{Table: tab, Op: Delete, Before: r}, {Table: tab, Op: Update, Before: r, After: r}} {
		v := map[Op]verb{Delete: removeOne, Update: updateOne}[c.Op]
		text := (&statement{writer: w, verb: v, rows: []netRow{{&c, c.Op == Delete}}}).text()[packetRoom:]
		found, err := s.QueryRow(t.Context(), explain+string(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if string(found[key]) != "PRIMARY" || strings.Contains(string(found[key-2]), "index") {
			t.Errorf("%s: %q", text, found)
		}
	}
}
