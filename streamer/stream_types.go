package streamer

import (
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// Transaction is one group of the source's binary log, or a part of a large
// one, with the changes of selected tables in it. One without changes and
// without DDL only moves the position: the group touched nothing selected, or
// the log went on to its next file, or the source was idle for the heartbeat
// period.
//
// It belongs to the handler; the stream doesn't touch it again.
type Transaction struct {
	Start state.Position // the boundary before the group: file and place only
	// End is the boundary behind the group: file and place only. It is zero while
	// Partial, and where no dump can be asked to start (a place beyond 4 GiB, or
	// one that the server didn't give).
	End      state.Position
	Streamed state.Position // end of the last event taken in: file and place only
	GTID     string         // "" where the source gives none
	// CommittedAt is the source's time of commit, as exact as the log has it; zero
	// where the position only moved.
	CommittedAt time.Time
	Changes     []applier.Change
	Bytes       int64 // of the changes in memory
	Partial     bool  // more of the group follows
	DDL         *DDL  // set where the group is a DDL of a selected table
	// Fingerprint is that of the file in which End and Streamed are: what a later
	// stream compares to know that the source still has the same log. It is empty
	// where the file gave none.
	Fingerprint string
	// SpillFiles are the names of the spill files that a stream from End needs:
	// they are kept with that position. Nobody may change the slice.
	SpillFiles []string
	// SpillEnded is the name of one that no stream from End or behind needs: it may
	// be removed once such a position is kept. "" where there is none.
	SpillEnded string

	executed *position.Set // at the end; nil where unknown
}

// EndPosition is End with the GTID set that is executed there: what to resume
// from once the transaction is applied. It is zero while Partial, and where End
// is zero and the source has no GTIDs: the position behind an earlier
// transaction is then still the one to resume from. The text of the set is made
// with each call, since most callers need it for few transactions. It may be
// called at any time, from any goroutine.
func (t *Transaction) EndPosition() state.Position {
	p := t.End
	if t.executed != nil && !t.Partial {
		p.GTIDSet = t.executed.String()
	}
	return p
}

// StreamedPosition is EndPosition for a whole group, and file and place of the
// last event for a part: what a report shows.
func (t *Transaction) StreamedPosition() state.Position {
	if end := t.EndPosition(); !end.IsZero() {
		return end
	}
	return t.Streamed
}

// HighPosition is the end of the last event with the GTID set that holds all
// that is applied with the transaction: a part's own GTID, too. Like EndPosition
// it may be called at any time.
func (t *Transaction) HighPosition() state.Position {
	p := t.Streamed
	if t.executed == nil {
		return p
	}
	set := t.executed
	if t.Partial && t.GTID != "" {
		set = set.Clone()
		if err := set.Add(t.GTID); err != nil {
			return p
		}
	}
	p.GTIDSet = set.String()
	return p
}

// DDL is a statement that changes the structure of selected tables, or may. The
// rows that CREATE TABLE … SELECT writes into its new table are not among the
// changes.
type DDL struct {
	// Tables are the selected tables that it names and whose start position does
	// not cover it; Unknown says that it may touch others too.
	Tables  []table.Name
	Unknown bool
	// Databases are databases with selected tables whose defaults it changes.
	Databases []string
	Query     string // at most some hundred bytes of it, for messages
}

// TableSpec is what the stream has to know of one table of the run.
type TableSpec struct {
	Structure *table.Table
	// Start is the position that the copy of the table covers: rows and DDL up to
	// it are skipped.
	Start state.Position
	// CascadesDelete says that a foreign key with ON DELETE CASCADE or SET NULL
	// points at the table, CascadesUpdate are the columns that those with ON UPDATE
	// CASCADE or SET NULL point at. A change that they carried on unlogged is marked
	// where the table is in a component, and stops the run elsewhere.
	CascadesDelete bool
	CascadesUpdate []string
}
