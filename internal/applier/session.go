package applier

import (
	"context"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/progress"
	"github.com/copydb/copydb/internal/table"
)

// Config is what Loaders and Appliers share.
type Config struct {
	Target    *mysqlconn.Server
	Version   mysqlconn.Version // the target's
	Flavor    mysqlconn.Flavor  // the source's: positions are its
	Progress  *progress.Store
	SQLLogBin bool  // false: the target does not log what is written
	MaxPacket int64 // the target's max_allowed_packet, bytes
	MaxNotes  int64 // warnings of one statement that a session can list: AllNotes where it may
	Threads   int   // sessions that an Applier writes a window's rows over
}

// AllNotes is the most that a server lists of the warnings of one statement.
const AllNotes = 65535

const (
	strictMode = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"
	looseMode  = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES"
)

// setup are the statements that make a session write exactly what it is given.
func (c Config) setup() []string {
	out := []string{
		"SET SESSION sql_mode = '" + strictMode + "', time_zone = '+00:00', foreign_key_checks = 0, unique_checks = 1," +
			" innodb_lock_wait_timeout = 20, lock_wait_timeout = 20, wait_timeout = 600, net_read_timeout = 120",
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
	}
	if c.Version.Flavor == mysqlconn.MariaDB {
		out = append(out, "SET SESSION check_constraint_checks = 0")
	}
	if c.MaxNotes == AllNotes {
		out = append(out, fmt.Sprintf("SET SESSION max_error_count = %d", AllNotes))
	}
	if !c.SQLLogBin {
		out = append(out, "SET SESSION sql_log_bin = 0")
	}
	return out
}

// statementBytes is the size at which a multi-row statement is cut.
func (c Config) statementBytes() int {
	if c.MaxPacket > 0 {
		return min(insertBytes, int(c.MaxPacket)/2)
	}
	return insertBytes
}

// OpenSession opens a session on the target that is set up to write rows.
func (c Config) OpenSession(ctx context.Context) (*mysqlconn.Session, error) {
	return c.Target.OpenSession(ctx, c.setup()...)
}

// inTransaction runs fn between BEGIN and COMMIT on s, behind the fence. On an
// error the transaction is rolled back; where even that fails, the session is
// no good any more and the error says so by itself.
func (c Config) inTransaction(ctx context.Context, s *mysqlconn.Session, fn func() error) (err error) {
	if _, err := s.Exec(ctx, "START TRANSACTION"); err != nil {
		return fmt.Errorf("begin on the target: %w", err)
	}
	defer func() {
		if err == nil || mysqlconn.IsConnectionLost(err) || ctx.Err() != nil {
			return
		}
		if _, rerr := s.Exec(ctx, "ROLLBACK"); rerr != nil {
			err = fmt.Errorf("%w (and rolling back: %w)", err, rerr)
		}
	}()
	row, err := s.QueryRow(ctx, c.Progress.FenceSQL())
	if err != nil {
		return fmt.Errorf("read the epoch: %w", err)
	}
	if err := c.Progress.CheckFence(row); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	if _, err := s.Exec(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit on the target: %w", err)
	}
	return nil
}

// loosely runs fn while s takes ENUM's index 0, which a strict session refuses
// (error 1265).
func loosely(ctx context.Context, s *mysqlconn.Session, fn func() error) (err error) {
	if _, err := s.Exec(ctx, "SET SESSION sql_mode = '"+looseMode+"'"); err != nil {
		return err
	}
	defer func() {
		if _, serr := s.Exec(ctx, "SET SESSION sql_mode = '"+strictMode+"'"); err == nil {
			err = serr
		}
	}()
	return fn()
}

// WarningError is returned for a write that the target carried out but warned
// about: it may have changed a value. The write is rolled back where the engine
// can.
type WarningError struct {
	Table    string
	Count    int
	Warnings []string // the first few, as number and text
}

// Error lists the first warnings.
func (e *WarningError) Error() string {
	return fmt.Sprintf("write rows of %s: the target gave %d warnings: %s", e.Table, e.Count, strings.Join(e.Warnings, "; "))
}

// generatedTruncation is the note that a server gives where the expression of a
// stored generated column has more digits than the column: the source computed
// the same.
const generatedTruncation = "Data truncated for column '"

// deprecated is ER_WARN_DEPRECATED_SYNTAX.
const deprecated = "1287"

// checkWarnings asks for the warnings of the statement before and returns an
// error unless each is one of these: zeros times 1265, one for each ENUM value
// of index 0 in a table that was written non-strict, notes of the same number
// about generated columns, which are not written, and that something in the
// statement's text is deprecated, as character sets of literals are.
func checkWarnings(ctx context.Context, s *mysqlconn.Session, t *table.Table, count, zeros int) error {
	if count == 0 && zeros == 0 {
		return nil
	}
	e := &WarningError{Table: t.String(), Count: count}
	bad, harmless, listed := 0, 0, 0
	err := s.Query(ctx, "SHOW WARNINGS", func(f [][]byte) error {
		if len(f) < 3 {
			return fmt.Errorf("SHOW WARNINGS has %d columns", len(f))
		}
		listed++
		switch {
		case string(f[0]) == "Note" && string(f[1]) == "1265" && aboutGenerated(t, string(f[2])), string(f[1]) == deprecated:
			harmless++
			return nil
		case string(f[1]) == "1265" && zeros > 0:
		default:
			bad++
		}
		if len(e.Warnings) < 3 {
			e.Warnings = append(e.Warnings, string(f[1])+" "+mysqlconn.Redact(string(f[2])))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read warnings: %w", err)
	}
	if bad == 0 && (listed == count || harmless == 0) && count-harmless == zeros {
		return nil
	}
	return e
}

func aboutGenerated(t *table.Table, message string) bool {
	rest, ok := strings.CutPrefix(message, generatedTruncation)
	if !ok {
		return false
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Generated && strings.HasPrefix(rest, c.Name+"'") {
			return true
		}
	}
	return false
}
