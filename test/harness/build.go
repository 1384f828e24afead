package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Build names one way in which the binary is built.
type Build int

const (
	// Release is what users get.
	Release Build = iota
	// HoldPoints has the tag holdpoints: a run stops at named moments, and
	// chunks can be cut by rows.
	HoldPoints
)

// builds are the binaries of this process; folder holds them.
var builds = struct {
	sync.Mutex
	folder string
	paths  map[Build]string
	errs   map[Build]error
}{paths: map[Build]string{}, errs: map[Build]error{}}

// Main runs the tests of a package that uses the harness and removes the
// binaries afterwards. It is what TestMain calls.
func Main(m *testing.M) {
	defer func() {
		builds.Lock()
		defer builds.Unlock()
		if builds.folder != "" {
			_ = os.RemoveAll(builds.folder) // it is in the folder for temporary files
		}
	}()
	m.Run()
}

// Binary returns the path of the binary, built with the first call.
func Binary(t testing.TB, b Build) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if builds.paths[b] == "" && builds.errs[b] == nil {
		builds.paths[b], builds.errs[b] = build(b)
	}
	if err := builds.errs[b]; err != nil {
		t.Fatalf("build copydb: %v", err)
	}
	return builds.paths[b]
}

// build is called with the lock held.
func build(b Build) (string, error) {
	if builds.folder == "" {
		folder, err := os.MkdirTemp("", "copydb-test-")
		if err != nil {
			return "", err
		}
		builds.folder = folder
	}
	path := filepath.Join(builds.folder, "copydb")
	args := []string{"build"}
	if b == HoldPoints {
		path += "-holdpoints"
		args = append(args, "-tags", "holdpoints")
	}
	if raceDetector {
		args = append(args, "-race")
	}
	args = append(args, "-o", path, "github.com/copydb/copydb/cmd/copydb")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %v: %w\n%s", args, err, out)
	}
	return path, nil
}
