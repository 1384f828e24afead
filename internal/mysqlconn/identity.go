package mysqlconn

import (
	"context"
	"crypto/sha256"
	"fmt"
)

// Identity tells servers apart. UUID is MySQL's server_uuid; for MariaDB, which
// has none, it is made of what stays the same over a restart (server_id,
// hostname, port and data folder).
type Identity struct {
	Version  Version
	UUID     string
	ServerID uint32
}

// OtherServerError says that a connection reached another server than the run
// knows, as a proxy or a virtual address may have it, and that this one cannot
// stand in for it.
type OtherServerError struct {
	Recorded, Found string // Identity.UUID of both
	Detail          string // why it cannot; may be empty
}

// Error names both servers.
func (e *OtherServerError) Error() string {
	text := fmt.Sprintf("the source is another server (%s) than the one of the run (%s)", e.Found, e.Recorded)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Identify asks the server who it is.
func (s *Server) Identify(ctx context.Context) (Identity, error) {
	c, err := s.Open(ctx)
	if err != nil {
		return Identity{}, err
	}
	defer c.Close()
	return c.Identify(ctx)
}

// Identify asks the server behind this very connection who it is: a proxy may
// hand out another one each time.
func (c *Control) Identify(ctx context.Context) (Identity, error) {
	var id Identity
	var text string
	if err := c.QueryRow(ctx, []any{&text, &id.ServerID}, "SELECT VERSION(), @@server_id"); err != nil {
		return id, fmt.Errorf("identify %s: %w", c.server.cfg.Name, err)
	}
	v, err := ParseVersion(text)
	if err != nil {
		return id, err
	}
	id.Version = v
	var raw string
	if err := c.QueryRow(ctx, []any{&raw}, IdentityQuery(v.Flavor)); err != nil {
		return id, fmt.Errorf("identify %s: %w", c.server.cfg.Name, err)
	}
	id.UUID = UUIDOf(v.Flavor, raw)
	return id, nil
}

// IdentityQuery is the query whose only column, through UUIDOf, tells servers
// apart.
func IdentityQuery(f Flavor) string {
	if f == MariaDB {
		return "SELECT CONCAT_WS('/', @@server_id, @@hostname, @@port, @@datadir)"
	}
	return "SELECT @@server_uuid"
}

// UUIDOf turns the answer to IdentityQuery into Identity.UUID.
func UUIDOf(f Flavor, raw string) string {
	if f == MariaDB {
		return fmt.Sprintf("mariadb-%x", sha256.Sum256([]byte(raw)))[:40]
	}
	return raw
}

// Prove judges the answer to IdentityQuery: *OtherServerError unless it came
// from this server. An Identity without UUID takes any.
func (id Identity) Prove(raw string) error {
	if id.UUID == "" {
		return nil
	}
	if got := UUIDOf(id.Version.Flavor, raw); got != id.UUID {
		return &OtherServerError{Recorded: id.UUID, Found: got}
	}
	return nil
}

// OpenProvedSession is OpenSession for a session that is closed again unless the
// server behind it is want.
func (s *Server) OpenProvedSession(ctx context.Context, want Identity, setup ...string) (*Session, error) {
	sess, err := s.OpenSession(ctx, setup...)
	if err != nil {
		return nil, err
	}
	row, err := sess.QueryRow(ctx, IdentityQuery(want.Version.Flavor))
	switch {
	case err != nil:
		err = fmt.Errorf("identify %s: %w", s.cfg.Name, err)
	case len(row) != 1:
		err = fmt.Errorf("identify %s: it does not say", s.cfg.Name)
	default:
		err = want.Prove(string(row[0]))
	}
	if err != nil {
		sess.Close()
		return nil, err
	}
	return sess, nil
}

// OpenProved is Open for a connection that is closed again unless the server
// behind it is want.
func (s *Server) OpenProved(ctx context.Context, want Identity) (*Control, error) {
	c, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	var raw string
	if err = c.QueryRow(ctx, []any{&raw}, IdentityQuery(want.Version.Flavor)); err != nil {
		err = fmt.Errorf("identify %s: %w", s.cfg.Name, err)
	} else {
		err = want.Prove(raw)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
