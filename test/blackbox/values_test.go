package blackbox

import (
	"fmt"
	"testing"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// The sign of zero, once by the snapshot and once by the binary log. MariaDB
// stores none.
func TestB2_01_SignOfZero(t *testing.T) {
	source, target := sharedPair(t, servers.MySQL)
	testdb.Exec(t, source, "CREATE DATABASE v; CREATE TABLE v.zero (id INT PRIMARY KEY, f FLOAT, d DOUBLE)")
	const rows = "INSERT INTO v.zero VALUES (%[1]d, -0e0, -0e0), (%[1]d + 1, 0e0, 0e0)"
	testdb.Exec(t, source, fmt.Sprintf(rows, 1))
	m := harness.New(t, source, target, harness.Config{Include: []string{"v.*"}})
	m.RequireRun()
	for _, step := range []struct{ name, change string }{
		{"snapshot", ""},
		{"inserted", fmt.Sprintf(rows, 11)},
		{"updated", "UPDATE v.zero SET f = -0e0, d = -0e0 WHERE id = 2; UPDATE v.zero SET f = 0e0, d = 0e0 WHERE id = 1"},
	} {
		t.Run(step.name, func(t *testing.T) {
			if step.change != "" {
				testdb.Exec(t, source, step.change)
				m.RequireResume()
			}
			if diff := testdb.Diff(t, source, target, []string{"v"}); diff != "" {
				t.Errorf("%s", diff)
			}
		})
	}
}
