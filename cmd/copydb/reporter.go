package main

import (
	"sync"
	"time"

	"github.com/copydb/copydb/copydb"
)

// reporter is what a run reports to. It passes everything on to the printer that
// was asked for, thins out progress, and keeps what the end of the run needs.
type reporter struct {
	to       copydb.Reporter
	interval time.Duration // between two progress records that are passed on
	live     func(copydb.ProgressRecord)

	mu       sync.Mutex
	shown    time.Time // when progress was last passed on
	progress *copydb.ProgressRecord
	summary  *copydb.SummaryRecord
	failed   *copydb.ExitErrorRecord
}

// Report implements copydb.Reporter.
func (r *reporter) Report(rec copydb.Record) {
	if r.keep(rec) {
		r.to.Report(rec)
	}
}

// keep notes rec and reports whether it is to be passed on.
func (r *reporter) keep(rec copydb.Record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch rec := rec.(type) {
	case copydb.ProgressRecord:
		return r.keepProgress(rec)
	case copydb.SummaryRecord:
		r.summary = &rec
	case copydb.ExitErrorRecord:
		r.failed = &rec
	}
	return true
}

func (r *reporter) keepProgress(rec copydb.ProgressRecord) bool {
	newPhase := r.progress != nil && r.progress.Phase != rec.Phase
	r.progress = &rec
	if r.live != nil {
		r.live(rec)
		return false
	}
	now := time.Now()
	if r.shown.IsZero() {
		r.shown = now // the first line comes after one interval
	}
	if now.Sub(r.shown) < r.interval && !newPhase {
		return false
	}
	r.shown = now
	return true
}

// ended returns what the run has said of its end; nil where it said nothing.
func (r *reporter) ended() (*copydb.SummaryRecord, *copydb.ExitErrorRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.summary, r.failed
}

// lastProgress returns the newest progress, or nil.
func (r *reporter) lastProgress() *copydb.ProgressRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}
