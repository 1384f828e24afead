package config

import (
	"slices"
	"strings"
	"time"
)

const (
	kib = 1 << 10
	gib = 1 << 30

	centisecond = int64(10 * time.Millisecond)
	decisecond  = int64(100 * time.Millisecond)
)

func splitPath(path string) []string { return strings.Split(path, ".") }

// groups says what the keys that hold other keys are for.
var groups = []group{
	{"source", "The server that is copied from. It is only read."},
	{"source.tls", "How connections to the source are encrypted, the binary log's too."},
	{"target", "The server that is copied to."},
	{"target.tls", "How connections to the target are encrypted."},
	{"tables", "What is copied. `shop` means `shop.*`; * and ? are wildcards; a part in backquotes is literal; /re/ is RE2 on database.table."},
	{"schema", "Which objects are copied beside rows."},
	{"snapshot", "The copy of the rows."},
	{"catch_up", "Applying the source's binary log."},
	{"catch_up.spool", "Binary logs fetched ahead during the snapshot."},
	{"online_ddl", "Names that online schema change tools use."},
	{"throttle", "When to slow down."},
}

// table is the one list of keys. The sample, docs/configuration.md, the defaults
// and what is refused all come from it.
var table = slices.Concat(
	serverKeys("source", func(c *Config) *Server { return &c.Source.Server }),
	[]Key{
		{Path: "source.server_id", Kind: KindInt, Default: "0", Max: 1<<32 - 1,
			Doc:   "the replica's server id that the dump connection uses; 0 = random, checked against the source's replicas",
			field: func(c *Config) any { return &c.Source.ServerID }},
		{Path: "source.allow_locks", Kind: KindBool, Default: "true",
			Doc:   "false: never LOCK TABLES, not even for an instant; tables that need it are preflight errors then",
			field: func(c *Config) any { return &c.Source.AllowLocks }},
	},
	serverKeys("target", func(c *Config) *Server { return &c.Target.Server }),
	[]Key{
		{Path: "target.sql_log_bin", Kind: KindBool, Default: "true",
			Doc:   "false: the target does not log what copydb writes; a preflight error if the user may not switch it off",
			field: func(c *Config) any { return &c.Target.SQLLogBin }},
		{Path: "target.fast_load", Kind: KindBool, Default: "false",
			Doc:   "MySQL 8.0.21 and newer: redo log off while rows are loaded, for a target that serves nobody yet; if the target's server dies meanwhile, all of it is lost",
			field: func(c *Config) any { return &c.Target.FastLoad }},
	},
	tableKeys, schemaKeys, snapshotKeys, catchUpKeys, laterKeys, throttleKeys, runKeys,
)

func serverKeys(side string, server func(*Config) *Server) []Key {
	return []Key{
		{Path: side + ".host", Kind: KindString, Default: `""`, Example: side + ".example.com",
			Doc:   "host name or address; or give socket",
			field: func(c *Config) any { return &server(c).Host }},
		{Path: side + ".port", Kind: KindInt, Default: "3306", Min: 1, Max: 65535,
			Doc:   "TCP port",
			field: func(c *Config) any { return &server(c).Port }},
		{Path: side + ".socket", Kind: KindString, Default: `""`,
			Doc:   "path of the server's socket, in place of host",
			field: func(c *Config) any { return &server(c).Socket }},
		{Path: side + ".user", Kind: KindString, Default: `""`, Example: "copydb", Required: true,
			Doc:   "user to log in as",
			field: func(c *Config) any { return &server(c).User }},
		{Path: side + ".password", Kind: KindSecret, Default: `""`,
			Doc:   "its password; never printed, logged or saved; or give password_env or password_file",
			field: func(c *Config) any { return &server(c).Password }},
		{Path: side + ".password_env", Kind: KindString, Default: `""`, Example: "COPYDB_" + strings.ToUpper(side) + "_PASSWORD",
			Doc: "name of the environment variable that holds the password"},
		{Path: side + ".password_file", Kind: KindString, Default: `""`,
			Doc: "file whose first line is the password"},
		{Path: side + ".tls.mode", Kind: KindWord, Default: "preferred",
			Words: []string{"disabled", "preferred", "required", "verify-ca", "verify-identity"},
			Doc:   "preferred: encrypted if the server can; required: or not at all; verify-ca: the server's certificate must be signed by a known authority; verify-identity: and bear its name",
			field: func(c *Config) any { return &server(c).TLS.Mode }},
		{Path: side + ".tls.ca", Kind: KindString, Default: `""`,
			Doc:   "PEM file of the authorities that sign the server's certificate, for verify-ca and verify-identity; without it those of the system",
			field: func(c *Config) any { return &server(c).TLS.CA }},
		{Path: side + ".tls.cert", Kind: KindString, Default: `""`,
			Doc:   "PEM file of the client's certificate, for accounts that require one",
			field: func(c *Config) any { return &server(c).TLS.Cert }},
		{Path: side + ".tls.key", Kind: KindString, Default: `""`,
			Doc:   "PEM file of that certificate's key",
			field: func(c *Config) any { return &server(c).TLS.Key }},
		{Path: side + ".tls.server_name", Kind: KindString, Default: `""`,
			Doc:   "name that the server's certificate must bear, for verify-identity; default: host",
			field: func(c *Config) any { return &server(c).TLS.ServerName }},
		{Path: side + ".connect_timeout", Kind: KindDuration, Default: "10s", Min: decisecond,
			Doc:   "how long opening one connection may take",
			field: func(c *Config) any { return &server(c).ConnectTimeout }},
		{Path: side + ".network_timeout", Kind: KindDuration, Default: "30s", Min: decisecond,
			Doc:   "how long a connection may be silent before it counts as lost",
			field: func(c *Config) any { return &server(c).NetworkTimeout }},
	}
}

