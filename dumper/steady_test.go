package dumper

import (
	"testing"

	"github.com/copydb/copydb/state"
)

// An answer that another session's SHOW STATUS got into is not taken.
func TestSteadyPosition(t *testing.T) {
	mine := state.Position{File: "binlog.000007", Pos: 900}
	torn := state.Position{File: "binlog.000008", Pos: 900}
	answers := []state.Position{torn, mine, mine, torn, torn}
	for range steadyReads {
		answers = append(answers, mine)
	}
	n := 0
	got, err := steady(func() (state.Position, error) {
		n++
		return answers[n-1], nil
	})
	if err != nil || got != mine || n != len(answers) {
		t.Errorf("%v after %d reads, %v", got, n, err)
	}
	n = 0
	_, err = steady(func() (state.Position, error) {
		n++
		return state.Position{File: "binlog.000007", Pos: uint64(n)}, nil
	})
	if err == nil {
		t.Error("a position that never stays the same is taken")
	}
}
