package applier

import (
	"testing"

	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
)

// MySQL holds JSON numbers of different types equal and then leaves a row as it
// was: what an insert or an update changes in nothing else is written all the same.
func TestB2_05_NumbersInJSONChangeTheirTypeOnly(t *testing.T) {
	b := newBench(t, servers.MySQL)
	testdb.Load(t, b.server, `CREATE DATABASE js; USE js;
		CREATE TABLE k (id INT PRIMARY KEY, j JSON NOT NULL, u INT, UNIQUE KEY (u));
		CREATE TABLE n (a INT, j JSON);
		INSERT INTO k VALUES (1,'1',1),(2,'{"a":[1]}',2),(3,'3',3),(4,'4.0',4); INSERT INTO n VALUES (1,'1'),(1,'1'),(2,'-0.0');`)
	k, n := b.load(t, table.Name{Database: "js", Table: "k"}), b.load(t, table.Name{Database: "js", Table: "n"})
	a := NewApplier(b.cfg, state.Position{})
	defer a.Close()
	put := func(id, j string) Change { return Change{Table: k, Op: Insert, After: row(id, j, id)} }
	move := func(id, from, to string) Change {
		return Change{Table: n, Op: Update, Before: row(id, from), After: row(id, to)}
	}
	for i, changes := range [][]Change{
		{put("1", "_utf8mb4'1.0'")},
		{put("2", `_utf8mb4'{"a": [1.0]}'`), put("3", "_utf8mb4'33'"), put("5", "_utf8mb4'5'")},
		{put("4", "_utf8mb4'4.0'"), put("5", "_utf8mb4'5'")},
		{move("1", "_utf8mb4'1'", "_utf8mb4'1.0'"), move("2", "_utf8mb4'-0.0'", "_utf8mb4'0'")},
	} {
		if done, err := a.Apply(t.Context(), window(unit(uint64(i+1), changes...))); err != nil || done != 1 {
			t.Fatalf("window %d: %d, %v", i, done, err)
		}
	}
	if got, want := b.rows(t, "SELECT GROUP_CONCAT(id, '=', j, '/', u ORDER BY id SEPARATOR ' ') FROM js.k"),
		`1=1.0/1 2={"a": [1.0]}/2 3=33/3 4=4.0/4 5=5/5`; got != want {
		t.Errorf("by key: %s, want %s", got, want)
	}
	if got, want := b.rows(t, "SELECT GROUP_CONCAT(a, '=', j ORDER BY a, CAST(j AS CHAR) SEPARATOR ' ') FROM js.n"), "1=1 1=1.0 2=0"; got != want {
		t.Errorf("without a key: %s, want %s", got, want)
	}
}
