package config

import "time"

// Config is a whole configuration, defaults filled in.
type Config struct {
	Source   Source   `yaml:"source"`
	Target   Target   `yaml:"target"`
	Tables   Tables   `yaml:"tables"`
	Existing string   `yaml:"existing_tables"`
	Schema   Schema   `yaml:"schema"`
	Snapshot Snapshot `yaml:"snapshot"`
	CatchUp  CatchUp  `yaml:"catch_up"`

	RetryTimeout       time.Duration `yaml:"retry_timeout"`
	CheckpointInterval time.Duration `yaml:"checkpoint_interval"`
	StopTimeout        time.Duration `yaml:"stop_timeout"`
	State              string        `yaml:"state"`
}

// Server says how to reach one server. Password is resolved: it comes from
// password, password_env or password_file.
type Server struct {
	Host           string
	Port           int
	Socket         string
	User           string
	Password       string
	TLS            TLS
	ConnectTimeout time.Duration
	NetworkTimeout time.Duration
}

// TLS is how connections to a server are encrypted.
type TLS struct {
	Mode       string // disabled, preferred, required, verify-ca, verify-identity
	CA         string // path
	Cert       string // path
	Key        string // path
	ServerName string
}

// Source is the server that is copied from. It is only read.
type Source struct {
	Server
	ServerID   uint32 // 0 = random
	AllowLocks bool
}

// Target is the server that is copied to.
type Target struct {
	Server
	SQLLogBin bool
}

// Tables are patterns of what is copied.
type Tables struct {
	Include []string
	Exclude []string
}

// Schema says which objects are copied beside rows.
type Schema struct {
	Objects      []string
	DeferIndexes bool
}

// Snapshot tunes the copy of the rows.
type Snapshot struct {
	Threads    int    // 0 = auto
	ChunkSize  int64  // bytes
	LoadMethod string // auto, load_data, insert
}

// The values of catch_up.until that are words.
const (
	UntilCaughtUp = "caught_up"
	UntilNever    = "never"
)

// Until is where catch-up ends: a word, or a position on the source (either
// GTID, or File and Pos).
type Until struct {
	Word string // UntilCaughtUp, UntilNever, or "" where a position is given
	GTID string
	File string
	Pos  uint64
}

// CatchUp tunes the applying of the binary log.
type CatchUp struct {
	Threads int // 1 until parallel applying exists
	Until   Until
	MaxLag  time.Duration
	DDL     string // error, ignore
}