var tableKeys = []Key{
	{Path: "tables.include", Kind: KindStrings, Default: "[]", Example: `["shop.*", "crm.orders"]`, Required: true,
		Doc:   `patterns of what is copied; ["*.*"] for all but system schemas`,
		field: func(c *Config) any { return &c.Tables.Include }},
	{Path: "tables.exclude", Kind: KindStrings, Default: "[]", Example: `["shop.tmp_*"]`,
		Doc:   "patterns of what is not; exclude wins",
		field: func(c *Config) any { return &c.Tables.Exclude }},
	{Path: "routes", Kind: KindList, Default: "[]", Later: true,
		Doc: "other names on the target: [{from: shop.*, to: store.*}]; first match wins"},
	{Path: "event_filters", Kind: KindList, Default: "[]", Later: true,
		Doc: "binary log events that catch-up leaves out: [{tables, events, sql, action}]"},
	{Path: "row_filters", Kind: KindList, Default: "[]", Later: true,
		Doc: "rows that are copied: [{tables, where}]"},
	{Path: "existing_tables", Kind: KindWord, Default: "error",
		Words: []string{"error", "use_empty", "truncate", "recreate"},
		Doc:   "what a fresh run does with selected tables that the target has already; use_empty: they must be empty and have the source's columns and keys; truncate: the same, and their rows are deleted; recreate: they are dropped and made anew",
		field: func(c *Config) any { return &c.Existing }},
}

var schemaKeys = []Key{
	{Path: "schema.objects", Kind: KindStrings, Default: "[tables]",
		Words: []string{"tables", "sequences", "views", "triggers", "routines", "events"}, Only: []string{"tables"},
		Doc:   "which objects are created on the target",
		field: func(c *Config) any { return &c.Schema.Objects }},
	{Path: "schema.users", Kind: KindBool, Default: "false", Later: true,
		Doc: "accounts and grants of the selected databases"},
	{Path: "schema.definer", Kind: KindString, Default: "keep", Later: true,
		Doc: `definers of views, triggers, routines and events: keep, strip or "user@host"`},
	{Path: "schema.defer_indexes", Kind: KindBool, Default: "true",
		Doc:   "secondary indexes are built after the rows are copied",
		field: func(c *Config) any { return &c.Schema.DeferIndexes }},
}

var snapshotKeys = []Key{
	{Path: "snapshot.threads", Kind: KindThreads, Default: "auto", Min: 1, Max: 256,
		Doc:   "tables copied at the same time; auto: starts at 2, adds while throughput grows, at most 8",
		field: func(c *Config) any { return &c.Snapshot.Threads }},
	{Path: "snapshot.chunk_size", Kind: KindSize, Default: "16MiB", Unit: "bytes", Min: kib, Max: gib,
		Doc:   "aim: bytes read per chunk; a chunk has at least one row",
		field: func(c *Config) any { return &c.Snapshot.ChunkSize }},
	{Path: "snapshot.load_method", Kind: KindWord, Default: "auto", Words: []string{"auto", "load_data", "insert"},
		Doc:   "how rows are written; auto: the plan says which and why",
		field: func(c *Config) any { return &c.Snapshot.LoadMethod }},
}

