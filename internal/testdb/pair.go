package testdb

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/copydb/copydb/test/servers"
	"golang.org/x/sync/errgroup"
)

// Option changes how a server of a test is started.
type Option func(*servers.Options)

// WithBinlogSize sets max_binlog_size in bytes; the default of this package is
// servers.ScenarioBinlog.
func WithBinlogSize(bytes int) Option { return func(o *servers.Options) { o.BinlogSize = bytes } }

// WithFast gives up durability; see servers.Options.
func WithFast() Option { return func(o *servers.Options) { o.Fast = true } }

// WithoutLocalInfile refuses LOAD DATA LOCAL.
func WithoutLocalInfile() Option { return func(o *servers.Options) { o.NoLocalInfile = true } }

// WithBufferPool sets innodb_buffer_pool_size, as in "1G".
func WithBufferPool(size string) Option { return func(o *servers.Options) { o.BufferPool = size } }

// WithArgs adds server options.
func WithArgs(args ...string) Option {
	return func(o *servers.Options) { o.ExtraArgs = append(o.ExtraArgs, args...) }
}

// Pair starts a source and a target of one kind at the same time, both with
// the same options. If the test fails, the ends of their logs are shown.
func Pair(t testing.TB, kind servers.Kind, opts ...Option) (source, target *servers.Server) {
	t.Helper()
	both := start(t, kind, 2, opts)
	return both[0], both[1]
}

// One starts one server as Pair starts two.
func One(t testing.TB, kind servers.Kind, opts ...Option) *servers.Server {
	t.Helper()
	return start(t, kind, 1, opts)[0]
}

func start(t testing.TB, kind servers.Kind, n int, opts []Option) []*servers.Server {
	t.Helper()
	started := make([]*servers.Server, n)
	var group errgroup.Group
	for i := range started {
		o := servers.Options{Kind: kind, BinlogSize: servers.ScenarioBinlog}
		for _, opt := range opts {
			opt(&o)
		}
		group.Go(func() (err error) {
			started[i], err = servers.Start(t.Context(), o)
			return err
		})
	}
	err := group.Wait()
	t.Cleanup(func() { closeServers(t, started) })
	if err != nil {
		t.Fatal(err)
	}
	return started
}

func closeServers(t testing.TB, all []*servers.Server) {
	var errs []error
	for _, s := range all {
		if s == nil {
			continue
		}
		if t.Failed() {
			t.Logf("log of %s on %s:\n%s", s.Kind, s.Addr(), s.Log())
		}
		errs = append(errs, s.Close())
	}
	if err := errors.Join(errs...); err != nil {
		t.Errorf("close servers: %v", err)
	}
}

// Exec runs SQL (several statements, no DELIMITER) as the super user on one
// connection of its own.
func Exec(t testing.TB, srv *servers.Server, query string) {
	t.Helper()
	conn := session(t, srv)
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%.300s: %v", query, err)
	}
}

// Value runs a query as the super user and returns its first column as text;
// NULL is "NULL". The query must have a row.
func Value(t testing.TB, srv *servers.Server, query string) string {
	t.Helper()
	var v sql.NullString
	if err := srv.DB().QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%.300s: %v", query, err)
	}
	if !v.Valid {
		return "NULL"
	}
	return v.String
}

// session returns a connection in UTC that takes every value a server can
// hold. Its settings would stay on a pooled connection, so it comes from a
// pool of its own; closing it closes both.
func session(t testing.TB, srv *servers.Server) *pinned {
	t.Helper()
	p, err := pin(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pinned is one connection with its own pool.
type pinned struct {
	*sql.Conn
	db *sql.DB
}

func pin(ctx context.Context, srv *servers.Server) (*pinned, error) {
	db := srv.Open()
	conn, err := db.Conn(ctx)
	if err == nil {
		_, err = conn.ExecContext(ctx, sessionSettings)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &pinned{conn, db}, nil
}

const sessionSettings = "SET NAMES utf8mb4; SET SESSION time_zone = '+00:00'; " +
	"SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'"

// Close closes the connection and its pool.
func (p *pinned) Close() error { return errors.Join(p.Conn.Close(), p.db.Close()) }

// column returns the first column of all rows.
func column(ctx context.Context, c *pinned, query string, args ...any) ([]string, error) {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
