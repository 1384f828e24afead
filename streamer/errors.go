package streamer

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
	"github.com/go-mysql-org/go-mysql/replication"
)

const maxUint32 = math.MaxUint32

// ErrLogGone is returned where the source no longer has the log, or the
// history, that the start position needs.
var ErrLogGone = errors.New("the source does not have the binary log at this position any more")

// ErrServerIDTaken is returned where another replica of the source has
// registered with the same server id.
var ErrServerIDTaken = errors.New("another replica uses the same server id")

// StopError is something in the binary log that cannot be applied, so that the
// run has to stop before it. A stream from the same position finds it again.
type StopError struct {
	Position state.Position // file and place of the end of the event
	GTID     string
	Table    table.Name // zero where no single table is concerned
	Column   string     // "" where no single column is concerned
	Reason   string     // what was found
	Next     string     // what the user can do
}

// Error names position, table and column, and says both what and what next.
func (e *StopError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "binary log at %s", e.Position)
	if e.GTID != "" {
		fmt.Fprintf(&b, " (gtid %s)", e.GTID)
	}
	if e.Table != (table.Name{}) {
		fmt.Fprintf(&b, ", table %s", e.Table)
	}
	if e.Column != "" {
		fmt.Fprintf(&b, ", column %s", e.Column)
	}
	fmt.Fprintf(&b, ": %s", e.Reason)
	if e.Next != "" {
		fmt.Fprintf(&b, "; %s", e.Next)
	}
	return b.String()
}

// dumpRefused is ER_MASTER_FATAL_ERROR_READING_BINLOG, which the server uses
// for every reason not to send on; only its text tells them apart.
const dumpRefused = 1236

// sameID is MariaDB's ER_SLAVE_SAME_ID.
const sameID = 4052

var gonePhrases = []string{
	"could not find first log file", "could not find next log", "purged", "log file is not found",
	"> file size", "impossible position", "more gtids than", "not in the master's binlog", "not in the primary's binlog",
	"missing the gtid", "diverged", "missing transactions", "could not open log file",
}

// classify makes a library error one that callers can tell: sentinels for what
// the server refuses, no event data in the text.
func classify(err error) error {
	var event *replication.EventError
	if errors.As(err, &event) {
		// Its text has the event's data in it, which are values of rows.
		return fmt.Errorf("decode %s event: unexpected content", event.Header.EventType)
	}
	switch mysqlconn.ErrorNumber(err) {
	case sameID:
		return fmt.Errorf("%w (%w)", ErrServerIDTaken, err)
	case dumpRefused:
	default:
		return err
	}
	text := strings.ToLower(err.Error())
	if strings.Contains(text, "same server_uuid") || strings.Contains(text, "same server_id") ||
		strings.Contains(text, "with the same id") {
		return fmt.Errorf("%w (%w)", ErrServerIDTaken, err)
	}
	for _, phrase := range gonePhrases {
		if strings.Contains(text, phrase) {
			return fmt.Errorf("%w (%w)", ErrLogGone, err)
		}
	}
	return err
}