var catchUpKeys = []Key{
	{Path: "catch_up.threads", Kind: KindThreads, Default: "auto", Min: 1, Max: 256,
		Doc:   "sessions that the rows of a large window are written over; auto: 4",
		field: func(c *Config) any { return &c.CatchUp.Threads }},
	{Path: "catch_up.until", Kind: KindUntil, Default: UntilCaughtUp,
		Words: []string{UntilCaughtUp, UntilNever, untilCutover}, Only: []string{UntilCaughtUp, UntilNever, "{gtid: SET}", "{file: NAME, pos: N}"},
		Doc:   "where catch-up ends",
		field: func(c *Config) any { return &c.CatchUp.Until }},
	{Path: "catch_up.max_lag", Kind: KindDuration, Default: "1s", Min: int64(time.Millisecond),
		Doc:   "caught_up takes the source's end when the lag first falls under this, applies through it and ends there",
		field: func(c *Config) any { return &c.CatchUp.MaxLag }},
	{Path: "catch_up.ddl", Kind: KindWord, Default: "error", Words: []string{"error", "ignore", "apply"}, Only: []string{"error", "ignore"},
		Doc:   "what a DDL statement on a selected table does",
		field: func(c *Config) any { return &c.CatchUp.DDL }},
	{Path: "catch_up.on_position", Kind: KindList, Default: "[]", Later: true,
		Doc: "transactions to skip or replace: [{pos, gtid, action, sql}]"},
	{Path: "catch_up.spool.dir", Kind: KindString, Default: `""`, Later: true,
		Doc: "folder for binary logs fetched ahead"},
	{Path: "catch_up.spool.max_size", Kind: KindSize, Default: "0", Unit: "bytes", Later: true,
		Doc: "how much of them is kept"},
}

var laterKeys = []Key{
	{Path: "online_ddl.shadow", Kind: KindStrings, Default: "[]", Later: true,
		Doc: "patterns of the tables that gh-ost and pt-online-schema-change fill"},
	{Path: "online_ddl.trash", Kind: KindStrings, Default: "[]", Later: true,
		Doc: "patterns of the tables that they leave behind"},
	{Path: "verify_at_end", Kind: KindBool, Default: "false", Later: true,
		Doc: "compare both sides when the run ends"},
}

var throttleKeys = []Key{
	{Path: "throttle.max_bytes_per_second", Kind: KindSize, Default: "0", Unit: "bytes per second", Min: kib, ZeroToo: true,
		Doc:   "how much is read from the source on average: the rows of the copy, by all workers together, and the binary log in catch-up; 0 = no limit",
		field: func(c *Config) any { return &c.Throttle.MaxBytesPerSecond }},
	{Path: "throttle.source_max_threads_running", Kind: KindInt, Default: "0", Max: 1 << 20,
		Doc:   "no chunk is begun, and the binary log is not read on, while the source's Threads_running, without our own sessions, is above this; 0 = no limit",
		field: func(c *Config) any { return &c.Throttle.SourceMaxThreadsRunning }},
	{Path: "throttle.target_replicas", Kind: KindStrings, Default: "[]", Example: `["replica1", "10.0.0.7:3307"]`,
		Doc:   "replicas of the target whose lag is watched: host or host:port, with user, password and tls of the target",
		field: func(c *Config) any { return &c.Throttle.TargetReplicas }},
	{Path: "throttle.target_replica_max_lag", Kind: KindDuration, Default: "10s", Min: int64(time.Second),
		Doc:   "no chunk, index or window of changes is begun while one of them lags more",
		field: func(c *Config) any { return &c.Throttle.TargetReplicaMaxLag }},
}

var runKeys = []Key{
	{Path: "retry_timeout", Kind: KindDuration, Default: "5m",
		Doc:   "how long a lost server is waited for before the run ends with exit code 7",
		field: func(c *Config) any { return &c.RetryTimeout }},
	{Path: "checkpoint_interval", Kind: KindDuration, Default: "5s", Min: centisecond, ZeroToo: true,
		Doc:   "how often the state file is saved; 0 = after every applied window",
		field: func(c *Config) any { return &c.CheckpointInterval }},
	{Path: "stop_timeout", Kind: KindDuration, Default: "6s", Min: int64(time.Second),
		Doc:   "how long the process may go on after a signal",
		field: func(c *Config) any { return &c.StopTimeout }},
	{Path: "state", Kind: KindString, Default: "copydb-state.json", Required: true,
		Doc:   "path of the state file",
		field: func(c *Config) any { return &c.State }},
}
