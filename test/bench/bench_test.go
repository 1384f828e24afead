package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/copydb/copydb/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func TestSmoke(t *testing.T) {
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), []string{"-smoke", "-copydb", harness.Binary(t, harness.Release), "-kinds", "mysql,mariadb-10.11"}, &stdout, &stderr)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	for _, want := range []string{"| MySQL 9.7", "| MariaDB 10.11", "| 4000 | "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the tables lack %q:\n%s", want, stdout.String())
		}
	}
}
