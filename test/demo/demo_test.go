package main

import (
	"bytes"
	"testing"

	"github.com/copydb/copydb/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func TestSmallDemo(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-copydb", harness.Binary(t, harness.Release), "-kind", "mariadb-11.8", "-orders", "20000", "-chunk-size", "64KiB"}
	if err := run(t.Context(), args, &out, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
}
