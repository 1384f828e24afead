package progress

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// FenceSQL is the query that every transaction with rows runs first. It locks
// the epoch row until the transaction ends; CheckFence judges its answer.
func (s *Store) FenceSQL() string {
	return "SELECT epoch FROM _copydb.epoch WHERE migration = '" + s.Migration + "' LOCK IN SHARE MODE"
}

// CheckFence returns ErrFenced unless row, the answer to FenceSQL, says that
// the migration is still this run's, and ErrForgotten where the target has lost
// what made it so.
func (s *Store) CheckFence(row [][]byte) error {
	if len(row) != 1 {
		return ErrFenced
	}
	epoch, err := strconv.ParseUint(string(row[0]), 10, 64)
	if err != nil {
		return fmt.Errorf("read the epoch of the migration: %w", err)
	}
	return s.Fence(epoch)
}

// Fence is CheckFence for an epoch of the migration. Each run raises it, so that
// a lower one is no other run's.
func (s *Store) Fence(epoch uint64) error {
	switch {
	case epoch == s.Epoch:
		return nil
	case epoch < s.Epoch:
		return ErrForgotten
	}
	return ErrFenced
}

// RangeSQL is the statement that notes how far a segment is. It runs in the
// transaction that wrote the segment's last rows. Until is written with the
// first note only: SplitSQL moves it.
func (s *Store) RangeSQL(n table.Name, r Range) string {
	q := s.insertRange(n, r)
	q = table.AppendHex(append(q, " ON DUPLICATE KEY UPDATE range_to = "...), blob(r.To))
	return string(fmt.Appendf(q, ", done = %d, row_count = %d, byte_count = %d", bit(r.Done), r.Rows, r.Bytes))
}

// SplitSQL are the statements that cut a segment in two: first keeps its number
// and gets a new Until, part is the rest. They run in one transaction. How much
// of first is copied is left to RangeSQL: what the cutter knows was read, and may
// not be committed.
func (s *Store) SplitSQL(n table.Name, first, part Range) []string {
	q := s.insertRange(n, Range{Number: first.Number, After: first.After, Until: first.Until})
	q = table.AppendHex(append(q, " ON DUPLICATE KEY UPDATE range_until = "...), blob(first.Until))
	return []string{string(q), string(s.insertRange(n, part))}
}

