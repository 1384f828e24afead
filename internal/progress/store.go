package progress

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// ErrFenced is returned when another run has taken the migration over.
var ErrFenced = errors.New("another run has taken this migration over")

// ErrForgotten is returned when the target is as it was before this run took the
// migration: it was restarted and has lost commits, or is another copy. The run
// may take it again.
var ErrForgotten = errors.New("the target has lost what this run committed to it")

// Store names one run's hold on a migration. Epoch is what Begin returned.
type Store struct {
	Migration string
	Epoch     uint64
}

// Doc is what the target keeps of a migration as a whole.
type Doc struct {
	Phase           state.Phase  `json:"phase"`
	SelectionDigest string       `json:"selection_digest"`
	Source          state.Source `json:"source"`
	RunID           string       `json:"run_id"`
	// TargetStarted is when the target's server was started, as it said when the
	// document was written: rows of engines that do not survive a restart are
	// copied again after one. Unix seconds; 0 = not known.
	TargetStarted int64 `json:"target_started"`
	// SnapshotServer is the server that the snapshots were read on: only in its log
	// do the places of first and last chunks mean anything.
	SnapshotServer string `json:"snapshot_server"`
	// SwitchedOn are settings of the target's server to put back.
	SwitchedOn []state.Setting `json:"switched_on_target,omitempty"`
	// XAUnseen says that a start position was taken without a look at prepared XA
	// transactions.
	XAUnseen bool `json:"xa_unseen"`
}

// Record is everything the target knows of a migration.
type Record struct {
	Doc      Doc
	Epoch    uint64
	RunID    string // of the run that holds the epoch
	LowWater state.Position
	// LogFingerprint is that of the file of LowWater; "" before anything was
	// applied.
	LogFingerprint string
	SpillFiles     []string // that a stream from LowWater needs
	Streamed       state.Position
	HighWater      state.Position
	Marker         Marker
	Tables         []state.Table // without Done
	Ranges         map[table.Name][]Range
	Journal        []Entry
	Finished       bool
	Structures     map[string]json.RawMessage
}

// Range is one segment of a table's keys: After < key <= Until, of which After <
// key <= To is on the target. Empty bounds are open; To is empty while nothing
// is there, and, where Until is open, once everything is.
type Range struct {
	Number int
	After  []state.Text
	To     []state.Text
	Until  []state.Text
	Done   bool // the whole segment is there
	Rows   int64
	Bytes  int64
}

// Marker says how many changes of exact tables are done of the transaction that
// begins at Start: such a change must not be made twice. It is zero where the
// last transaction is done whole.
type Marker struct {
	Start state.Position `json:"start"`
	GTID  string         `json:"gtid"`
	Done  int64          `json:"done"`
}

// Entry is one object that the migration made, was about to make, or took over.
type Entry struct {
	Number   int
	Kind     string // database, table, used_table
	Database string
	Name     string
	Done     bool
}

// tableKey is a key for a table's name that no length limit or collation
// touches.
func tableKey(n table.Name) string {
	sum := sha256.Sum256([]byte(n.Database + "\x00" + n.Table))
	return string(sum[:])
}

func blob(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshal %T: %v", v, err)) // plain data: cannot fail
	}
	return b
}

// Begin takes the migration for this run: it raises the epoch, which waits for
// transactions of the run before that hold it. The migration is made where it
// is not known.
func Begin(ctx context.Context, c *mysqlconn.Control, migration, runID string) (*Store, error) {
	_, err := c.Exec(ctx, "INSERT INTO _copydb.epoch (migration, epoch, run_id) VALUES (?, 1, ?)"+
		" ON DUPLICATE KEY UPDATE epoch = epoch + 1, run_id = ?", migration, runID, runID)
	if err != nil {
		return nil, fmt.Errorf("raise the epoch of the migration: %w", err)
	}
	s := &Store{Migration: migration}
	if err := c.QueryRow(ctx, []any{&s.Epoch}, "SELECT epoch FROM _copydb.epoch WHERE migration = ?", migration); err != nil {
		return nil, fmt.Errorf("read the epoch of the migration: %w", err)
	}
	if err := hold.Point(ctx, "epoch_raised"); err != nil {
		return nil, err
	}
	empty := blob(state.Position{})
	_, err = c.Exec(ctx, "INSERT IGNORE INTO _copydb.migration (migration, doc, low_water, streamed, high_water, marker) VALUES (?, '{}', ?, ?, ?, '{}')",
		migration, empty, empty, empty)
	if err != nil {
		return nil, fmt.Errorf("note the migration: %w", err)
	}
	return s, nil
}

