package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// enough is the least that a configuration has to say.
const enough = `
source: {host: a, user: u}
target: {host: b, user: v}
tables: {include: ["shop.*"]}
`

func load(t *testing.T, file string, flags ...string) (*Loaded, error) {
	t.Helper()
	in := Input{Name: "c.yaml", File: strings.NewReader(file), LookupEnv: func(name string) (string, bool) {
		v, ok := map[string]string{"PW": "from-env", "EMPTY": ""}[name]
		return v, ok
	}}
	for _, f := range flags {
		s, err := ParseSet(f, "--set")
		if err != nil {
			t.Fatal(err)
		}
		in.Flags = append(in.Flags, s)
	}
	return Load(in)
}

func mustLoad(t *testing.T, file string, flags ...string) Config {
	t.Helper()
	l, err := load(t, file, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return l.Config
}

func TestDefaults(t *testing.T) {
	want := Default()
	want.Source.Host, want.Source.User = "a", "u"
	want.Target.Host, want.Target.User = "b", "v"
	want.Tables.Include = []string{"shop.*"}
	if d := cmp.Diff(want, mustLoad(t, enough)); d != "" {
		t.Error(d)
	}
	got := Default()
	switch {
	case got.Source.Port != 3306, got.Snapshot.ChunkSize != 16<<20, got.StopTimeout != 6*time.Second,
		got.CatchUp.Until.Word != UntilCaughtUp, got.CatchUp.Threads != 4, got.State != "copydb-state.json",
		!got.Source.AllowLocks, !got.Target.SQLLogBin, got.Snapshot.Threads != 0:
		t.Errorf("defaults: %+v", got)
	}
}

func TestValues(t *testing.T) {
	c := mustLoad(t, enough+`
snapshot: {threads: 3, chunk_size: 64KiB, load_method: insert}
catch_up: {until: {file: binlog.000007, pos: 4}, max_lag: 250ms, ddl: ignore, threads: 1}
checkpoint_interval: 0
retry_timeout: 1h
routes: []
throttle: {max_bytes_per_second: 2MiB, source_max_threads_running: 30, target_replicas: [r1, "10.0.0.7:33", "::1", "[fe80::2]:44"], target_replica_max_lag: 3s}
schema: {objects: [tables], defer_indexes: false}
`, "source.server_id=77", "source.tls={mode: required}", "tables.exclude=[a.b, 'c']")
	want := []any{3, int64(64 << 10), "insert", Until{File: "binlog.000007", Pos: 4}, 250 * time.Millisecond, "ignore",
		time.Duration(0), time.Hour, uint32(77), "required", []string{"a.b", "c"}, int64(2 << 20), 30, 3 * time.Second}
	got := []any{c.Snapshot.Threads, c.Snapshot.ChunkSize, c.Snapshot.LoadMethod, c.CatchUp.Until, c.CatchUp.MaxLag, c.CatchUp.DDL,
		c.CheckpointInterval, c.RetryTimeout, c.Source.ServerID, c.Source.TLS.Mode, c.Tables.Exclude,
		c.Throttle.MaxBytesPerSecond, c.Throttle.SourceMaxThreadsRunning, c.Throttle.TargetReplicaMaxLag}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestReplicas(t *testing.T) {
	c := mustLoad(t, enough+`throttle: {target_replicas: [r1, "10.0.0.7:33", "::1", "[fe80::2]:44"]}`, "target.socket=/s", "target.host=''")
	all, err := c.Replicas()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprint(s.Host, " ", s.Port, s.Socket, s.User))
	}
	if d := cmp.Diff([]string{"r1 3306v", "10.0.0.7 33v", "::1 3306v", "fe80::2 44v"}, got); d != "" {
		t.Error(d)
	}
}

