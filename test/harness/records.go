package harness

import (
	"encoding/json"
	"strings"

	"github.com/copydb/copydb/state"
)

// Record is one line of a run with --json.
type Record map[string]any

// Type returns the record's type.
func (r Record) Type() string { return r.Text("type") }

// Text returns a field as text, empty if it is no text.
func (r Record) Text(field string) string {
	s, _ := r[field].(string)
	return s
}

// Number returns a field as a number, 0 if it is none.
func (r Record) Number(field string) float64 {
	n, _ := r[field].(float64)
	return n
}

// Position returns a field as a position, the zero one if it is none.
func (r Record) Position(field string) state.Position {
	var p state.Position
	if raw, err := json.Marshal(r[field]); err == nil {
		_ = json.Unmarshal(raw, &p) // the zero value then
	}
	return p
}

// Records returns the records on stdout so far. It fails the test at a whole
// line that is no record.
func (p *Process) Records() []Record {
	p.t.Helper()
	var all []Record
	for line := range strings.Lines(p.Stdout()) {
		if !strings.HasSuffix(line, "\n") {
			break // not whole yet
		}
		var r Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			p.t.Fatalf("stdout has a line that is no record: %q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// Last returns the newest record of a type, nil without one.
func (p *Process) Last(kind string) Record {
	p.t.Helper()
	var last Record
	for _, r := range p.Records() {
		if r.Type() == kind {
			last = r
		}
	}
	return last
}
