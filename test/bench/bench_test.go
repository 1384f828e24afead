package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/copydb/copydb/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestSmoke shares data sets and loads among the families: starting servers and
// putting back their data is what takes the time.
func TestSmoke(t *testing.T) {
	for _, c := range []struct {
		kind  string
		flags []string
		want  []string
	}{
		{"mysql", []string{"-data", "main,keys", "-quick", "-loads", "hot", "-impact", "300ms"},
			[]string{"| MySQL 9.7", "main: 4000 rows in 4", "| hot | 200 |", "replica, 4 workers", besideWay}},
		{"mariadb-10.11", []string{"-data", "main,wide", "-quick", "-loads", "inserts,large"},
			[]string{"| MariaDB 10.11", "wide: 40 rows in 1", "| large | 1 |", "replica, 4 workers, optimistic", load8.name}},
		{"mariadb-10.11", []string{"-data", "3x1000", "-binlog", "on,off", "-loads", "none"}, []string{"Growth", "| off |"}},
	} {
		t.Run(c.kind+" "+c.flags[1], func(t *testing.T) {
			var stdout bytes.Buffer
			dir := t.TempDir()
			svg := filepath.Join(dir, "growth.svg")
			args := append([]string{"-smoke", "-copydb", harness.Binary(t, harness.Release), "-kinds", c.kind,
				"-results", filepath.Join(dir, "results"), "-svg", svg}, c.flags...)
			if err := run(t.Context(), args, &stdout, t.Output()); err != nil {
				t.Fatal(err)
			}
			for _, want := range append(c.want, "| 0.10", " connections, ") {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("the tables lack %q:\n%s", want, stdout.String())
				}
			}
			text, err := os.ReadFile(svg)
			if err != nil || strings.Contains(c.flags[1], "x") != bytes.Contains(text, []byte("<circle")) {
				t.Errorf("the picture: %v\n%s", err, text)
			}
		})
	}
}
