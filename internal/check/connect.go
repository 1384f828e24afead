package check

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// sessionSetup keeps a look at a table from waiting behind a schema change.
const sessionSetup = "SET SESSION lock_wait_timeout = 2"

// connect logs in to both servers; what fails is a finding, and the checks of
// the other server still run.
func (r *runner) connect(ctx context.Context) error {
	f := &r.in.Facts
	r.source = &side{name: "source", server: r.in.Source, facts: &f.Source}
	r.target = &side{name: "target", server: r.in.Target, facts: &f.Target}
	for _, s := range []*side{r.source, r.target} {
		err := s.login(ctx)
		if err == nil && s == r.source {
			r.raw, err = s.server.OpenSession(ctx, sessionSetup)
		}
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.refused(s, err)
			continue
		}
		if s == r.source {
			r.have |= needSource
		} else {
			r.have |= needTarget
		}
	}
	return nil
}

func (s *side) login(ctx context.Context) (err error) {
	if s.conn, err = s.server.Open(ctx); err != nil {
		return err
	}
	if s.facts.Identity, err = s.conn.Identify(ctx); err != nil {
		return err
	}
	return s.learn(ctx)
}

// refused turns a failed login into a finding that tells the causes apart.
func (r *runner) refused(s *side, err error) {
	cfg := s.server.Config()
	message, fix := whyRefused(cfg, err)
	r.fail(s.name+"_connect", cfg.Address(), fmt.Sprintf("cannot connect to the %s at %s: %s", s.name, cfg.Address(), message),
		strings.ReplaceAll(fix, "{side}", s.name))
}

func whyRefused(cfg mysqlconn.Config, err error) (message, fix string) {
	var dns *net.DNSError
	switch mysqlconn.ErrorNumber(err) {
	case 1045, 1698, 1044:
		return fmt.Sprintf("the server refuses user %q with this password", cfg.User),
			"check {side}.user and {side}.password, that the account is allowed from this host, and whether it or the server requires TLS or a client certificate (REQUIRE SSL or X509, require_secure_transport: {side}.tls)"
	case 1130, 1129:
		return "the server does not let this host in", "allow this host for the account, or clear its blocked hosts (FLUSH HOSTS)"
	case 3118, 4151:
		return fmt.Sprintf("the account of user %q is locked", cfg.User), "unlock it: ALTER USER … ACCOUNT UNLOCK"
	case 1820, 1862:
		return fmt.Sprintf("the password of user %q has expired", cfg.User), "set a new one: ALTER USER … IDENTIFIED BY …"
	case 1040, 1203, 1226:
		return "the server has no connection left", "end idle sessions, or raise max_connections or the account's limit"
	case 3159, 4194:
		return "the server wants encryption", "set {side}.tls.mode to required"
	}
	if message, fix := whyNotTLS(cfg, err); message != "" {
		return "TLS failed: " + message, fix
	}
	switch {
	case errors.As(err, &dns):
		return "its name is not known", "check {side}.host"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there", "check {side}.host and {side}.port, and that the server runs"
	case errors.Is(err, syscall.ENOENT):
		return "there is no such socket", "check {side}.socket, and that the server runs"
	case errors.Is(err, syscall.EACCES):
		return "this user may not use the socket", "run as a user who may, or connect by host and port"
	case isTimeout(err):
		return "it does not answer", "check {side}.host, firewalls and {side}.connect_timeout"
	}
	return cause(err), "check the {side} section of the configuration and the server's error log"
}

// whyNotTLS tells apart what keeps a connection from being encrypted or trusted;
// "" where it is something else.
func whyNotTLS(cfg mysqlconn.Config, err error) (message, fix string) {
	const anyway = "; {side}.tls.mode: required encrypts without checking who the server is"
	var hello tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	client := cfg.TLS != nil && len(cfg.TLS.Certificates) > 0
	switch {
	case mysqlconn.IsWithoutTLS(err) || errors.As(err, &hello):
		return "the server has no TLS", "enable TLS on the server, or set {side}.tls.mode to preferred or disabled"
	case errors.As(err, &name):
		return "the server's certificate bears another name: " + cause(err),
			"connect by a name that it bears, set {side}.tls.server_name to one, or set {side}.tls.mode to verify-ca"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate is out of date: " + cause(err), "renew the certificate on the server, and look at the clocks" + anyway
	case errors.As(err, &authority):
		return "the server's certificate is signed by an unknown authority", "set {side}.tls.ca to the file of the authority that signed it" + anyway
	case client && (strings.Contains(err.Error(), "remote error: tls: ") || mysqlconn.IsCutOff(err)):
		return "the server ended the connection, perhaps because it does not accept the client's certificate",
			"check {side}.tls.cert and {side}.tls.key: an authority in the server's ssl_ca must have signed them, and they must not have expired"
	case strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: "):
		return cause(err), "check {side}.tls and the server's certificate" + anyway
	}
	return "", ""
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &ne) && ne.Timeout() ||
		errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, mysqlconn.ErrSilent)
}

// cause returns the innermost message: the outer ones repeat the address.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
