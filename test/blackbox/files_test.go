package blackbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/copydb/copydb/test/harness"
)

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// removeState removes the state file and everything beside it.
func removeState(t *testing.T, m *harness.Migration) {
	t.Helper()
	all, err := filepath.Glob(m.StatePath + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// files returns the content of all files in a folder by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			all[e.Name()] = string(readFile(t, filepath.Join(dir, e.Name())))
		}
	}
	return all
}
