package copydb

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/copydb/copydb/dumper"
	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/streamer"
)

// Where the copy can only start at the begin of the source's current log file,
// a part of the log is older than the snapshots. It is looked through before
// anything is copied: a table's changes up to its last DDL there are in every
// snapshot, and have another structure than the one that is copied.

// startsOf returns where each table's copy starts: behind its last DDL of that
// part.
func (r *run) startsOf(ctx context.Context, start *dumper.Start) (map[table.Name]state.Position, error) {
	out := map[table.Name]state.Position{}
	var names []table.Name
	for _, t := range start.Tables {
		names = append(names, t.FullName())
		out[t.FullName()] = start.Position
	}
	if start.Until.IsZero() {
		return out, nil
	}
	found, err := r.firstPass(ctx, start.Position, start.Until, names)
	if err != nil {
		return nil, err
	}
	if len(found.Foreign) > 0 {
		return nil, &Error{Code: ExitResumable, Where: found.Foreign[0].Position.String(), Err: found.Foreign[0],
			Message: "the source's current log file, from whose begin the copy has to start, has what cannot be applied",
			Next:    r.newFile() + "; then resume: " + r.resumeCommand()}
	}
	maps.Copy(out, found.LastDDL)
	return out, nil
}

func (r *run) firstPass(ctx context.Context, from, until state.Position, names []table.Name) (*streamer.Scanned, error) {
	conf := r.dumpConfig()
	conf.Start = from
	found, err := streamer.Scan(ctx, conf, names, until)
	if err != nil {
		return nil, r.asStreamError(err)
	}
	return found, nil
}

// newFile is the way out of a log file that the copy cannot start in.
func (r *run) newFile() string {
	return "let an account with RELOAD run FLUSH BINARY LOGS on the source, or GRANT RELOAD ON *.* TO " + r.facts.Source.Account
}

// checkFirstPass says in the preflight of a fresh run what would stop it as soon
// as it has taken its start positions.
func (r *run) checkFirstPass(ctx context.Context) ([]check.Finding, error) {
	if r.adopted || r.facts.Rung != position.RungFileStart || r.facts.End.File == "" {
		return nil, nil
	}
	var names []table.Name
	for _, t := range r.facts.Tables {
		names = append(names, t.FullName())
	}
	found, err := r.firstPass(ctx, state.Position{File: r.facts.End.File, Pos: 4}, r.facts.End, names)
	var stop *streamer.StopError
	if errors.As(err, &stop) {
		found, err = &streamer.Scanned{Foreign: []*streamer.StopError{stop}}, nil
	}
	if err != nil {
		return nil, err
	}
	var out []check.Finding
	for _, f := range found.Foreign {
		object := f.Position.String()
		if f.Table != (table.Name{}) {
			object = f.Table.String()
		}
		out = append(out, check.Finding{ID: "log_before_start", Severity: check.SeverityError, Object: object,
			Message: fmt.Sprintf("the copy has to start at the begin of the source's current log file, which has at %s: %s", f.Position, f.Reason),
			Fix:     r.newFile()})
	}
	return out, nil
}
