package copydb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/copydb/copydb/dumper"
	"github.com/copydb/copydb/internal/mysqlconn"
)

// asideEvery is how often the source is asked for sessions that wait.
const asideEvery = 200 * time.Millisecond

// stepAside looks, as long as there is work, for sessions of the source that
// wait for the metadata lock of a table that is being read, and makes its reader
// end its snapshot at once: behind a DDL that waits, every query on the table
// waits. Without the PROCESS privilege others' sessions cannot be seen; a DDL
// then waits until the chunk is read.
func (c *copier) stepAside(ctx context.Context) error {
	conn, err := c.r.source.Open(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := boundIdle(ctx, conn); err != nil {
		return err
	}
	for {
		waiting, err := waitingStatements(ctx, conn, c.r.facts.Source.Identity.Version.Flavor)
		if err != nil {
			return err
		}
		if len(waiting) > 0 {
			c.asideFor(waiting)
		}
		if more, err := c.pause(ctx, asideEvery); err != nil || !more {
			return err
		}
	}
}

// boundIdle makes the source end a session that is used all the time, once the
// run is cut off from it.
func boundIdle(ctx context.Context, conn *mysqlconn.Control) error {
	if _, err := conn.Exec(ctx, "SET SESSION wait_timeout = 60, lock_wait_timeout = 5"); err != nil {
		return fmt.Errorf("set up a session on the source: %w", err)
	}
	return nil
}

// processList is the table of a server's sessions. MySQL's list in
// information_schema fails for a statement outside utf8mb3.
func processList(flavor mysqlconn.Flavor) string {
	if flavor == mysqlconn.MySQL {
		return "performance_schema.processlist"
	}
	return "information_schema.PROCESSLIST"
}

// waitingStatements returns what the waiting sessions want to do. A source that
// does not say it is taken to have none: readers step aside as a favour.
func waitingStatements(ctx context.Context, conn *mysqlconn.Control, flavor mysqlconn.Flavor) ([]string, error) {
	list := processList(flavor)
	var out []string
	err := conn.Query(ctx, func(rows *sql.Rows) error {
		var text sql.NullString
		if err := rows.Scan(&text); err != nil {
			return err
		}
		out = append(out, strings.ToLower(text.String))
		return nil
	}, "SELECT INFO FROM "+list+" WHERE STATE = 'Waiting for table metadata lock'")
	if mysqlconn.ErrorNumber(err) != 0 && !mysqlconn.IsConnectionLost(err) {
		return nil, nil
	}
	return out, err
}

// asideFor tells the readers of every table that one of the statements names.
func (c *copier) asideFor(statements []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.active {
		name := strings.ToLower(p.table.name.Table)
		for _, text := range statements {
			if strings.Contains(text, name) {
				p.segment.StepAside()
			}
		}
	}
}

// isLockedOut reports that a reader waited too long for a table's metadata lock:
// somebody changes the table, or waits to.
func isLockedOut(err error) bool {
	var read *dumper.ReadError
	return errors.As(err, &read) && mysqlconn.ErrorNumber(err) == 1205
}
