package check

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
)

// TestCertificates: what is verified in each mode, and what is said where it
// fails.
func TestCertificates(t *testing.T) {
	ours, others := testdb.NewAuthority(t, "ours"), testdb.NewAuthority(t, "others")
	cert, key := ours.Issue(time.Hour, "client")
	strange, strangeKey := others.Issue(time.Hour, "stranger")
	for _, kind := range []servers.Kind{servers.MySQL, servers.MariaDB1011, servers.MariaDB118} {
		t.Run(string(kind), func(t *testing.T) {
			srv := testdb.One(t, kind, testdb.WithArgs(ours.ServerArgs(time.Hour, "db.test")...), testdb.WithFast())
			testdb.Exec(t, srv, `CREATE USER plain@'%' IDENTIFIED BY 'x1'; CREATE USER crypted@'%' IDENTIFIED BY 'x1' REQUIRE SSL; CREATE USER certified@'%' IDENTIFIED BY 'x1' REQUIRE X509;
				GRANT ALL ON *.* TO plain@'%', crypted@'%', certified@'%'; CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY)`)
			for _, c := range []struct {
				name, user string
				tls        mysqlconn.TLS
				says, fix  string // "": it works
			}{
				{"disabled", "plain", mysqlconn.TLS{Mode: "disabled"}, "", ""},
				{"preferred", "crypted", mysqlconn.TLS{}, "", ""},
				{"required", "crypted", mysqlconn.TLS{Mode: "required"}, "", ""},
				{"verify-ca", "crypted", mysqlconn.TLS{Mode: "verify-ca", CA: ours.CA}, "", ""},
				{"verify-identity", "crypted", mysqlconn.TLS{Mode: "verify-identity", CA: ours.CA, ServerName: "db.test"}, "", ""},
				{"client certificate", "certified", mysqlconn.TLS{Mode: "verify-ca", CA: ours.CA, Cert: cert, Key: key}, "", ""},
				{"client certificate unverified", "certified", mysqlconn.TLS{Cert: cert, Key: key}, "", ""},
				{"account wants TLS", "crypted", mysqlconn.TLS{Mode: "disabled"}, `refuses user "crypted"`, "REQUIRE SSL or X509"},
				{"account wants a certificate", "certified", mysqlconn.TLS{Mode: "required"}, `refuses user "certified"`, "X509"},
				{"other authority", "crypted", mysqlconn.TLS{Mode: "verify-ca", CA: others.CA}, "unknown authority", "source.tls.ca"},
				{"system's authorities", "crypted", mysqlconn.TLS{Mode: "verify-ca"}, "unknown authority", "source.tls.ca"},
				{"other authority with name", "crypted", mysqlconn.TLS{Mode: "verify-identity", CA: others.CA, ServerName: "db.test"}, "unknown authority", "source.tls.ca"},
				{"other name", "crypted", mysqlconn.TLS{Mode: "verify-identity", CA: ours.CA, Host: srv.Host}, "bears another name", "source.tls.server_name"},
				{"certificate of a stranger", "certified", mysqlconn.TLS{Mode: "required", Cert: strange, Key: strangeKey}, "client's certificate", "source.tls.cert"},
			} {
				t.Run(c.name, func(t *testing.T) { tryTLS(t, srv, c.user, c.tls, c.says, c.fix) })
			}
			testdb.Exec(t, srv, "SET GLOBAL require_secure_transport = ON")
			says, fix := "wants encryption", "source.tls.mode"
			if kind == servers.MariaDB1011 { // says no more than that access is denied
				says, fix = "refuses user", "require_secure_transport"
			}
			tryTLS(t, srv, "plain", mysqlconn.TLS{Mode: "disabled"}, says, fix)
			tryTLS(t, srv, "plain", mysqlconn.TLS{}, "", "")
		})
	}
}

// TestExpiredCertificate: only the modes that verify mind.
func TestExpiredCertificate(t *testing.T) {
	ours := testdb.NewAuthority(t, "ours")
	for _, kind := range []servers.Kind{servers.MySQL, servers.MariaDB118} {
		t.Run(string(kind), func(t *testing.T) {
			srv := testdb.One(t, kind, testdb.WithArgs(ours.ServerArgs(-time.Minute, "db.test")...), testdb.WithFast())
			testdb.Exec(t, srv, "CREATE USER crypted@'%' IDENTIFIED BY 'x1' REQUIRE SSL")
			tryTLS(t, srv, "crypted", mysqlconn.TLS{Mode: "required"}, "", "")
			tryTLS(t, srv, "crypted", mysqlconn.TLS{Mode: "verify-ca", CA: ours.CA}, "out of date", "renew")
			tryTLS(t, srv, "crypted", mysqlconn.TLS{Mode: "verify-identity", CA: ours.CA, ServerName: "db.test"}, "out of date", "renew")
		})
	}
}

// tryTLS logs in to the source by both kinds of connections.
func tryTLS(t *testing.T, srv *servers.Server, user string, enc mysqlconn.TLS, says, fix string) {
	t.Helper()
	conf, fallback, err := enc.Config()
	if err != nil {
		t.Fatal(err)
	}
	s, err := mysqlconn.New(mysqlconn.Config{Name: "source", Host: srv.Host, Port: srv.Port, User: user, Password: "x1", TLS: conf, TLSFallback: fallback,
		ConnectTimeout: 10 * time.Second, NetworkTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in := input(t, srv, srv, "a.*")
	in.Source = s
	found := run(t, in)
	if says != "" {
		want(t, found, SeverityError, "source_connect", says, fix)
		return
	}
	wantNot(t, found, "source_connect")
	raw, err := s.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	row, err := raw.QueryRow(t.Context(), "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
	if err != nil || len(row) != 2 || (len(row[1]) > 0) != (enc.Mode != "disabled") {
		t.Errorf("cipher %q with mode %s: %v", row, enc.Mode, err)
	}
}

// TestCutOff: a server that ends the connection before a word is sent is known
// as lost, and blamed on the certificate only where there is one.
func TestCutOff(t *testing.T) {
	err := fmt.Errorf("connect: %w", &mysqlconn.LostError{Server: "source", Err: errors.New("bad connection")})
	if !mysqlconn.IsConnectionLost(err) || mysqlconn.IsAccessDenied(err) || mysqlconn.IsTableGone(err) {
		t.Error("the error is not known as a lost connection alone")
	}
	with := mysqlconn.Config{TLS: &tls.Config{Certificates: []tls.Certificate{{}}}}
	for _, cfg := range []mysqlconn.Config{with, {}} {
		message, _ := whyRefused(cfg, err)
		if strings.Contains(message, "client's certificate") != (cfg.TLS != nil) {
			t.Errorf("certificate %v: %s", cfg.TLS != nil, message)
		}
	}
}
