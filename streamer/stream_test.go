package streamer

import (
	"testing"
)

func TestChangesAndBoundaries(t *testing.T) {
	everyKind(t, func(t *testing.T, src *source) {
		src.exec(t, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(20))", "CREATE DATABASE b", "CREATE TABLE b.t (id INT PRIMARY KEY)")
		start := src.here(t)
		src.exec(t, "INSERT INTO a.t VALUES (1,'x'),(2,NULL)", "UPDATE a.t SET v='y' WHERE id=1", "INSERT INTO b.t VALUES (1)",
			"BEGIN", "DELETE FROM a.t WHERE id=2", "INSERT INTO a.t VALUES (3,'')", "COMMIT")
		end := src.here(t)
		all := read(t, src.config(start, src.tables(t, "a")), end)
		wantChanges(t, all, "insert t()(1,'x')", "insert t()(2,NULL)", "update t(1,)(1,'y')", "delete t(2,)()", "insert t()(3,'')")
		last := all[len(all)-1].EndPosition()
		if last != end {
			t.Errorf("ends at %+v, the log at %+v", last, end)
		}
	})
}