func TestRefused(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"unknown key", "\nsnapshot:\n  thread: 1", `c.yaml:3: unknown key "snapshot.thread"; did you mean "snapshot.threads"?`},
		{"unknown group", "snapshots: {}", `c.yaml:1: unknown key "snapshots"; did you mean "snapshot"?`},
		{"wrong place", "chunk_size: 1MiB", `c.yaml:1: unknown key "chunk_size"; did you mean "snapshot.chunk_size"?`},
		{"hyphen", "stop-timeout: 1s", `did you mean "stop_timeout"?`},
		{"nothing near", "zzzzzzzz: 1", `c.yaml:1: unknown key "zzzzzzzz"`},
		{"twice", "state: a\nstate: b", `c.yaml:2: "state" is given twice; the first is in line 1`},
		{"group twice", "source: {}\nsource: {}", `"source" is given twice`},
		{"number", "source: {port: x}", `c.yaml:1: source.port: must be a whole number, not "x"`},
		{"quoted number", `source: {port: "1"}`, `source.port: must be a whole number`},
		{"low", "source: {port: 0}", `source.port: must be at least 1`},
		{"high", "source: {port: 65536}", `source.port: must be at most 65535`},
		{"threads", "snapshot: {threads: many}", `must be a whole number, not "many", or auto`},
		{"string", "source: {user: 12}", `source.user: must be a string; put it in quotes`},
		{"bool", "source: {allow_locks: 1}", `must be true or false, not "1"`},
		{"word", "snapshot: {load_method: fast}", `must be one of auto, load_data, insert, not "fast"`},
		{"size", "snapshot: {chunk_size: 16MB}", `must be a size such as 64KiB`},
		{"size too small", "snapshot: {chunk_size: 1}", `must be at least 1KiB`},
		{"duration", "stop_timeout: 6", `must be a duration such as`},
		{"short", "stop_timeout: 1ms", `must be at least 1s`},
		{"zero or more", "checkpoint_interval: 1ms", `must be 0 or at least 10ms`},
		{"negative", "retry_timeout: -1s", `must be at least 0s`},
		{"list", "tables: {include: shop}", `tables.include: must be a list`},
		{"list of", "tables: {include: [1]}", `element 1 must be a string`},
		{"pattern", "tables: {include: [a.b.c, '`x']}", `tables.include: pattern "a.b.c": more than two parts`},
		{"no value", "state:", `state: has no value`},
		{"scalar for a group", "source: here", `source must hold keys`},
		{"tag", "state: !!str a", `tags (!) are not supported`},
		{"two documents", "state: a\n---\nstate: b", `more than one document`},
		{"until", "catch_up: {until: soon}", `must be caught_up, never,`},
		{"until both", "catch_up: {until: {gtid: a, file: b}}", `must be caught_up, never,`},
		{"until position", "catch_up: {until: {file: a, pos: 1}}", `a number of at least 4`},
		{"missing", "", "source.host is missing (or source.socket)"},
		{"socket and host", "source: {host: a, socket: /b}", "source.host and source.socket are both given"},

		{"later", "verify_at_end: true", `c.yaml:1: verify_at_end: not supported yet`},
		{"later list", "routes: [{from: a, to: b}]", `routes: not supported yet`},
		{"later nested", "catch_up: {spool: {max_size: 1MiB}}", `catch_up.spool.max_size: not supported yet`},
		{"later default in other words", "catch_up: {spool: {max_size: 0KiB}}", `not supported yet`},
		{"slower than a chunk", "throttle: {max_bytes_per_second: 5}", `must be 0 or at least 1KiB`},
		{"replica with an account", `throttle: {target_replicas: ["root@a:1"]}`, `c.yaml:1: throttle.target_replicas: an element must be a host or host:port`},
		{"replica without host", `throttle: {target_replicas: [":3306"]}`, `an element must be a host or host:port`},
		{"replica's port", `throttle: {target_replicas: ["a:x"]}`, `an element must be a host or host:port`},
		{"replica as a URL", `throttle: {target_replicas: ["mysql://a"]}`, `an element must be a host or host:port`},
		{"lag", "throttle: {target_replica_max_lag: 10ms}", `must be at least 1s`},
		{"existing tables", "existing_tables: keep", `must be one of error, use_empty, truncate, recreate, not "keep"`},
		{"objects", "schema: {objects: [tables, views]}", `schema.objects: views: not supported yet`},
		{"no objects", "schema: {objects: []}", `schema.objects: must be [tables]`},
		{"tls mode", "target: {host: h, tls: {mode: verify}}", `target.tls.mode: must be one of disabled, preferred, required, verify-ca, verify-identity`},
		{"ca without use", "target: {host: h, tls: {ca: /x}}", `c.yaml:1: target.tls.ca: nothing is verified with mode preferred`},
		{"no such ca", "target: {host: h, tls: {mode: verify-ca, ca: /no/such/file}}", `c.yaml:1: target.tls.ca: open /no/such/file: no such file`},
		{"no certificate", "source: {host: h, tls: {mode: verify-ca, ca: load_test.go}}", `source.tls.ca: load_test.go holds no certificate in PEM form`},
		{"no such cert", "source: {host: h, tls: {cert: /no/such/file, key: k}}", `source.tls.cert: open /no/such/file: no such file`},
		{"cert without key", "source: {host: h, tls: {cert: c}}", `source.tls.key: the certificate needs its key`},
		{"key without cert", "source: {host: h, tls: {key: c}}", `source.tls.cert: the key needs its certificate`},
		{"cert in the clear", "source: {host: h, tls: {mode: disabled, cert: c, key: k}}", `source.tls.cert: nothing is encrypted`},
		{"name without use", "source: {host: h, tls: {mode: verify-ca, server_name: x}}", `source.tls.server_name: no name is verified`},
		{"socket without name", "source: {socket: /s, tls: {mode: verify-identity}}", `source.tls.server_name: verify-identity over a socket`},
		{"apply", "catch_up: {ddl: apply}", `catch_up.ddl: apply: not supported yet`},
		{"cutover", "catch_up: {until: cutover}", `catch_up.until: cutover: not supported yet`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.file)
			var bad *Error
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got:\n%v\nwant in it: %s", err, tt.want)
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	_, err := load(t, "stat: a\nsource: {port: x, host: h, user: 1}", "snapshot.thread=1", "stop_timeout=1")
	want := `c.yaml:1: unknown key "stat"; did you mean "state"?
--set: unknown key "snapshot.thread"; did you mean "snapshot.threads"?
c.yaml:2: source.port: must be a whole number, not "x"
c.yaml:2: source.user: must be a string; put it in quotes
--set: stop_timeout: must be a duration such as 500ms, 10s or 5m, not "1"
c.yaml: target.host is missing (or target.socket)
c.yaml: target.user is missing
c.yaml: tables.include is missing: which tables to copy; ["*.*"] for all`
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Error(d)
	}
}

