package check

import (
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// Selection says what is copied; *pattern.Selection is one.
type Selection interface {
	Match(database, table string) bool
	MatchDatabase(database string) bool
}

// Input is what the preflight has to know, and, in Facts, what it found out.
type Input struct {
	Source, Target *mysqlconn.Server
	// Replicas of the target whose lag is watched.
	Replicas      []*mysqlconn.Server
	MaxReplicaLag time.Duration

	// Select returns the selection for a source that folds the case of names or
	// does not. It is called once the source was asked.
	Select func(foldCase bool) (Selection, error)
	// Literal lists tables that the selection names without a wildcard; one with
	// an empty Table stands for a database. May be nil.
	Literal []table.Name

	AllowLocks     bool   // source.allow_locks
	SQLLogBin      bool   // target.sql_log_bin
	FastLoad       bool   // target.fast_load
	RedoOff        bool   // the target's redo log may be off: the migration has switched it off
	ServerID       uint32 // source.server_id; 0: the run takes a random one
	LoadMethod     string // auto, load_data, insert
	Threads        int    // that copy; 0: as many as are worth it
	ExistingTables string // one of the Rule constants

	// The stop point, where one is given.
	UntilGTID string
	UntilFile string
	UntilPos  uint64

	Resume *Resume // nil: a fresh run
	// Replaced are objects that runs made which this one replaces: they are in
	// nobody's way.
	Replaced []state.Object

	// Facts is filled by Run, as far as the servers could be asked.
	Facts Facts
}

// The rules for selected tables that the target has already.
const (
	RuleError    = "error"
	RuleUseEmpty = "use_empty" // empty and with the source's structure
	RuleTruncate = "truncate"  // of the source's structure; its rows go
	RuleRecreate = "recreate"  // dropped and made anew
)

// Resume is what a run that goes on knows of the run before.
type Resume struct {
	Source      state.Source // as recorded: identity and positions
	Created     []state.Object
	MustContain []string // GTID sets that another server of the same history has to hold; MySQL only
}

// LeftOut is an object of a selected database that is not copied.
type LeftOut struct {
	Type     string // view, sequence, trigger, procedure, function, package, event
	Database string
	Name     string
}

// Database is a selected database and its defaults.
type Database struct {
	Name, Charset, Collation string
}

// ServerFacts is what was read of one server.
type ServerFacts struct {
	Identity  mysqlconn.Identity
	Variables map[string]string // global, by lower-case name; only those that are asked for
	Account   string            // CURRENT_USER(), quoted for GRANT
}

// Facts is what a run uses of the preflight.
type Facts struct {
	Source, Target ServerFacts

	FoldCase  bool
	Selection Selection
	Databases []Database     // that hold selected tables
	Tables    []*table.Table // selected and readable, by name
	LeftOut   []LeftOut
	Rows      int64 // the source's estimate
	Bytes     int64

	End        state.Position // of the source's binary log when asked
	GTID       bool           // transactions of the source carry GTIDs that positions may name
	Rung       position.Rung
	RungReason string

	LoadMethod string // load_data or insert
	LoadReason string
	// Inserted are the tables whose rows go by INSERT where those of others do not.
	Inserted map[table.Name]bool

	// Components numbers the tables that unlogged cascades tie together; see
	// table.Components. It is nil where the source logs cascades.
	Components map[table.Name]int

	// Taken are the tables that the target has and the run takes over, by the
	// rule that says how.
	Taken map[table.Name]string
	// Referenced are selected tables that foreign keys of the target point at:
	// where such a table is made, it needs its keys at once.
	Referenced map[table.Name]bool

	ClockSkew  time.Duration // the source's clock minus ours
	ZoneOffset time.Duration // of the source's default time zone
}
