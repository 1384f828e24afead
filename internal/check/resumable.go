package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/state"
)

// LogGoneError says that the source has purged binary logs that a resume needs.
type LogGoneError struct {
	Position state.Position // from where the logs are needed
	Detail   string
}

// Error implements error.
func (e *LogGoneError) Error() string {
	return fmt.Sprintf("the source no longer has its binary log from %s on: %s", e.Position, e.Detail)
}

// HistoryLostError says that the source is the recorded one, but its log is not
// the one that the run has read: it was reset, restored or cut.
type HistoryLostError struct {
	Position state.Position // that the source should know
	Detail   string
}

// Error implements error.
func (e *HistoryLostError) Error() string {
	return fmt.Sprintf("the source lost its history up to %s: %s", e.Position, e.Detail)
}

// Resumable makes sure that the source can serve the binary log from
// r.Source.LastResumable on, and returns which server it asked. That is another
// one than r.Source names where one of the same history (MySQL with GTIDs) can
// stand in for it: then only GTID sets count, no files. The typed errors of this
// file and *mysqlconn.OtherServerError say why it cannot; any other error means
// that it could not be asked.
func Resumable(ctx context.Context, source *mysqlconn.Server, r *Resume) (mysqlconn.Identity, error) {
	c, err := source.Open(ctx)
	if err != nil {
		return mysqlconn.Identity{}, err
	}
	defer c.Close()
	id, err := c.Identify(ctx)
	if err != nil {
		return id, err
	}
	q := &history{conn: c, id: id, resume: r}
	if id.UUID != r.Source.ServerUUID {
		return id, q.other(ctx)
	}
	return id, q.same(ctx)
}

// history compares a source with what a run recorded.
type history struct {
	conn   *mysqlconn.Control
	id     mysqlconn.Identity
	resume *Resume
}

// other takes another server only if it holds every transaction that the run has
// seen.
func (q *history) other(ctx context.Context) error {
	refuse := func(detail string) error {
		return &mysqlconn.OtherServerError{Recorded: q.resume.Source.ServerUUID, Found: q.id.UUID, Detail: detail}
	}
	mine := q.resume.Source.LastStreamed.GTIDSet
	if q.id.Version.Flavor != mysqlconn.MySQL || q.resume.Source.Flavor != string(mysqlconn.MySQL) || mine == "" {
		return refuse("without MySQL's GTIDs its binary log cannot be matched with the old one")
	}
	mode, _, err := q.conn.Variable(ctx, "GLOBAL", "gtid_mode")
	if err != nil {
		return err
	}
	if mode != "ON" {
		return refuse("its gtid_mode is " + mode)
	}
	need, known := q.seen()
	if !known {
		return refuse("what the snapshots have shown is not recorded, so it cannot be told whether this server has it")
	}
	executed, err := q.contains(ctx, strings.Join(append(need, mine), ","))
	if err != nil {
		return err
	}
	if !executed {
		return refuse("it lacks transactions of the run before")
	}
	return q.purged(ctx)
}

// seen returns the GTID sets that the target may hold something of. known is
// false where snapshots were read and their upper bound was not kept.
func (q *history) seen() (sets []string, known bool) {
	src := &q.resume.Source
	sets = append(slices.Clone(q.resume.MustContain), src.LastResumable.GTIDSet)
	known = src.SnapshotStart.IsZero() || len(q.resume.MustContain) > 0
	if src.SnapshotSeen != nil && src.SnapshotSeen.GTIDSet != "" {
		sets, known = append(sets, src.SnapshotSeen.GTIDSet), true
	}
	return slices.DeleteFunc(sets, func(s string) bool { return s == "" }), known
}

func (q *history) same(ctx context.Context) error {
	at := q.resume.Source.LastResumable
	if at.IsZero() {
		return nil
	}
	if q.id.Version.Flavor == mysqlconn.MariaDB {
		if err := q.domains(ctx, at); err != nil {
			return err
		}
		return q.file(ctx, at)
	}
	if at.GTIDSet == "" {
		return q.file(ctx, at)
	}
	executed, err := q.contains(ctx, strings.Join([]string{at.GTIDSet, q.resume.Source.LastStreamed.GTIDSet}, ","))
	if err != nil {
		return err
	}
	if !executed {
		return &HistoryLostError{Position: q.resume.Source.LastStreamed, Detail: "its gtid_executed lacks transactions that were read from it"}
	}
	return q.purged(ctx)
}

// contains reports whether the server has executed a whole GTID set.
func (q *history) contains(ctx context.Context, set string) (bool, error) {
	var ok bool
	err := q.conn.QueryRow(ctx, []any{&ok}, "SELECT GTID_SUBSET(?, @@global.gtid_executed)", set)
	if err != nil {
		return false, fmt.Errorf("compare GTID sets with the source: %w", err)
	}
	return ok, nil
}

// purged fails if the server has purged transactions that are not in our set.
func (q *history) purged(ctx context.Context) error {
	at := q.resume.Source.LastResumable
	var ok bool
	var missing string
	err := q.conn.QueryRow(ctx, []any{&ok, &missing},
		"SELECT GTID_SUBSET(@@global.gtid_purged, ?), GTID_SUBTRACT(@@global.gtid_purged, ?)", at.GTIDSet, at.GTIDSet)
	if err != nil {
		return fmt.Errorf("compare purged GTIDs of the source: %w", err)
	}
	if !ok {
		return &LogGoneError{Position: at, Detail: "it has purged " + position.OneLine(missing)}
	}
	return nil
}

// domains fails if MariaDB's log ends before ours in any domain.
func (q *history) domains(ctx context.Context, at state.Position) error {
	var text string
	if err := q.conn.QueryRow(ctx, []any{&text}, "SELECT @@global.gtid_binlog_pos"); err != nil {
		return fmt.Errorf("read gtid_binlog_pos of the source: %w", err)
	}
	have, err := parseMariaDB(text)
	if err != nil {
		return err
	}
	want, err := parseMariaDB(at.GTIDSet)
	if err != nil {
		return err
	}
	for domain, seq := range want {
		if have[domain] < seq {
			return &HistoryLostError{Position: at, Detail: fmt.Sprintf("domain %d of its log ends at %d, %d was read from it", domain, have[domain], seq)}
		}
	}
	return nil
}

// file looks for the log file of a position.
func (q *history) file(ctx context.Context, at state.Position) error {
	if at.File == "" {
		return nil
	}
	files, err := q.conn.QueryMaps(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return fmt.Errorf("list binary logs of the source: %w", err)
	}
	for _, f := range files {
		if column(f, "Log_name") != at.File {
			continue
		}
		size, err := strconv.ParseUint(column(f, "File_size"), 10, 64)
		if err != nil {
			return fmt.Errorf("parse size of binary log %s: %w", at.File, err)
		}
		if size < at.Pos {
			return &HistoryLostError{Position: at, Detail: fmt.Sprintf("file %s has %d bytes only", at.File, size)}
		}
		return nil
	}
	if len(files) == 0 {
		return &HistoryLostError{Position: at, Detail: "it has no binary log"}
	}
	oldest := state.Position{File: column(files[0], "Log_name")}
	if purged, ok := before(state.Position{File: at.File}, oldest); ok && purged {
		return &LogGoneError{Position: at, Detail: "its oldest file is " + oldest.File}
	}
	return &HistoryLostError{Position: at, Detail: "it has no file " + at.File + "; its oldest is " + oldest.File}
}
