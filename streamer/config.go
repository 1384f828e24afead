package streamer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/state"
)

// Defaults for what Config leaves at zero.
const (
	DefaultPartBytes = 8 << 20
	DefaultHeartbeat = 5 * time.Second
)

// Config says what to read and from where.
type Config struct {
	Source  *mysqlconn.Server
	Version mysqlconn.Version
	// Identity is the server that the connection has to reach; any will do where
	// it has no UUID.
	Identity mysqlconn.Identity
	// Fingerprint is one that a stream of this source has handed over before: if
	// this one comes to the same file, it must be the same still. It may be empty.
	Fingerprint string
	// ServerID is the id the stream registers with; no other replica of the source
	// may have it.
	ServerID uint32
	// Start is the boundary to read on from. MySQL is asked by GTID set where
	// there are GTIDs, MariaDB by file and place where Start has them.
	Start state.Position
	// GTIDs says that a Start without a set means the empty set, not an unknown
	// one. A Start with a set implies it, and so does MariaDB.
	GTIDs bool

	// Tables are the tables of the run; the stream reads, never changes them.
	Tables map[table.Name]*TableSpec
	// Selected reports whether the run's patterns match a name; nil: only Tables.
	Selected func(database, tbl string) bool
	// Ignore reports names that match but are known not to be tables of the run
	// (MariaDB's sequences): their rows are passed over. It may be nil.
	Ignore func(table.Name) bool
	// TableListAt is where the list of tables was read: DDL about selected tables
	// that are not in Tables is covered up to there.
	TableListAt state.Position
	// FoldNames says that the source compares table names without case
	// (lower_case_table_names is not 0).
	FoldNames bool
	// StopUnseenXA makes an XA COMMIT whose PREPARE this stream has not seen stop
	// the run: for sources where XA RECOVER could not be asked.
	StopUnseenXA bool

	// Pace is called with the size of each event before it is taken in, and returns
	// when that may be; it must return when its context ends. It may be nil.
	Pace func(ctx context.Context, bytes int) error

	// StatePath is the state file beside which spill files are kept; "" only where
	// there are no tables.
	StatePath string
	// Spilled are the names of the spill files that hold what is prepared at Start.
	Spilled []string

	// PartBytes bounds the changes of one transaction in memory: more is handed
	// over as a Partial part, or goes to a spill file.
	PartBytes int64
	// Heartbeat is how often an idle source says that it is there.
	Heartbeat time.Duration
	// NetworkTimeout is how long the source may be silent; it is at least three
	// heartbeats. Zero means exactly that.
	NetworkTimeout time.Duration

	Logger *slog.Logger
}

func (c *Config) check() error {
	if c.Source == nil || c.Version.Flavor == "" {
		return errors.New("stream needs a source and its version")
	}
	if c.ServerID == 0 {
		return errors.New("stream needs a server id other than 0")
	}
	if c.Start.IsZero() && !c.GTIDs {
		return errors.New("stream needs a position to start from")
	}
	if c.Start.Pos > maxUint32 && c.Start.GTIDSet == "" {
		return fmt.Errorf("no dump can start at %s: the place is beyond 4 GiB", c.Start)
	}
	if len(c.Tables) > 0 && c.StatePath == "" {
		return errors.New("stream needs a place for spill files")
	}
	for name, spec := range c.Tables {
		if spec == nil || spec.Structure == nil || len(spec.Structure.Columns) == 0 {
			return fmt.Errorf("stream has no structure of table %s", name)
		}
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.PartBytes <= 0 {
		c.PartBytes = DefaultPartBytes
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	c.NetworkTimeout = max(c.NetworkTimeout, 3*c.Heartbeat)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Version.Flavor == mysqlconn.MariaDB || c.Start.GTIDSet != "" {
		c.GTIDs = true
	}
}
