package main

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/copydb/copydb/copydb"
)

// schemaVersion is that of the records on stdout.
const schemaVersion = 1

// jsonReporter writes records to stdout, one per line.
type jsonReporter struct {
	out io.Writer

	mu  sync.Mutex
	ids copydb.RunRecord
}

// Report implements copydb.Reporter.
func (r *jsonReporter) Report(rec copydb.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ids, ok := rec.(copydb.RunRecord); ok {
		r.ids = ids
	}
	r.write(rec.Kind(), filled(rec))
}

// write prints body, an object, behind the fields that every record has.
func (r *jsonReporter) write(kind string, body any) {
	head, err := json.Marshal(struct {
		Type          string `json:"type"`
		SchemaVersion int    `json:"schema_version"`
		Time          string `json:"time"`
		MigrationID   string `json:"migration_id"`
		RunID         string `json:"run_id"`
	}{kind, schemaVersion, time.Now().UTC().Format(time.RFC3339Nano), r.ids.MigrationID, r.ids.RunID})
	if err != nil {
		return
	}
	if _, isRun := body.(copydb.RunRecord); isRun {
		body = map[string]any{"state": r.ids.StatePath, "resumed": r.ids.Resumed}
	}
	rest, err := json.Marshal(body)
	if err != nil || len(rest) < 2 || rest[0] != '{' {
		return
	}
	var line bytes.Buffer
	line.Write(head[:len(head)-1])
	if len(rest) > 2 {
		line.WriteByte(',')
	}
	line.Write(rest[1:])
	line.WriteByte('\n')
	_, _ = r.out.Write(line.Bytes())
}

// filled replaces lists that are nil, so that a reader always finds a list.
func filled(rec copydb.Record) copydb.Record {
	switch rec := rec.(type) {
	case copydb.SummaryRecord:
		rec.LeftOut, rec.LeftBehind = list(rec.LeftOut), list(rec.LeftBehind)
		rec.Phases, rec.Tables = list(rec.Phases), list(rec.Tables)
		return rec
	case copydb.PlanRecord:
		rec.Tables, rec.Order, rec.LeftOut = list(rec.Tables), list(rec.Order), list(rec.LeftOut)
		return rec
	}
	return rec
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
