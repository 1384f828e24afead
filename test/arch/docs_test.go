package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link       = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	makeTarget = regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	codeFile   = regexp.MustCompile("`([a-z]+/[a-z/]+(?:_[a-z]+)?\\.go)`")
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// TestDocuments checks what documents point at: other documents and their
// headings, targets of the Makefile, files of code.
func TestDocuments(t *testing.T) {
	makefile := read(t, "Makefile")
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(names, filepath.Join(root, "README.md")) {
		name := strings.TrimPrefix(filepath.ToSlash(file), root+"/")
		text := read(t, name)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target := name
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(name), m[1])
			}
			if m[2] != "" && !anchors(read(t, target))[m[2][1:]] {
				t.Errorf("%s: %s has no heading %s", name, target, m[2])
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", name, m[1])
			}
		}
		for _, m := range codeFile.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// anchors are the names under which headings can be linked to.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
				return r
			case r >= 'A' && r <= 'Z':
				return r + 'a' - 'A'
			case r == ' ':
				return '-'
			}
			return -1
		}, m[1])
		out[name] = true
	}
	return out
}
