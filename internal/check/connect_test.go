package check

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
)

func connConfig(t *testing.T, cfg mysqlconn.Config) *mysqlconn.Server {
	t.Helper()
	cfg.User, cfg.ConnectTimeout, cfg.NetworkTimeout = "nobody", time.Second, time.Second
	s, err := mysqlconn.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestConnect: what keeps a login from working is told apart, and the other
// server is checked all the same.
func TestConnect(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MySQL, servers.MariaDB118} {
		t.Run(string(kind), func(t *testing.T) {
			srv := testdb.One(t, kind)
			testdb.Exec(t, srv, "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY); CREATE USER locked@'%' ACCOUNT LOCK; SET GLOBAL read_only = ON")
			closed := refusingPort(t)
			silent := silentPort(t)
			for _, c := range []struct {
				name   string
				server *mysqlconn.Server
				part   string
				fix    string
			}{
				{"password", connTo(t, "source", srv, "root", "wrong-secret"), `refuses user "root"`, "source.password"},
				{"locked", connTo(t, "source", srv, "locked", ""), "locked", "UNLOCK"},
				{"refused", connConfig(t, mysqlconn.Config{Name: "source", Host: "127.0.0.1", Port: closed}), "nothing listens", "source.port"},
				{"silent", connConfig(t, mysqlconn.Config{Name: "source", Host: "127.0.0.1", Port: silent}), "does not answer", "source.host"},
				{"name", connConfig(t, mysqlconn.Config{Name: "source", Host: "no-such-host.invalid", Port: 3306}), "", "source"},
				{"socket", connConfig(t, mysqlconn.Config{Name: "source", Socket: "/no/such/socket"}), "no such socket", "source.socket"},
			} {
				t.Run(c.name, func(t *testing.T) {
					in := input(t, srv, srv, "a.*")
					in.Source = c.server
					found := run(t, in)
					want(t, found, SeverityError, "source_connect", c.part, c.fix)
					want(t, found, SeverityError, "target_read_only")
					if strings.Contains(show(found), "wrong-secret") {
						t.Error("the password is shown")
					}
				})
			}
			in := input(t, srv, srv, "a.*")
			in.Target = connConfig(t, mysqlconn.Config{Name: "target", Host: "127.0.0.1", Port: closed})
			found := run(t, in)
			want(t, found, SeverityError, "target_connect", "target.port")
			if len(in.Facts.Tables) != 1 {
				t.Errorf("tables: %v", in.Facts.Tables)
			}
		})
	}
}

// TestNoTLS: a server without TLS that must encrypt.
func TestNoTLS(t *testing.T) {
	off := "--skip-ssl"
	for _, kind := range []servers.Kind{servers.MySQL, servers.MariaDB1011} {
		t.Run(string(kind), func(t *testing.T) {
			args := off
			if !kind.IsMariaDB() {
				args = "--tls-version="
			}
			srv := testdb.One(t, kind, testdb.WithArgs(args))
			conf, fallback, err := mysqlconn.TLS{Mode: mysqlconn.TLSRequired}.Config()
			if err != nil {
				t.Fatal(err)
			}
			in := input(t, srv, srv, "a.*")
			in.Source = connConfig(t, mysqlconn.Config{Name: "source", Host: srv.Host, Port: srv.Port, TLS: conf, TLSFallback: fallback})
			want(t, run(t, in), SeverityError, "source_connect", "TLS", "source.tls.mode")
		})
	}
}

func refusingPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// silentPort accepts connections and says nothing.
func silentPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestCancelled(t *testing.T) {
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	in := &Input{Select: selecting("a.*"), Source: connConfig(t, mysqlconn.Config{Name: "source", Socket: "/no/such/socket"}),
		Target: connConfig(t, mysqlconn.Config{Name: "target", Socket: "/no/such/socket"})}
	if _, err := Run(ctx, in); !errors.Is(err, stop) {
		t.Errorf("run: %v", err)
	}
}
