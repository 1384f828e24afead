package progress

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// The cutter knows what was read of a segment, not what is committed of it: a
// cut must not say that rows are there.
func TestSplitNotesNothingAsCopied(t *testing.T) {
	s := &Store{Migration: "m"}
	first := Range{Number: 3, After: []state.Text{"1"}, To: []state.Text{"read, not written"}, Until: []state.Text{"7"}, Rows: 987654, Bytes: 987655}
	note := s.SplitSQL(table.Name{Database: "d", Table: "t"}, first, Range{Number: 4, After: first.Until})[0]
	if strings.Contains(strings.ToLower(note), hex.EncodeToString(blob(first.To))) || strings.Contains(note, "98765") {
		t.Errorf("the cut notes what was only read: %s", note)
	}
	for _, bound := range [][]state.Text{first.After, first.Until} {
		if !strings.Contains(strings.ToLower(note), hex.EncodeToString(blob(bound))) {
			t.Errorf("the cut lacks the bound %s: %s", bound, note)
		}
	}
}
