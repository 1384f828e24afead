package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module   = "github.com/copydb/copydb"
	root     = "../.."
	maxLines = 500
)

// pkg is what `go list` says of a package. Imports are those of the code itself,
// TestImports also those of its tests.
type pkg struct {
	ImportPath   string
	Standard     bool
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// name is the package's path inside the module.
func (p pkg) name() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

// packages lists the module's packages, with the files of all build tags in use.
func packages(t *testing.T) []pkg {
	t.Helper()
	seen := map[string]*pkg{}
	for _, tags := range []string{"", "holdpoints"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "-tags="+tags, "./...")
		cmd.Dir = root
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, stderr.String())
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p pkg
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("parse what go list printed: %v", err)
			}
			if first := seen[p.ImportPath]; first != nil {
				first.Imports = append(first.Imports, p.Imports...)
				continue
			}
			seen[p.ImportPath] = &p
		}
	}
	var all []pkg
	for _, p := range seen {
		all = append(all, *p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found %d packages, that cannot be all", len(all))
	}
	return all
}

// layers are the parts of the product from the top down: a package may import
// packages of lower layers, and of its own only below internal, copydb and state.
var layers = [][]string{{"cmd"}, {"copydb"}, {"dumper", "streamer"}, {"internal"}, {"state"}}

func layerOf(name string) int {
	return slices.IndexFunc(layers, func(parts []string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return within(name, part) })
	})
}

func within(name, part string) bool { return name == part || strings.HasPrefix(name, part+"/") }

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		from := layerOf(p.name())
		if from < 0 || within(p.name(), "internal/testdb") {
			continue // tests and what they need
		}
		for _, i := range p.Imports {
			if !strings.HasPrefix(i, module+"/") {
				continue
			}
			name := strings.TrimPrefix(i, module+"/")
			to := layerOf(name)
			switch {
			case to < 0 || within(name, "internal/testdb"):
				t.Errorf("%s imports %s: the product imports nothing of the tests", p.name(), name)
			case to < from:
				t.Errorf("%s imports %s: arrows point from cmd to copydb to dumper and streamer to internal to state", p.name(), name)
			case to == from && (within(p.name(), "dumper") != within(name, "dumper")):
				t.Errorf("%s imports %s: dumper and streamer know nothing of each other", p.name(), name)
			}
		}
	}
}

func TestOnlySomeImport(t *testing.T) {
	rules := []struct {
		imported string
		by       []string
		why      string
	}{
		{"github.com/go-mysql-org/go-mysql", []string{"streamer", "internal/mysqlconn", "internal/position"}, "the library stays where a change of it can be seen"},
		{"github.com/go-sql-driver/mysql", []string{"internal/mysqlconn", "internal/testdb", "test"}, "connections are internal/mysqlconn's"},
		{"github.com/spf13/cobra", []string{"cmd"}, "the command line is cmd's"},
		{"github.com/schollz/progressbar", []string{"cmd"}, "only cmd prints"},
		{"os/signal", []string{"cmd", "test"}, "only cmd handles signals"},
		{"testing", []string{"internal/testdb", "test"}, "tests are no part of the product"},
	}
	for _, p := range packages(t) {
		for _, r := range rules {
			allowed := slices.ContainsFunc(r.by, func(part string) bool { return within(p.name(), part) })
			for _, i := range p.Imports {
				if within(i, r.imported) && !allowed {
					t.Errorf("%s imports %s: %s", p.name(), i, r.why)
				}
			}
		}
	}
}

func TestStateImportsTheStandardLibraryOnly(t *testing.T) {
	for _, p := range packages(t) {
		if !within(p.name(), "state") {
			continue
		}
		for _, i := range p.Imports {
			if first, _, _ := strings.Cut(i, "/"); strings.Contains(first, ".") {
				t.Errorf("%s imports %s: its value types are for every other package", p.name(), i)
			}
		}
	}
}

// goFiles calls fn with each Go file of the tree, its path from the root.
func goFiles(t *testing.T, fn func(name string, content []byte)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if path.Ext(file) != ".go" {
			return nil
		}
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // an editor's
		}
		if err != nil {
			return err
		}
		n++
		fn(filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator))), content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 100 {
		t.Fatalf("found %d Go files, that cannot be all", n)
	}
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestNoFileIsTooLong(t *testing.T) {
	goFiles(t, func(name string, content []byte) {
		if n := bytes.Count(content, []byte("\n")); n > maxLines && !generated.Match(content) {
			t.Errorf("%s has %d lines, more than %d", name, n, maxLines)
		}
	})
}

// A test that sleeps is either slow or flaky: it can wait for what it wants to
// see.
func TestNoTestSleeps(t *testing.T) {
	sleeps := []byte("time." + "Sleep(")
	goFiles(t, func(name string, content []byte) {
		if strings.HasSuffix(name, "_test.go") && bytes.Contains(content, sleeps) {
			t.Errorf("%s sleeps; wait for something that can be seen", name)
		}
	})
}
