package state

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// helperSave saves one state after the other, each with a structure of its own,
// and prints its number when Save has returned.
func helperSave(path string) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	st := sample(200)
	if s.Exists() {
		if st, err = Load(path); err != nil {
			return err
		}
	}
	fmt.Println(st.Throughput.Rows)
	for {
		st.Throughput.Rows++
		digest, err := s.PutStructure(fmt.Appendf(nil, `{"of": %d}`, st.Throughput.Rows))
		if err != nil {
			return err
		}
		st.Tables[0].Structures = []StructureSince{{Digest: digest}}
		if err := s.Save(st); err != nil {
			return err
		}
		fmt.Println(st.Throughput.Rows)
	}
}

func TestKilledWhileSaving(t *testing.T) {
	kills := 30
	if testing.Short() {
		kills = 5
	}
	path := newPath(t)
	inside := 0
	for range kills {
		acknowledged := killAtRandom(t, path)
		left := strings.Join(names(t, filepath.Dir(path)), " ")
		got := checkWhole(t, path)
		if got != acknowledged && got != acknowledged+1 {
			t.Fatalf("state of save %d is there; %d had returned", got, acknowledged)
		}
		if before := checkWhole(t, path+".bak"); before != got && before != got-1 {
			t.Fatalf("backup is of save %d beside a state of %d", before, got)
		}
		if got != acknowledged || strings.Contains(left, ".tmp") {
			inside++
		}
	}
	t.Logf("%d of %d kills hit inside Save", inside, kills)
}

// killAtRandom lets a child save for a while, kills it with SIGKILL at no
// particular moment, and returns the last save that it saw return.
func killAtRandom(t *testing.T, path string) int64 {
	t.Helper()
	child := startHelper(t, "save", path)
	var last string
	for range 3 + rand.IntN(8) {
		last = child.line(t)
	}
	<-time.After(time.Duration(rand.IntN(5000)) * time.Microsecond) // any moment must do
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest := drain(child.lines); rest != "" {
		last = rest
	}
	_ = child.Wait()
	n, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// checkWhole loads a state and the structures that it names, and returns its
// number.
func checkWhole(t *testing.T, path string) int64 {
	t.Helper()
	st := mustLoad(t, path)
	s := openStore(t, strings.TrimSuffix(path, ".bak"))
	defer s.Close()
	for _, since := range st.Tables[0].Structures {
		raw, err := s.Structure(since.Digest)
		if want := fmt.Sprintf(`{"of":%d}`, st.Throughput.Rows); err != nil || string(raw) != want {
			t.Fatalf("structure is %s, %v, want %s", raw, err, want)
		}
	}
	if _, err := os.Stat(path + ".tmp"); err == nil {
		t.Error("Open left a temporary file")
	}
	return st.Throughput.Rows
}
