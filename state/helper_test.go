package state

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// helperEnv makes the test binary act as another process of the test.
const helperEnv = "COPYDB_TEST_STATE_HELPER"

var helpers = map[string]func(path string) error{
	"hold": helperHold,
	"save": helperSave,
	"full": helperFull,
}

func TestMain(m *testing.M) {
	name := os.Getenv(helperEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := helpers[name](os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process is a helper and the lines that it prints.
type process struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func startHelper(t *testing.T, name, path string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, path)
	cmd.Env = append(os.Environ(), helperEnv+"="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{cmd, bufio.NewScanner(out)}
}

// line returns the next line that the helper prints.
func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("helper ended: %v", p.lines.Err())
	}
	return p.lines.Text()
}

// helperHold holds the lock until it is killed.
func helperHold(path string) error {
	if _, err := Open(path); err != nil {
		return err
	}
	fmt.Println("held")
	select {}
}

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// sample returns a state with n tables that Save takes.
func sample(n int) *State {
	s, err := New("1.2.3", testTime)
	if err != nil {
		panic(err)
	}
	s.Phase = PhaseSnapshot
	at := Position{File: "binlog.000003", Pos: 1200, GTIDSet: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"}
	s.Sources = []Source{{Server: Server{Flavor: "mysql", Host: "a", Port: 3306}, LastResumable: at, LastStreamed: at}}
	for i := range n {
		s.Tables = append(s.Tables, Table{
			Database: "shop", Table: Text(fmt.Sprintf("orders_%05d", i)), Status: TableCopying, Class: ClassConverging,
			Rows: int64(i), Bytes: 1 << 20, Start: at, FirstChunk: &at, LastChunk: &at,
			Done: []Range{{To: []Text{"1000"}}, {After: []Text{"2000"}, To: []Text{"3\xff00"}}},
		})
	}
	return s
}

func openStore(t *testing.T, path string) *Store {
	t.Helper()
	s, err := open(path, func() time.Time { return testTime })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustSave(t *testing.T, s *Store, st *State) {
	t.Helper()
	if err := s.Save(st); err != nil {
		t.Fatal(err)
	}
}

func mustLoad(t *testing.T, path string) *State {
	t.Helper()
	st, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names returns the names in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "STATE") }

// asFileError fails unless err is a FileError of that kind with one line of
// text.
func asFileError(t *testing.T, err, kind error) *FileError {
	t.Helper()
	var fe *FileError
	if !errors.As(err, &fe) || !errors.Is(err, kind) {
		t.Fatalf("error is %v (%T), want a FileError of kind %q", err, err, kind)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Fatalf("error has several lines: %q", err)
	}
	return fe
}

func toMap(t *testing.T, content string) map[string]any {
	t.Helper()
	var m map[string]any
	dec := json.NewDecoder(strings.NewReader(content))
	dec.UseNumber() // a float64 would change the large ones
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

func drain(r *bufio.Scanner) (last string) {
	for r.Scan() {
		last = r.Text()
	}
	return last
}
