package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
)

// checkLeftovers tells of unfinished runs that the target knows of, and of
// their sessions. A run that goes on, or replaces another, sees to what is its
// own.
func checkLeftovers(ctx context.Context, r *runner) error {
	there, err := progress.Exists(ctx, r.target.conn)
	if err != nil && !errors.Is(err, progress.ErrFormat) {
		return err
	}
	if err != nil || !there {
		return nil //nolint:nilerr // the run says what it cannot read
	}
	others, err := progress.Overlapping(ctx, r.target.conn, func(string, string) bool { return true }, true)
	if err != nil {
		return err
	}
	for _, o := range others {
		mine := false
		for _, n := range o.Tables {
			mine = mine || r.in.Facts.Selection.Match(n.Database, n.Table)
		}
		if mine && (r.in.Resume != nil || len(r.in.Replaced) > 0) {
			continue
		}
		if err := r.leftover(ctx, o, mine); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) leftover(ctx context.Context, o progress.Other, mine bool) error {
	what := fmt.Sprintf("an unfinished run is known on the target (migration %s, %d tables, among them %s)", o.Migration, len(o.Tables), o.Tables[0])
	if mine {
		r.warn("unfinished_run", o.Migration, what+": a fresh run of the same tables is refused",
			"go on with its state file (--resume-state), or replace it (--start-over)")
	} else {
		r.info("unfinished_run", o.Migration, what+"; its tables are not selected here", "go on with its state file, or remove it: copydb cleanup")
	}
	for _, s := range []*side{r.source, r.target} {
		open, err := s.conn.RunSessions(ctx, o.RunID)
		if mysqlconn.IsAccessDenied(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for sessions of run %s: %w", o.RunID, err)
		}
		if len(open) > 0 {
			r.warn("open_sessions", o.RunID, fmt.Sprintf("%d sessions of that run are open on the %s (connection %d and others): it may be at work", len(open), s.name, open[0]),
				"wait for it, or stop it; what a dead run left is ended by its resume or by --start-over")
		}
	}
	return nil
}
