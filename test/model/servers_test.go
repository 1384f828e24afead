package model

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
)

// TestTablesBehaveAsTheServersDo does the same to a table of the model and to
// one of a server.
func TestTablesBehaveAsTheServersDo(t *testing.T) {
	if testing.Short() {
		t.Skip("without servers")
	}
	for _, kind := range []servers.Kind{servers.MySQL, servers.MariaDB1011, servers.MariaDB118} {
		t.Run(string(kind), func(t *testing.T) {
			db := testdb.One(t, kind, testdb.WithFast()).DB()
			for _, name := range []string{"keyed", "folded"} {
				newTwin(t, db, name, kind != servers.MySQL).play(200)
			}
		})
	}
}

// twin is a table of the model and the same on a server.
type twin struct {
	t       *testing.T
	db      *sql.DB
	name    string
	mariadb bool
	model   *table
	choices *choices
	met     int // 1062
}

func newTwin(t *testing.T, db *sql.DB, name string, mariadb bool) *twin {
	w := &twin{t: t, db: db, name: name, mariadb: mariadb, choices: record(1, onSource)}
	w.model = &table{schema: schemas[name], uniques: true}
	collation := "latin1_bin"
	if w.model.schema.fold {
		collation = "latin1_general_ci"
	}
	w.exec("CREATE DATABASE IF NOT EXISTS m")
	w.exec(fmt.Sprintf("CREATE TABLE m.%s (k VARCHAR(9) COLLATE %s PRIMARY KEY, u VARCHAR(9) UNIQUE, n VARCHAR(9) COLLATE latin1_general_ci UNIQUE, v VARCHAR(9) NOT NULL) CHARACTER SET latin1", name, collation))
	return w
}

// exec reports whether the server answered 1062.
func (w *twin) exec(query string) bool {
	w.t.Helper()
	_, err := w.db.ExecContext(w.t.Context(), query)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == 1062 {
		return true
	}
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return false
}

func (w *twin) play(steps int) {
	w.t.Helper()
	for range steps {
		w.choices.next, w.choices.tape = 0, nil // it does not go quiet
		query := w.step()
		if want, got := w.model.sorted(), w.rows(); !slices.Equal(want, got) {
			w.t.Fatalf("%s: the server has %v, the model %v", query, got, want)
		}
	}
	if w.met == 0 {
		w.t.Error("no statement met 1062")
	}
}

// step does one thing to both.
func (w *twin) step() string {
	c := w.choices
	if key := pick(c, keys); c.n(4) == 0 {
		query := fmt.Sprintf("DELETE FROM m.%s WHERE k = '%s'", w.name, key)
		w.exec(query)
		w.model.deleteKey(key)
		return query
	}
	var rows []row
	var values []string
	for range 1 + c.n(3) {
		r := row{pick(c, keys), pick(c, uniqs), pick(c, names), pick(c, vals)}
		rows = append(rows, r)
		values = append(values, fmt.Sprintf("('%s', NULLIF('%s', ''), NULLIF('%s', ''), '%s')", r.key, r.uniq, r.name, r.val))
	}
	list := fmt.Sprintf(" INTO m.%s (k, u, n, v) VALUES %s", w.name, strings.Join(values, ", "))
	upsert := "INSERT" + list + w.onDuplicate()
	replaced := w.exec(upsert)
	if replaced {
		w.met++
		w.exec("REPLACE" + list)
	}
	if got := w.model.upsertAll(rows); got != replaced {
		w.t.Fatalf("%s: 1062 from the server %v, from the model %v", upsert, replaced, got)
	}
	return upsert
}

func (w *twin) onDuplicate() string {
	if w.mariadb {
		return " ON DUPLICATE KEY UPDATE k = VALUES(k), u = VALUES(u), n = VALUES(n), v = VALUES(v)"
	}
	return " AS new ON DUPLICATE KEY UPDATE k = new.k, u = new.u, n = new.n, v = new.v"
}

// rows are those of the server, in the model's order.
func (w *twin) rows() []row {
	found, err := w.db.QueryContext(w.t.Context(), "SELECT k, IFNULL(u, ''), IFNULL(n, ''), v FROM m."+w.name)
	if err != nil {
		w.t.Fatal(err)
	}
	defer found.Close()
	t := &table{}
	for found.Next() {
		var r row
		if err := found.Scan(&r.key, &r.uniq, &r.name, &r.val); err != nil {
			w.t.Fatal(err)
		}
		t.rows = append(t.rows, r)
	}
	if err := found.Err(); err != nil {
		w.t.Fatal(err)
	}
	return t.sorted()
}
