package copydb

import (
	"context"
	"errors"
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/state"
)

// end says the last words of a run and releases what Run itself holds.
func (r *run) end(ctx context.Context, err error) error {
	err = r.explain(ctx, err)
	if r.store != nil && r.st != nil && r.written {
		switch serr := r.saveStop(err); {
		case serr != nil && err == nil:
			err = serr
		case serr != nil:
			r.log.Warn("could not save how the run ended", "error", serr)
		}
	}
	s := r.summary(err)
	if err != nil {
		r.report(r.exitError(err))
	}
	if !r.opt.DryRun || err != nil {
		r.report(s)
	}
	if r.store != nil {
		if cerr := r.store.Close(); cerr != nil {
			r.log.Warn("could not release the state file", "error", cerr)
		}
	}
	r.closeServers()
	return err
}

// saveStop keeps how the run ended.
func (r *run) saveStop(err error) error {
	stop := &state.Stop{At: time.Now().UTC(), ExitCode: ExitCode(err), Reason: "done"}
	if err != nil {
		stop.Reason, stop.Message = "error", err.Error()
		var se *StopError
		if errors.As(err, &se) {
			stop.Reason = se.Reason
		}
	}
	moved := r.meter.moves()
	r.change(func(st *state.State) {
		st.LastStop = stop
		st.Throughput.Rows += moved.Rows
		st.Throughput.Bytes += moved.Bytes
		st.Throughput.Transactions += moved.Transactions
		st.Throughput.Seconds += time.Since(r.began).Seconds()
	})
	return r.checkpoint()
}

// explain gives an error its exit code, its place and what to do next. It is the
// one place where codes of errors from below are chosen.
func (r *run) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if stop := Stopped(ctx); stop != nil {
		return stop
	}
	if _, ok := asType[*Error](err); ok {
		return err
	}
	if stop, ok := asType[*StopError](err); ok {
		return stop
	}
	if p, ok := asType[*group.PanicError](err); ok {
		r.log.Debug("stack of the crash", "stack", string(p.Stack))
		return &Error{Code: ExitFailed, Where: p.Goroutine, Err: err, Next: "report this; the state is saved and can be resumed"}
	}
	e := &Error{Code: ExitFailed, Err: err}
	if r.st != nil && (r.written || r.adopted) {
		e.Code = ExitResumable
		e.Next = "mend the cause, then resume: " + r.resumeCommand()
	}
	switch {
	case errors.Is(err, progress.ErrFormat):
		e.Code, e.Where, e.Next = ExitState, "target", "go on with the version of the program that began the migration"
	case errors.Is(err, progress.ErrFenced):
		e.Code, e.Where, e.Next = ExitState, "target", "let the other run go on, or stop it and resume: "+r.resumeCommand()
	case mysqlconn.IsConnectionLost(err) || mysqlconn.IsReadOnly(err):
		e.Where = serverOf(err)
	}
	if a, ok := asType[*applier.ApplyError](err); ok {
		e.Where = a.Table
	}
	if k, ok := asType[keyed](err); ok && r.opt.ShowKeys {
		e.Key = k.KeyText()
	}
	return e
}

// keyed is an error about a row, or about a range of rows.
type keyed interface {
	error
	KeyText() string
}

// serverOf names the server that an error speaks of, where it does.
func serverOf(err error) string {
	if lost, ok := asType[*mysqlconn.LostError](err); ok {
		return lost.Server
	}
	return ""
}

func (r *run) exitError(err error) ExitErrorRecord {
	rec := ExitErrorRecord{ExitCode: ExitCode(err), Message: err.Error()}
	if e, ok := asType[*Error](err); ok {
		rec.Where, rec.Key, rec.Next = e.Where, e.Key, e.Next
		rec.Message = (&Error{Message: e.Message, Err: e.Err}).Error()
	} else if _, ok := asType[*StopError](err); ok && r.written {
		rec.Next = "go on with: " + r.resumeCommand()
	}
	return rec
}

func (r *run) summary(err error) SummaryRecord {
	s := SummaryRecord{ExitCode: ExitCode(err), Seconds: time.Since(r.began).Seconds(), SinceThen: -1, SourceClean: r.clean,
		LeftOut: r.leftOut(), LeftBehind: []string{}, Phases: []PhaseTotal{}, Tables: []TableRecord{}}
	r.meter.totals(&s)
	if r.st == nil {
		return s
	}
	r.mu.Lock()
	s.Phase = r.st.Phase
	if len(r.st.Sources) > 0 {
		s.StopPoint = r.st.Sources[0].StopPoint
	}
	for i := range r.st.Tables {
		t := &r.st.Tables[i]
		rec := TableRecord{Database: string(t.Database), Table: string(t.Table), Rows: t.Rows, Bytes: t.Bytes, Status: t.Status}
		if tr := r.tables[nameOf(t.Database, t.Table)]; tr != nil {
			rec.Seconds = tr.took.Seconds()
		}
		s.Tables = append(s.Tables, rec)
	}
	r.mu.Unlock()
	if err == nil {
		s.SinceThen, s.LeftBehind = r.since, append(s.LeftBehind, r.leftBehind...)
		if !r.stopAt.IsZero() {
			at := r.stopAt.UTC()
			s.StopPointAt = &at
		}
	} else if r.written {
		s.LeftBehind = append(s.LeftBehind, "what is copied so far, and database _copydb, by which this state can be resumed")
	}
	if r.redoListed() {
		s.LeftBehind = append(s.LeftBehind, "the target's redo log, which may be off (target.fast_load): a resume or `copydb cleanup` switches it on")
	}
	if r.written {
		s.ResumeCommand = r.resumeCommand()
	}
	return s
}
