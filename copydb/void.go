package copydb

import (
	"context"
	"fmt"

	"github.com/copydb/copydb/dumper"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// maxRestarts is how often one table is copied again in one run because it was
// changed on the source meanwhile.
const maxRestarts = 10

// voidedError says that a DDL lies between the start of some tables' copies and
// their last chunks: what was copied mixes two structures.
type voidedError struct {
	tables []table.Name
	query  string
	at     state.Position
}

// Error names the first table.
func (e *voidedError) Error() string {
	return fmt.Sprintf("table %s was changed on the source at %s, while it was copied: %s", e.tables[0], e.at, e.query)
}

// restartVoided voids the tables that err says have changed while they were
// copied; only they begin again. It reports whether there were any.
func (r *run) restartVoided(ctx context.Context, err error) (bool, error) {
	var names []table.Name
	if v, ok := asType[*voidedError](err); ok {
		names = v.tables
	} else if c, ok := asType[*dumper.ChangedError](err); ok {
		names = []table.Name{c.Table}
	}
	for _, n := range names {
		if r.restarts[n]++; r.restarts[n] > maxRestarts {
			return false, &Error{Code: ExitResumable, Where: n.String(), Err: err,
				Message: fmt.Sprintf("the table was copied %d times and changed on the source each time", maxRestarts),
				Next:    "stop changing it, then resume: " + r.resumeCommand()}
		}
		r.log.Warn("a table was changed on the source while it was copied; its copy begins again", "table", n.String(), "cause", err)
		if err := r.restartTable(ctx, n); err != nil {
			return false, err
		}
	}
	return len(names) > 0, nil
}

// asTableGone gives a table that is not on the source any more its exit code.
func (r *run) asTableGone(err error) error {
	if mysqlconn.IsTableGone(err) {
		return &Error{Code: ExitFailed, Where: "source", Err: err, Message: "a selected table has gone since the run began",
			Next: "begin again: " + r.overCommand()}
	}
	return err
}
