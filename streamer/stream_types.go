package streamer

import (
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// Transaction is one group of the source's binary log, or a part of a large
// one, with the changes of selected tables in it.
type Transaction struct {
	Start    state.Position // the boundary before the group
	End      state.Position // the boundary behind it; zero while Partial
	Streamed state.Position // end of the last event taken in
	GTID     string
	// CommittedAt is the source's time of commit, as exact as the log has it.
	CommittedAt time.Time
	Changes     []applier.Change
	Bytes       int64 // of the changes in memory
	Partial     bool  // more of the group follows
	DDL         *DDL  // set where the group is a DDL of a selected table
}

// DDL is a statement that changes the structure of selected tables, or may.
type DDL struct {
	// Tables are the selected tables that it names and whose start position does
	// not cover it; Unknown says that it may touch others too.
	Tables  []table.Name
	Unknown bool
	Query   string // at most some hundred bytes of it, for messages
	Schema  string // the default database
}

// TableSpec is what the stream has to know of one table of the run.
type TableSpec struct {
	Structure *table.Table
	// Start is the position that the copy of the table covers: rows and DDL up to
	// it are skipped.
	Start state.Position
	// CascadeParent says that a foreign key with CASCADE or SET NULL points at the
	// table: a delete or key change whose cascade was not logged stops the run.
	CascadeParent bool
}
