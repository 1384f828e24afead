package dumper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// Config is what a Dumper needs. Identity is the server that every session must
// prove to be.
type Config struct {
	Source   *mysqlconn.Server
	Identity mysqlconn.Identity
	Rung     position.Rung
	// AllowLocks permits LOCK TABLES … READ: for the instant that an exact position
	// may need, and for the read of a table that is in no snapshot.
	AllowLocks bool
	Logger     *slog.Logger
}

// Dumper reads snapshots of one source.
type Dumper struct {
	cfg       Config
	snapshots sync.Mutex // held while a snapshot's position is asked for
}

// New checks cfg and opens nothing.
func New(cfg Config) (*Dumper, error) {
	if cfg.Source == nil || cfg.Logger == nil {
		return nil, errors.New("dumper needs a source and a logger")
	}
	return &Dumper{cfg: cfg}, nil
}

// ChangedError is returned where a table is not what it was when its start
// position was taken: its copy would mix two structures.
type ChangedError struct {
	Table table.Name
	What  string
}

// Error says which table changed and how.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("table %s was changed on the source while it was copied: %s", e.Table, e.What)
}

// setup are the statements that make a session read exactly what is stored.
func (d *Dumper) setup() []string {
	out := []string{
		"SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+00:00', sql_quote_show_create = 1," +
			" lock_wait_timeout = 5, wait_timeout = 60, net_write_timeout = 120",
		"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
	}
	if d.flavor() == mysqlconn.MariaDB {
		out = append(out, "SET SESSION idle_transaction_timeout = 60, max_statement_time = 0")
	} else {
		out = append(out, "SET SESSION max_execution_time = 0")
	}
	return out
}

func (d *Dumper) flavor() mysqlconn.Flavor { return d.cfg.Identity.Version.Flavor }

// openSession opens a session that has proved to be the run's server and to
// hold everything up to start.
func (d *Dumper) openSession(ctx context.Context, start state.Position) (*mysqlconn.Session, error) {
	s, err := d.cfg.Source.OpenSession(ctx, d.setup()...)
	if err != nil {
		return nil, err
	}
	if err := d.prove(ctx, s, start); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (d *Dumper) prove(ctx context.Context, s *mysqlconn.Session, start state.Position) error {
	gtids := "''"
	switch {
	case d.cfg.Rung == position.RungGTID:
		gtids = "@@global.gtid_executed"
	case d.flavor() == mysqlconn.MariaDB:
		gtids = "@@global.gtid_binlog_pos"
	}
	row, err := s.QueryRow(ctx, mysqlconn.IdentityQuery(d.flavor())+", "+gtids)
	if err != nil {
		return fmt.Errorf("identify the source: %w", err)
	}
	if err := d.cfg.Identity.Prove(string(row[0])); err != nil {
		return err
	}
	if start.GTIDSet == "" {
		return nil
	}
	return d.holds(string(row[1]), start.GTIDSet)
}

// holds checks that the server has executed everything in want.
func (d *Dumper) holds(have, want string) error {
	h, err := position.Parse(d.flavor(), have)
	if err != nil {
		return fmt.Errorf("parse the source's GTIDs: %w", err)
	}
	w, err := position.Parse(d.flavor(), want)
	if err != nil {
		return fmt.Errorf("parse the start position: %w", err)
	}
	if !h.Contains(w) {
		return fmt.Errorf("the source has %s and lacks transactions of the start position %s", have, want)
	}
	return nil
}

const beginSnapshot = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"

func openSnapshot(ctx context.Context, s *mysqlconn.Session) error {
	if _, err := s.Exec(ctx, beginSnapshot); err != nil {
		return fmt.Errorf("open a snapshot: %w", err)
	}
	return nil
}

func endSnapshot(ctx context.Context, s *mysqlconn.Session) error {
	if _, err := s.Exec(ctx, "ROLLBACK"); err != nil {
		return fmt.Errorf("end the snapshot: %w", err)
	}
	return nil
}
