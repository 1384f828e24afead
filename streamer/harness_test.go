package streamer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/applier"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/copydb/copydb/internal/table"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
)

// limit bounds each stream of a test.
const limit = 90 * time.Second

var errDone = errors.New("the test has seen enough")

// everyKind runs a test on each kind of server.
func everyKind(t *testing.T, test func(t *testing.T, src *source)) {
	for _, kind := range servers.Kinds() {
		onKind(t, kind, test)
	}
}

// bothFamilies is everyKind where the kind of position does not matter.
func bothFamilies(t *testing.T, test func(t *testing.T, src *source)) {
	onKind(t, servers.MySQL, test)
	onKind(t, servers.MariaDB118, test)
}

func onKind(t *testing.T, kind servers.Kind, test func(t *testing.T, src *source)) {
	t.Run(string(kind), func(t *testing.T) { test(t, newSource(t, kind)) })
}

// long tells whether the series run in full length.
var long = os.Getenv("COPYDB_TEST_LONG") == "1"

// times returns the number for the run of the tests that this is.
func times(short, full int) int {
	if long {
		return full
	}
	return short
}

// shared are the servers of the tests, one of each kind that is asked for:
// starting one takes seconds.
var shared pool

type pool struct {
	byKind map[servers.Kind]*servers.Server
}

func (p *pool) server(t *testing.T, kind servers.Kind) *servers.Server {
	t.Helper()
	srv := p.byKind[kind]
	if srv == nil {
		var err error
		srv, err = servers.Start(context.Background(), servers.Options{Kind: kind, BinlogSize: servers.ScenarioBinlog, Fast: true,
			ExtraArgs: []string{"--binlog-row-event-max-size=256"}})
		if err != nil {
			t.Fatal(err)
		}
		if p.byKind == nil {
			p.byKind = map[servers.Kind]*servers.Server{}
		}
		p.byKind[kind] = srv
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s on %s:\n%s", srv.Kind, srv.Addr(), srv.Log())
		}
	})
	return srv
}

func (p *pool) close() {
	for _, srv := range p.byKind {
		_ = srv.Close() // nothing is lost with what is left
	}
}

// wipe leaves a server without databases of a test before.
func wipe(t *testing.T, srv *servers.Server) {
	t.Helper()
	testdb.EndXA(t, srv)
	testdb.Exec(t, srv, "SET GLOBAL general_log=OFF; TRUNCATE mysql.general_log; SET foreign_key_checks=0; DROP DATABASE IF EXISTS a; DROP DATABASE IF EXISTS b")
}

// source is a server whose log is read.
type source struct {
	*servers.Server
	conn    *mysqlconn.Server
	version mysqlconn.Version
	state   string // beside which spill files are
}

func newSource(t *testing.T, kind servers.Kind) *source {
	t.Helper()
	srv := shared.server(t, kind)
	wipe(t, srv)
	return &source{Server: srv, conn: connection(t, srv, srv.Port), version: versionOf(t, srv), state: filepath.Join(t.TempDir(), "state.json")}
}