func TestPrecedence(t *testing.T) {
	in := Input{
		Name:  "c",
		File:  strings.NewReader(enough + "stop_timeout: 2s\nstate: file\nretry_timeout: 1s\n"),
		Env:   []Setting{Text("stop_timeout", "3s", "E"), String("state", "env", "E")},
		Flags: []Setting{Text("stop_timeout", "4s", "F"), Text("stop_timeout", "5s", "F")},
	}
	l, err := Load(in)
	if err != nil {
		t.Fatal(err)
	}
	if c := l.Config; c.StopTimeout != 5*time.Second || c.State != "env" || c.RetryTimeout != time.Second || c.CheckpointInterval != 5*time.Second {
		t.Errorf("%+v", c)
	}
}

func TestPasswords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(file, []byte("from-file\r\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, file, flag, want, err string }{
		{"plain", "password: plain", "", "plain", ""},
		{"env", "password_env: PW", "", "from-env", ""},
		{"file", "password_file: " + file, "", "from-file", ""},
		{"none", "port: 1", "", "", ""},
		{"flag hides file", "password: plain", "source.password_env=PW", "from-env", ""},
		{"two", "password: plain, password_env: PW", "", "", "more than one password: source.password and source.password_env"},
		{"not set", "password_env: NOPE", "", "", "the environment variable NOPE is not set"},
		{"empty", "password_env: EMPTY", "", "", "the environment variable EMPTY is empty"},
		{"no file", "password_file: /no/such", "", "", "no such file"},
		{"on argv", "port: 1", "source.password=hunter2", "", "can be read by every user"},
		{"on argv, within", "port: 1", "source={password: hunter2}", "", "can be read by every user"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var flags []string
			if tt.flag != "" {
				flags = []string{tt.flag}
			}
			l, err := load(t, strings.Replace(enough, "user: u", "user: u, "+tt.file, 1), flags...)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Config.Source.Password.Reveal(); got != tt.want || l.SourcePassword != (tt.want != "") || l.TargetPassword {
				t.Errorf("got %q, given %v", got, l.SourcePassword)
			}
			if len(l.Warnings) > 0 {
				t.Errorf("warnings: %q", l.Warnings)
			}
		})
	}
}

func TestPasswordFileReadByOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := load(t, enough, "source.password_file="+file)
	if err != nil || len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "mode 0644") {
		t.Errorf("%v %+v", err, l)
	}
}
