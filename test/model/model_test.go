package model

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"
)

// histories is how many of them are tried.
func histories(n int) uint64 {
	if os.Getenv("COPYDB_TEST_LONG") != "" {
		n *= 100
	}
	return uint64(n)
}

// fail is a history that goes wrong, made as small as it gets.
type fail struct {
	seed  uint64
	world *world
	err   error
}

// search returns the first of n seeds whose history goes wrong, or nil.
func search(f *fault, names []string, n uint64) *fail {
	for seed := range n {
		source, runs := record(seed, onSource), record(seed, onRuns)
		if _, err := play(source, runs, f, names); err == nil {
			continue
		}
		small := shrink(tapes{source.tape, runs.tape}, func(t tapes) bool {
			_, err := replay(t, f, names)
			return err != nil
		})
		w, err := replay(small, f, names)
		return &fail{seed, w, err}
	}
	return nil
}

func replay(t tapes, f *fault, names []string) (*world, error) {
	return play(&choices{tape: t[onSource]}, &choices{tape: t[onRuns]}, f, names)
}

// TestNoHistoryGoesWrong is what the model is for: the design's rules, in any
// history, end with the source's rows.
func TestNoHistoryGoesWrong(t *testing.T) {
	for _, names := range append(selections, nil) {
		t.Run(cmp.Or(strings.Join(names, "+"), "any"), func(t *testing.T) {
			if x := search(none, names, histories(500)); x != nil {
				t.Errorf("seed %d: %v\n%v", x.seed, x.err, x.world)
			}
		})
	}
}

func TestPlantedFaultIsFound(t *testing.T) {
	for _, f := range planted {
		t.Run(f.name, func(t *testing.T) {
			x := search(f, f.tables, 5000)
			if x == nil {
				t.Fatalf("not found in 5000 histories; it breaks: %s", f.breaks)
			}
			t.Logf("breaks: %s\nfound by seed %d, %d lines: %v\n%v", f.breaks, x.seed, len(x.world.trace), x.err, x.world)
		})
	}
}

// TestCollisionsInTheCopyAreRepaired: REPLACE in the copy is not what makes rows
// of different instants right, the log is.
func TestCollisionsInTheCopyAreRepaired(t *testing.T) {
	if x := search(repaired, nil, histories(1000)); x != nil {
		t.Errorf("seed %d: %v\n%v", x.seed, x.err, x.world)
	}
}

// TestHistoriesAreHard counts what histories must have in them to prove anything.
func TestHistoriesAreHard(t *testing.T) {
	const tried = 300
	count := map[string]int{
		"crash before": 0, "crash after": 0, "crash while it waits": 0, "the target forgets": 0,
		"the dead run's transaction ends": 0, "the dead run's transaction fails": 0,
		"the target has the unique keys from the start": 0, "turns (": 0, "done again as REPLACE": 0,
		"exact part": 0, "voids the copies": 0, "is in the copies": 0, "carry out rename": 0,
		"carry out truncate": 0, "was carried out": 0, "stopped, and the column is made wider": 0,
	}
	for seed := range uint64(tried) {
		w, err := play(record(seed, onSource), record(seed, onRuns), none, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		text := w.String()
		for what := range count {
			if strings.Contains(text, what) {
				count[what]++
			}
		}
	}
	for what, n := range count {
		t.Logf("%s: %d of %d", what, n, tried)
		if n < tried/100 {
			t.Errorf("%q is in %d histories of %d only", what, n, tried)
		}
	}
}

// TestSeed prints the history of COPYDB_TEST_SEED, as it is without a fault.
func TestSeed(t *testing.T) {
	text := os.Getenv("COPYDB_TEST_SEED")
	if text == "" {
		t.Skip("COPYDB_TEST_SEED is not set")
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if list := os.Getenv("COPYDB_TEST_TABLES"); list != "" {
		names = strings.Split(list, "+")
	}
	w, err := play(record(seed, onSource), record(seed, onRuns), none, names)
	if t.Logf("%v", w); err != nil {
		t.Error(err)
	}
}
