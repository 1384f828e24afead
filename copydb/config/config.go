package config

import (
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// Config is a whole configuration, defaults filled in.
type Config struct {
	Source   Source
	Target   Target
	Tables   Tables
	Existing string // existing_tables: error, use_empty, truncate, recreate
	Schema   Schema
	Snapshot Snapshot
	CatchUp  CatchUp
	Throttle Throttle

	RetryTimeout       time.Duration
	CheckpointInterval time.Duration // 0 = after every applied window
	StopTimeout        time.Duration
	State              string // path
}

// Server says how to reach one server. Either Host or Socket is set. Password
// is resolved: it comes from password, password_env or password_file.
type Server struct {
	Host           string
	Port           int
	Socket         string
	User           string
	Password       Secret
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

// Encryption is TLS as connections take it.
func (s Server) Encryption() mysqlconn.TLS {
	return mysqlconn.TLS{Mode: s.TLS.Mode, CA: s.TLS.CA, Cert: s.TLS.Cert, Key: s.TLS.Key, ServerName: s.TLS.ServerName, Host: s.Host}
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
	FastLoad  bool
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

// CatchUp tunes the applying of the binary log.
type CatchUp struct {
	Threads int // 1 until parallel applying exists
	Until   Until
	MaxLag  time.Duration
	DDL     string // error, ignore
}

// Default returns the configuration of which nothing is set: it lacks the
// servers and the tables.
func Default() Config {
	var c Config
	for _, k := range Keys() {
		if k.field == nil {
			continue
		}
		v, err := k.decode(k.defaultNode())
		if err != nil {
			panic("config: default of " + k.Path + ": " + err.Error())
		}
		k.assign(&c, v)
	}
	c.settle()
	return c
}

// settle puts in place of auto what it means where it means one thing.
func (c *Config) settle() {
	if c.CatchUp.Threads == 0 {
		c.CatchUp.Threads = 4
	}
}