func versionOf(t *testing.T, srv *servers.Server) mysqlconn.Version {
	t.Helper()
	v, err := mysqlconn.ParseVersion(testdb.Value(t, srv, "SELECT VERSION()"))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func connection(t *testing.T, srv *servers.Server, port int) *mysqlconn.Server {
	t.Helper()
	tls, fallback, err := mysqlconn.TLS{Mode: mysqlconn.TLSPreferred}.Config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysqlconn.New(mysqlconn.Config{Name: "source", Host: srv.Host, Port: port, User: srv.RootUser, TLS: tls, TLSFallback: fallback,
		ConnectTimeout: 10 * time.Second, NetworkTimeout: 10 * time.Second, RunID: fmt.Sprintf("streamertest%d", lastRun.Add(1))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// exec runs statements on one connection.
func (s *source) exec(t *testing.T, statements ...string) {
	t.Helper()
	testdb.Exec(t, s.Server, strings.Join(statements, ";\n"))
}

// here returns the end of the log.
func (s *source) here(t *testing.T) state.Position {
	t.Helper()
	var p state.Position
	rows, err := s.DB().QueryContext(t.Context(), s.version.BinlogStatusQuery())
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		t.Fatal(err)
	}
	rest := make([]any, len(columns))
	rest[0], rest[1] = &p.File, &p.Pos
	for i := 2; i < len(rest); i++ {
		rest[i] = new(sql.RawBytes)
	}
	if err := rows.Scan(rest...); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	switch {
	case s.Kind == servers.MySQL:
		p.GTIDSet = normal(t, mysqlconn.MySQL, testdb.Value(t, s.Server, "SELECT @@global.gtid_executed"))
	case s.Kind.IsMariaDB():
		p.GTIDSet = normal(t, mysqlconn.MariaDB, testdb.Value(t, s.Server, "SELECT @@global.gtid_binlog_pos"))
	}
	return p
}

func normal(t *testing.T, f mysqlconn.Flavor, text string) string {
	t.Helper()
	set, err := position.Parse(f, text)
	if err != nil {
		t.Fatal(err)
	}
	return set.String()
}

// tables loads the structures of databases.
func (s *source) tables(t *testing.T, databases ...string) map[table.Name]*TableSpec {
	t.Helper()
	sess, err := s.conn.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	all, err := table.List(t.Context(), sess)
	if err != nil {
		t.Fatal(err)
	}
	out := map[table.Name]*TableSpec{}
	for _, db := range databases {
		var names []string
		for _, e := range all {
			if e.Database == db && e.IsTable() {
				names = append(names, e.Table)
			}
		}
		loaded, err := table.Load(t.Context(), sess, s.version.Flavor, db, names)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range loaded {
			out[l.FullName()] = &TableSpec{Structure: l}
		}
	}
	return out
}

// lastRun tells the named locks of tests apart: a dump that has ended may keep
// its own for a while.
var lastID, lastRun atomic.Uint32

// config is what a stream of a test has in common with others.
func (s *source) config(start state.Position, tables map[table.Name]*TableSpec) Config {
	return Config{Source: s.conn, Version: s.version, ServerID: 90000 + lastID.Add(1), Start: start, GTIDs: s.Kind.HasGTID(),
		Tables: tables, Heartbeat: time.Second, StatePath: s.state,
		Selected: func(db, _ string) bool {
			for n := range tables {
				if n.Database == db {
					return true
				}
			}
			return false
		}}
}

// resume is the config of a stream that goes on behind a transaction, with spill
// files of its own.
func (s *source) resume(t *testing.T, tx *Transaction, tables map[table.Name]*TableSpec) Config {
	t.Helper()
	cfg := s.config(tx.EndPosition(), tables)
	cfg.StatePath = filepath.Join(t.TempDir(), "state.json")
	cfg.Spilled = tx.SpillFiles
	for _, name := range tx.SpillFiles {
		content, err := os.ReadFile(state.SpillPath(s.state, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(state.SpillPath(cfg.StatePath, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

// read streams until end is reached and returns what was handed over.
func read(t *testing.T, cfg Config, end state.Position) []*Transaction {
	t.Helper()
	all, err := tryRead(t, cfg, end)
	if err != nil {
		t.Fatalf("stream: %v", err)
	}
	return all
}

func tryRead(t *testing.T, cfg Config, end state.Position) ([]*Transaction, error) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var all []*Transaction
	err = s.Run(ctx, func(_ context.Context, tx *Transaction) error {
		all = append(all, tx)
		if !tx.Partial && position.Reached(cfg.Version.Flavor, tx.EndPosition(), end) {
			return errDone
		}
		return nil
	})
	if errors.Is(err, errDone) {
		err = nil
	}
	return all, err
}

// describe renders changes for comparison: op table(before)(after).
func describe(all []*Transaction) []string {
	var out []string
	for _, tx := range all {
		for _, c := range tx.Changes {
			out = append(out, fmt.Sprintf("%s %s(%s)(%s)", c.Op, c.Table.Table, cells(c.Before), cells(c.After)))
		}
	}
	return out
}

func cells(r applier.Row) string {
	var parts []string
	for _, v := range r {
		parts = append(parts, string(v))
	}
	return strings.Join(parts, ",")
}

func wantChanges(t *testing.T, all []*Transaction, want ...string) {
	t.Helper()
	got := describe(all)
	if !slices.Equal(got, want) {
		t.Errorf("changes:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