// Load reads everything the target knows of a migration; nil where it knows
// nothing.
func Load(ctx context.Context, c *mysqlconn.Control, migration string) (*Record, error) {
	r := &Record{Ranges: map[table.Name][]Range{}, Structures: map[string]json.RawMessage{}}
	err := c.QueryRow(ctx, []any{&r.Epoch, &r.RunID}, "SELECT epoch, run_id FROM _copydb.epoch WHERE migration = ?", migration)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the migration's epoch: %w", err)
	}
	for _, step := range []func(context.Context, *mysqlconn.Control, string) error{
		r.loadMigration, r.loadTables, r.loadRanges, r.loadJournal, r.loadStructures} {
		if err := step(ctx, c, migration); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Record) loadMigration(ctx context.Context, c *mysqlconn.Control, migration string) error {
	var doc, low, streamed, high, marker []byte
	err := c.QueryRow(ctx, []any{&r.Finished, &doc, &low, &streamed, &high, &marker},
		"SELECT finished, doc, low_water, streamed, high_water, marker FROM _copydb.migration WHERE migration = ?", migration)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // a run ended within its first Begin
	}
	if err != nil {
		return fmt.Errorf("read the migration's record: %w", err)
	}
	var water Low
	for _, p := range []struct {
		raw []byte
		dst any
	}{{doc, &r.Doc}, {low, &water}, {streamed, &r.Streamed}, {high, &r.HighWater}, {marker, &r.Marker}} {
		if err := json.Unmarshal(p.raw, p.dst); err != nil {
			return fmt.Errorf("parse the migration's record: %w", err)
		}
	}
	r.LowWater, r.LogFingerprint, r.SpillFiles = water.Position, water.LogFingerprint, water.SpillFiles
	return nil
}

func (r *Record) loadTables(ctx context.Context, c *mysqlconn.Control, migration string) error {
	return query(ctx, c, "tables", func(rows *sql.Rows) error {
		var raw []byte
		if err := rows.Scan(&raw); err != nil {
			return err
		}
		var t state.Table
		if err := json.Unmarshal(raw, &t); err != nil {
			return err
		}
		r.Tables = append(r.Tables, t)
		return nil
	}, "SELECT doc FROM _copydb.tables WHERE migration = ? ORDER BY database_name, table_name", migration)
}

func (r *Record) loadRanges(ctx context.Context, c *mysqlconn.Control, migration string) error {
	return query(ctx, c, "ranges", func(rows *sql.Rows) error {
		var db, name, after, to, until []byte
		var g Range
		if err := rows.Scan(&db, &name, &g.Number, &after, &to, &until, &g.Done, &g.Rows, &g.Bytes); err != nil {
			return err
		}
		if err := errors.Join(json.Unmarshal(after, &g.After), json.Unmarshal(to, &g.To), json.Unmarshal(until, &g.Until)); err != nil {
			return err
		}
		n := table.Name{Database: string(db), Table: string(name)}
		r.Ranges[n] = append(r.Ranges[n], g)
		return nil
	}, "SELECT t.database_name, t.table_name, r.number, r.range_after, r.range_to, r.range_until, r.done, r.row_count, r.byte_count"+
		" FROM _copydb.ranges r JOIN _copydb.tables t ON t.migration = r.migration AND t.table_key = r.table_key"+
		" WHERE r.migration = ? ORDER BY r.table_key, r.number", migration)
}

func (r *Record) loadJournal(ctx context.Context, c *mysqlconn.Control, migration string) error {
	return query(ctx, c, "journal", func(rows *sql.Rows) error {
		var e Entry
		if err := rows.Scan(&e.Number, &e.Kind, &e.Database, &e.Name, &e.Done); err != nil {
			return err
		}
		r.Journal = append(r.Journal, e)
		return nil
	}, "SELECT number, kind, database_name, object_name, done FROM _copydb.journal WHERE migration = ? ORDER BY number", migration)
}

func (r *Record) loadStructures(ctx context.Context, c *mysqlconn.Control, migration string) error {
	return query(ctx, c, "structures", func(rows *sql.Rows) error {
		var digest string
		var raw []byte
		if err := rows.Scan(&digest, &raw); err != nil {
			return err
		}
		r.Structures[digest] = raw
		return nil
	}, "SELECT digest, structure FROM _copydb.structures WHERE migration = ?", migration)
}

func query(ctx context.Context, c *mysqlconn.Control, what string, scan func(*sql.Rows) error, q string, args ...any) error {
	if err := c.Query(ctx, scan, q, args...); err != nil {
		return fmt.Errorf("read the migration's %s: %w", what, err)
	}
	return nil
}

// Other is a migration of another run on the same target.
type Other struct {
	Migration, RunID string
	Tables           []table.Name // those that are also selected here
}

// Overlapping lists the migrations that share a table for which selected is
// true: only unfinished ones, or all.
func Overlapping(ctx context.Context, c *mysqlconn.Control, selected func(database, table string) bool, onlyUnfinished bool) ([]Other, error) {
	var out []Other
	err := query(ctx, c, "neighbours", func(rows *sql.Rows) error {
		var id, run, db, name string
		if err := rows.Scan(&id, &run, &db, &name); err != nil {
			return err
		}
		if !selected(db, name) {
			return nil
		}
		if len(out) == 0 || out[len(out)-1].Migration != id {
			out = append(out, Other{Migration: id, RunID: run})
		}
		o := &out[len(out)-1]
		o.Tables = append(o.Tables, table.Name{Database: db, Table: name})
		return nil
	}, "SELECT m.migration, e.run_id, t.database_name, t.table_name FROM _copydb.migration m"+
		" JOIN _copydb.epoch e ON e.migration = m.migration JOIN _copydb.tables t ON t.migration = m.migration"+
		" WHERE m.finished = 0 OR ? ORDER BY m.migration", !onlyUnfinished)
	return out, err
}
