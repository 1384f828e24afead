package mysqlconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"
)

// The modes of TLS, as the servers' own clients name them.
const (
	TLSDisabled       = "disabled"
	TLSPreferred      = "preferred"       // encrypted if the server can
	TLSRequired       = "required"        // encrypted, whoever the server is
	TLSVerifyCA       = "verify-ca"       // the server's certificate is signed by a known authority
	TLSVerifyIdentity = "verify-identity" // and bears the server's name
)

// TLS says how connections to a server are encrypted and what it must prove.
// CA, Cert and Key are paths of PEM files; without CA the system's authorities
// count. ServerName is the name that verify-identity wants, Host what stands in
// for it.
type TLS struct {
	Mode       string // "" is preferred
	CA         string
	Cert, Key  string // of the client
	ServerName string
	Host       string
}

// TLSError says which setting of a TLS is wrong: mode, ca, cert, key or
// server_name.
type TLSError struct {
	Setting string
	Err     error
}

// Error names the setting.
func (e *TLSError) Error() string { return fmt.Sprintf("tls.%s: %v", e.Setting, e.Err) }

// Unwrap returns what is wrong with it.
func (e *TLSError) Unwrap() error { return e.Err }

func tlsError(setting, format string, args ...any) error {
	return &TLSError{Setting: setting, Err: fmt.Errorf(format, args...)}
}

// Config reads the files and returns what a Config takes. It contacts nothing.
// The error is a *TLSError.
func (t TLS) Config() (conf *tls.Config, fallback bool, err error) {
	if err := t.check(); err != nil {
		return nil, false, err
	}
	if t.Mode == TLSDisabled {
		return nil, false, nil
	}
	conf = &tls.Config{InsecureSkipVerify: true} // what is verified is said below
	if t.Cert != "" {
		pair, err := t.pair()
		if err != nil {
			return nil, false, err
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	switch t.Mode {
	case TLSVerifyCA, TLSVerifyIdentity:
		if conf.RootCAs, err = t.authorities(); err != nil {
			return nil, false, err
		}
	}
	switch t.Mode {
	case TLSVerifyCA:
		conf.VerifyConnection = verifyAuthority(conf.RootCAs)
	case TLSVerifyIdentity:
		conf.InsecureSkipVerify, conf.ServerName = false, t.name()
	}
	return conf, t.Mode == TLSPreferred || t.Mode == "", nil
}

func (t TLS) name() string {
	if t.ServerName != "" {
		return t.ServerName
	}
	return t.Host
}

// check refuses settings that contradict each other: one that is ignored would
// promise what does not hold.
func (t TLS) check() error {
	verifies := t.Mode == TLSVerifyCA || t.Mode == TLSVerifyIdentity
	switch {
	case t.Mode != "" && t.Mode != TLSDisabled && t.Mode != TLSPreferred && t.Mode != TLSRequired && !verifies:
		return tlsError("mode", "%q is no mode", t.Mode)
	case t.CA != "" && !verifies:
		return tlsError("ca", "nothing is verified with mode %s; set the mode to %s or %s", t.mode(), TLSVerifyCA, TLSVerifyIdentity)
	case t.ServerName != "" && t.Mode != TLSVerifyIdentity:
		return tlsError("server_name", "no name is verified with mode %s; set the mode to %s", t.mode(), TLSVerifyIdentity)
	case t.Mode == TLSVerifyIdentity && t.name() == "":
		return tlsError("server_name", "%s over a socket needs the name that the certificate must bear", TLSVerifyIdentity)
	case t.Cert != "" && t.Mode == TLSDisabled:
		return tlsError("cert", "nothing is encrypted with mode %s; set another mode", TLSDisabled)
	case t.Cert != "" && t.Key == "":
		return tlsError("key", "the certificate needs its key")
	case t.Key != "" && t.Cert == "":
		return tlsError("cert", "the key needs its certificate")
	}
	return nil
}

func (t TLS) mode() string {
	if t.Mode == "" {
		return TLSPreferred
	}
	return t.Mode
}

// pair reads the client's certificate. The files are read one by one, so that
// the message names the right one.
func (t TLS) pair() (tls.Certificate, error) {
	cert, err := os.ReadFile(t.Cert)
	if err != nil {
		return tls.Certificate{}, tlsError("cert", "%w", err)
	}
	key, err := os.ReadFile(t.Key)
	if err != nil {
		return tls.Certificate{}, tlsError("key", "%w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, tlsError("cert", "no use with %s: %w", t.Key, err)
	}
	if until := pair.Leaf.NotAfter; time.Now().After(until) {
		return tls.Certificate{}, tlsError("cert", "the certificate has expired on %s", until.UTC().Format(time.DateOnly))
	}
	return pair, nil
}

// authorities reads the CA file; nil, the system's, without one.
func (t TLS) authorities() (*x509.CertPool, error) {
	if t.CA == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, tlsError("ca", "%w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, tlsError("ca", "%s holds no certificate in PEM form", t.CA)
	}
	return pool, nil
}

// verifyAuthority checks who signed the server's certificate, and no name.
func verifyAuthority(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(cs tls.ConnectionState) error {
		if len(cs.PeerCertificates) == 0 {
			return errors.New("tls: the server sent no certificate")
		}
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range cs.PeerCertificates[1:] {
			opts.Intermediates.AddCert(c)
		}
		if _, err := cs.PeerCertificates[0].Verify(opts); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: cs.PeerCertificates, Err: err}
		}
		return nil
	}
}