func (s *Store) insertRange(n table.Name, r Range) []byte {
	q := []byte("INSERT INTO _copydb.ranges (migration, table_key, number, range_after, range_to, range_until, done, row_count, byte_count) VALUES ('")
	q = append(q, s.Migration...)
	q = table.AppendHex(append(q, "', "...), []byte(tableKey(n)))
	q = fmt.Appendf(q, ", %d", r.Number)
	for _, bound := range [][]state.Text{r.After, r.To, r.Until} {
		q = table.AppendHex(append(q, ", "...), blob(bound))
	}
	return fmt.Appendf(q, ", %d, %d, %d)", bit(r.Done), r.Rows, r.Bytes)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Low is low-water: the last position to resume from whose changes are wholly on
// the target, with the fingerprint of the log file that it lies in and the spill
// files that a stream from there needs.
type Low struct {
	state.Position
	LogFingerprint string   `json:"log_fingerprint,omitempty"`
	SpillFiles     []string `json:"spill_files,omitempty"`
}

// WaterSQL is the statement that moves the positions. It runs in the
// transaction that wrote the changes they cover. A nil low stays as it is.
func (s *Store) WaterSQL(low *Low, streamed, high state.Position, m Marker) string {
	q := []byte("UPDATE _copydb.migration SET ")
	if low != nil {
		q = append(table.AppendHex(append(q, "low_water = "...), blob(*low)), ", "...)
	}
	q = table.AppendHex(append(q, "streamed = "...), blob(streamed))
	q = table.AppendHex(append(q, ", high_water = "...), blob(high))
	q = table.AppendHex(append(q, ", marker = "...), blob(m))
	return string(append(append(q, " WHERE migration = '"...), s.Migration+"'"...))
}

// HighSQL is the statement that moves high-water: it is committed before the
// first write of rows from behind the one before.
func (s *Store) HighSQL(high state.Position) string {
	q := table.AppendHex([]byte("UPDATE _copydb.migration SET high_water = "), blob(high))
	return string(append(append(q, " WHERE migration = '"...), s.Migration+"'"...))
}

// SaveDoc keeps what is known of the migration as a whole.
func (s *Store) SaveDoc(ctx context.Context, c *mysqlconn.Control, d Doc, finished bool) error {
	_, err := c.Exec(ctx, "UPDATE _copydb.migration SET doc = ?, finished = ? WHERE migration = ?", blob(d), finished, s.Migration)
	if err != nil {
		return fmt.Errorf("keep the migration's record on the target: %w", err)
	}
	return nil
}

// statementBytes is where a statement of several rows is cut.
const statementBytes = 256 << 10

// manyRows are the statements that write the rows: head, and as many of them as
// fit.
func manyRows(head string, rows [][]byte) []string {
	var out []string
	var q []byte
	for _, row := range rows {
		if len(q) > 0 && len(q)+len(row) > statementBytes {
			out, q = append(out, string(q)), nil
		}
		if len(q) == 0 {
			q = append(q, head...)
		} else {
			q = append(q, ", "...)
		}
		q = append(q, row...)
	}
	if len(q) > 0 {
		out = append(out, string(q))
	}
	return out
}

// TablesSQL are the statements that keep tables' descriptions; what is done of
// them stays in the ranges.
func (s *Store) TablesSQL(tables ...state.Table) []string {
	rows := make([][]byte, len(tables))
	for i, t := range tables {
		t.Done = nil
		n := table.Name{Database: string(t.Database), Table: string(t.Table)}
		q := table.AppendHex([]byte("('"+s.Migration+"', "), []byte(tableKey(n)))
		for _, b := range [][]byte{[]byte(n.Database), []byte(n.Table), blob(t)} {
			q = table.AppendHex(append(q, ", "...), b)
		}
		rows[i] = append(q, ')')
	}
	return manyRows("REPLACE INTO _copydb.tables (migration, table_key, database_name, table_name, doc) VALUES ", rows)
}

// SaveTables keeps tables' descriptions.
func (s *Store) SaveTables(ctx context.Context, c *mysqlconn.Control, tables ...state.Table) error {
	for _, q := range s.TablesSQL(tables...) {
		if _, err := c.Exec(ctx, q); err != nil {
			return fmt.Errorf("keep the descriptions of %d tables on the target: %w", len(tables), err)
		}
	}
	return nil
}

// SaveStructures keeps structures under their digests.
func (s *Store) SaveStructures(ctx context.Context, c *mysqlconn.Control, structures map[string]json.RawMessage) error {
	var rows [][]byte
	for digest, raw := range structures {
		q := table.AppendHex([]byte("('"+s.Migration+"', "), []byte(digest))
		rows = append(rows, append(table.AppendHex(append(q, ", "...), raw), ')'))
	}
	for _, q := range manyRows("INSERT IGNORE INTO _copydb.structures (migration, digest, structure) VALUES ", rows) {
		if _, err := c.Exec(ctx, q); err != nil {
			return fmt.Errorf("keep structures on the target: %w", err)
		}
	}
	return nil
}

// Note writes an entry of the journal, before its statement.
func (s *Store) Note(ctx context.Context, c *mysqlconn.Control, e Entry) error {
	_, err := c.Exec(ctx, "REPLACE INTO _copydb.journal (migration, number, kind, database_name, object_name, done) VALUES (?, ?, ?, ?, ?, ?)",
		s.Migration, e.Number, e.Kind, []byte(e.Database), []byte(e.Name), e.Done)
	if err != nil {
		return fmt.Errorf("note %s %s.%s in the journal on the target: %w", e.Kind, e.Database, e.Name, err)
	}
	return nil
}

// Unnote takes an entry back whose statement was refused.
func (s *Store) Unnote(ctx context.Context, c *mysqlconn.Control, e Entry) error {
	_, err := c.Exec(ctx, "DELETE FROM _copydb.journal WHERE migration = ? AND number = ?", s.Migration, e.Number)
	if err != nil {
		return fmt.Errorf("take %s %s.%s out of the journal on the target: %w", e.Kind, e.Database, e.Name, err)
	}
	return nil
}

// Confirm notes that the statements of all entries were carried out.
func (s *Store) Confirm(ctx context.Context, c *mysqlconn.Control) error {
	_, err := c.Exec(ctx, "UPDATE _copydb.journal SET done = 1 WHERE migration = ? AND done = 0", s.Migration)
	if err != nil {
		return fmt.Errorf("confirm the journal on the target: %w", err)
	}
	return nil
}

// Restart forgets what is finished of a table, so that its copy begins again.
func (s *Store) Restart(ctx context.Context, c *mysqlconn.Control, n table.Name) error {
	_, err := c.Exec(ctx, "DELETE FROM _copydb.ranges WHERE migration = ? AND table_key = ?", s.Migration, []byte(tableKey(n)))
	if err != nil {
		return fmt.Errorf("forget the ranges of %s on the target: %w", n, err)
	}
	return nil
}
