package progress

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// The table of heartbeats is made only where replicas of the target are watched:
// a beat that a replica has got says that it has got all that was committed
// before.

// EnsureHeartbeat makes the table where it is not there.
func EnsureHeartbeat(ctx context.Context, c *mysqlconn.Control) error {
	_, err := c.Exec(ctx, `CREATE TABLE IF NOT EXISTS _copydb.heartbeat (
		migration VARBINARY(32) NOT NULL PRIMARY KEY,
		run_id VARBINARY(32) NOT NULL,
		beat BIGINT NOT NULL
	) ENGINE=InnoDB`)
	if err != nil {
		return fmt.Errorf("make %s.heartbeat on the target: %w", Database, err)
	}
	return nil
}

// Beat writes the run's beat of that number.
func (s *Store) Beat(ctx context.Context, c *mysqlconn.Control, runID string, beat int64) error {
	_, err := c.Exec(ctx, "REPLACE INTO _copydb.heartbeat (migration, run_id, beat) VALUES (?, ?, ?)", s.Migration, runID, beat)
	if err != nil {
		return fmt.Errorf("write a heartbeat on the target: %w", err)
	}
	return nil
}

// LastBeat reads, on a replica, the newest beat of the run that has come there; 0
// where none has.
func (s *Store) LastBeat(ctx context.Context, c *mysqlconn.Control, runID string) (int64, error) {
	var beat int64
	err := c.QueryRow(ctx, []any{&beat}, "SELECT beat FROM _copydb.heartbeat WHERE migration = ? AND run_id = ?", s.Migration, runID)
	if errors.Is(err, sql.ErrNoRows) || mysqlconn.IsTableGone(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the heartbeat: %w", err)
	}
	return beat, nil
}
