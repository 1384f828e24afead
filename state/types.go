package state

import (
	"fmt"
	"time"
)

// FormatVersion is the newest version of the state file that this program writes. A
// newer one is refused, an older one is read for ever.
const FormatVersion = 2

// Position is a place in the binary log of one source. File and Pos name the
// end of an event in a log file; GTIDSet is the set of transactions executed up
// to there, in the server's own notation. File+Pos and GTIDSet stand together
// only if both come from the same event. The zero value means "not known".
type Position struct {
	File    string `json:"file,omitempty"`
	Pos     uint64 `json:"pos,omitempty"`
	GTIDSet string `json:"gtid_set,omitempty"`
}

// IsZero reports whether nothing is known of the position.
func (p Position) IsZero() bool { return p == Position{} }

// String returns file:pos where known, else the GTID set.
func (p Position) String() string {
	switch {
	case p.File != "":
		return fmt.Sprintf("%s:%d", p.File, p.Pos)
	case p.GTIDSet != "":
		return p.GTIDSet
	}
	return "none"
}

// Phase is the part of a run that is under way.
type Phase string

// The phases, in order.
const (
	PhaseSchema   Phase = "schema"
	PhaseSnapshot Phase = "snapshot"
	PhaseIndexes  Phase = "indexes"
	PhaseCatchUp  Phase = "catch_up"
	PhaseFinish   Phase = "finish"
	PhaseDone     Phase = "done"
)

// TableStatus says how far the copy of one table is.
type TableStatus string

// The statuses of a table. TableRestart means that its copy was voided and
// starts from empty again.
const (
	TablePending TableStatus = "pending"
	TableCopying TableStatus = "copying"
	TableCopied  TableStatus = "copied"
	TableIndexed TableStatus = "indexed"
	TableRestart TableStatus = "restart"
)

// TableClass says how row changes of a table may be replayed.
type TableClass string

// A converging table may be replayed from any earlier position; of an exact one
// each change is applied once.
const (
	ClassConverging TableClass = "converging"
	ClassExact      TableClass = "exact"
)

// State is the whole content of a state file. It holds no password and no row
// value but the bounds of key ranges.
type State struct {
	FormatVersion int       `json:"format_version"`
	CopydbVersion string    `json:"copydb_version"`
	MigrationID   string    `json:"migration_id"`
	RunID         string    `json:"run_id"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`

	Phase            Phase      `json:"phase"`
	Sources          []Source   `json:"sources"`
	Target           Server     `json:"target"`
	Selection        Selection  `json:"selection"`
	Tables           []Table    `json:"tables"`
	ObjectsCreated   []Object   `json:"objects_created"`
	SwitchedOnTarget []Setting  `json:"switched_on_target"`
	SpillFiles       []string   `json:"spill_files"` // see SpillPath
	TargetSessions   []Session  `json:"target_sessions,omitempty"`
	LastStop         *Stop      `json:"last_stop,omitempty"`
	Throughput       Throughput `json:"throughput"`
}

// Server names one server and how it was known.
type Server struct {
	Flavor     string `json:"flavor"`
	Version    string `json:"version"`
	ServerUUID string `json:"server_uuid"`
	Host       string `json:"host"`
	Port       int    `json:"port"`
}

// Source is what is known of one source and of its binary log.
type Source struct {
	Name string `json:"name"`
	Server
	ServerID       uint32 `json:"server_id"`
	LogFingerprint string `json:"log_fingerprint"`

	SnapshotStart Position  `json:"snapshot_start"`
	LastStreamed  Position  `json:"last_streamed"`
	LastResumable Position  `json:"last_resumable"`
	ConsistentAt  *Position `json:"consistent_at"`
	SnapshotSeen  *Position `json:"snapshot_seen"`
	TableListAt   *Position `json:"table_list_at"`
	StopPoint     *Position `json:"stop_point"`
	Sessions      []Session `json:"sessions"`
}

// Session is one connection of the run, found again by its named lock.
type Session struct {
	Lock         string    `json:"lock"`
	ConnectionID uint64    `json:"connection_id"`
	OpenedAt     time.Time `json:"opened_at"`
}

// Selection is what the run copies. Digest covers everything that may not
// change between runs.
type Selection struct {
	Digest  string   `json:"digest"`
	Include []string `json:"include"`
	Exclude []string `json:"exclude"`
	Routes  []string `json:"routes"`
}

// Table is the progress of one table.
type Table struct {
	Database   Text             `json:"database"`
	Table      Text             `json:"table"`
	Status     TableStatus      `json:"status"`
	Rows       int64            `json:"rows"`
	Bytes      int64            `json:"bytes"`
	Class      TableClass       `json:"class"`
	Component  int              `json:"component"`
	Start      Position         `json:"start"`
	TableID    string           `json:"table_id,omitempty"` // the engine's, at the first chunk
	FirstChunk *Position        `json:"first_chunk,omitempty"`
	LastChunk  *Position        `json:"last_chunk,omitempty"`
	Done       []Range          `json:"done"`
	Structures []StructureSince `json:"structures"`
}

// StructureSince says which structure a table has from a position on.
type StructureSince struct {
	From   Position `json:"from"`
	Digest string   `json:"digest"`
}

// Range is a finished range of keys: After < key <= To, one element per key
// column as the source printed it. An empty After is open below, an empty To
// open above.
type Range struct {
	After []Text `json:"after"`
	To    []Text `json:"to"`
}

// Object is something that the migration made on the target.
type Object struct {
	Type     string `json:"type"`
	Database Text   `json:"database"`
	Name     Text   `json:"name"`
}

// Setting is a server setting to put back.
type Setting struct {
	Name string `json:"name"`
	Was  string `json:"was"`
}

// Throughput adds up what all runs of the migration have moved.
type Throughput struct {
	Rows         int64   `json:"rows"`
	Bytes        int64   `json:"bytes"`
	Transactions int64   `json:"transactions"`
	Seconds      float64 `json:"seconds"`
}

// Stop says how the run before ended.
type Stop struct {
	At       time.Time `json:"at"`
	ExitCode int       `json:"exit_code"`
	Reason   string    `json:"reason"`
	Message  string    `json:"message"`
}
