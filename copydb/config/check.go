package config

import (
	"errors"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/pattern"
)

// place finds where a key was given.
type place struct {
	values  map[string]entry
	decoded map[string]any
	file    string
}

// failed reports whether the value of key is already known to be wrong.
func (p place) failed(key string) bool {
	_, given := p.values[key]
	_, ok := p.decoded[key]
	return given && !ok
}

func (p place) of(key string) string {
	if e, ok := p.values[key]; ok {
		return e.where
	}
	return p.file
}

// check looks at what no key can tell alone.
func (c *Config) check(at place, bad *problems) {
	c.Source.check("source", at, bad)
	c.Target.check("target", at, bad)
	if len(c.Tables.Include) == 0 && !at.failed("tables.include") {
		bad.add(at.of("tables.include"), `tables.include is missing: which tables to copy; ["*.*"] for all`)
	}
	checkPatterns("tables.include", c.Tables.Include, at, bad)
	checkPatterns("tables.exclude", c.Tables.Exclude, at, bad)
	c.Throttle.check(c, at, bad)
	if c.State == "" && !at.failed("state") {
		bad.add(at.of("state"), "state: the path is empty")
	}
}

func (s *Server) check(side string, at place, bad *problems) {
	switch {
	case at.failed(side+".host") || at.failed(side+".socket"):
	case s.Host == "" && s.Socket == "":
		bad.add(at.of(side+".host"), "%s.host is missing (or %s.socket)", side, side)
	case s.Host != "" && s.Socket != "":
		bad.add(at.of(side+".socket"), "%s.host and %s.socket are both given; one is enough", side, side)
	}
	if s.User == "" && !at.failed(side+".user") {
		bad.add(at.of(side+".user"), "%s.user is missing", side)
	}
	s.checkTLS(side, at, bad)
}

// checkTLS reads the certificates, so that a file that is missing or wrong is a
// mistake in the configuration and not one in the middle of a run.
func (s *Server) checkTLS(side string, at place, bad *problems) {
	for _, key := range []string{"mode", "ca", "cert", "key", "server_name"} {
		if at.failed(side + ".tls." + key) {
			return
		}
	}
	if s.Host == "" && s.Socket == "" {
		return // said already
	}
	_, _, err := s.Encryption().Config()
	var wrong *mysqlconn.TLSError
	if errors.As(err, &wrong) {
		key := side + ".tls." + wrong.Setting
		bad.add(at.of(key), "%s: %v", key, wrong.Err)
	}
}

func checkPatterns(key string, patterns []string, at place, bad *problems) {
	_, err := pattern.Compile(patterns, nil, false)
	if err == nil {
		return
	}
	errs := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		errs = joined.Unwrap()
	}
	for _, err := range errs {
		bad.add(at.of(key), "%s: %v", key, err)
	}
}
