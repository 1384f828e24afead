package mysqlconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/go-mysql-org/go-mysql/client"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// Session is one connection that speaks the text protocol itself: result rows
// are handed out as the bytes that arrived. It belongs to one goroutine at a
// time. Its character set is binary: bytes are sent and stored as they are.
type Session struct {
	server  *Server
	conn    *client.Conn // of the handshake and the farewell
	wire    *watchedConn
	packets packets
	id      uint64
	number  int
	fields  [][]byte
	once    sync.Once
}

// Result is what an OK packet says.
type Result struct {
	Affected uint64
	Warnings uint16
	Info     string // "Records: 3  Deleted: 0  Skipped: 0  Warnings: 0" and the like
}

// OpenSession connects, takes the next named lock of the run and runs setup,
// one statement each. The caller closes the Session.
func (s *Server) OpenSession(ctx context.Context, setup ...string) (*Session, error) {
	dial, cancel := context.WithTimeout(ctx, s.connectLimit())
	defer cancel()
	sess, err := s.dialSession(dial)
	if err != nil {
		return nil, s.connectError(err)
	}
	n, lock := s.reserve()
	sess.number = n
	s.register(n, lock, sess.id, sess)
	if lock != "" {
		row, err := sess.QueryRow(dial, "SELECT GET_LOCK('"+lock+"', 10)")
		if err == nil && (len(row) != 1 || string(row[0]) != "1") {
			err = fmt.Errorf("named lock %s is held by another session", lock)
		}
		if err != nil {
			sess.Close()
			return nil, s.connectError(err)
		}
	}
	for _, q := range append([]string{"SET NAMES binary"}, setup...) {
		if _, err := sess.Exec(dial, q); err != nil {
			sess.Close()
			return nil, fmt.Errorf("set up session on %s (%s): %w", s.cfg.Name, q, err)
		}
	}
	return sess, nil
}

func (s *Server) dialSession(ctx context.Context) (*Session, error) {
	sess := &Session{server: s}
	dialer := func(ctx context.Context, network, address string) (net.Conn, error) {
		d := &net.Dialer{Timeout: s.connectLimit()}
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if deadline, ok := ctx.Deadline(); ok {
			_ = c.SetDeadline(deadline) // for the handshake, which knows no context
		}
		sess.wire = &watchedConn{Conn: c}
		return sess.wire, nil
	}
	useTLS, err := s.encrypts(ctx)
	if err != nil {
		return nil, err
	}
	options := func(c *client.Conn) error {
		c.UnsetCapability(gomysql.CLIENT_QUERY_ATTRIBUTES)
		c.UnsetCapability(gomysql.CLIENT_DEPRECATE_EOF)
		if useTLS {
			c.SetTLSConfig(s.cfg.TLS.Clone())
		}
		return c.SetCapability(gomysql.CLIENT_LOCAL_FILES)
	}
	conn, err := client.ConnectWithDialer(ctx, s.cfg.network(), s.cfg.Address(), s.cfg.User, s.cfg.Password, "", dialer, options)
	if err != nil {
		return nil, err
	}
	sess.conn, sess.id = conn, uint64(conn.GetConnectionID())
	sess.packets.conn = conn.Conn.Conn // encrypted, where it is
	return sess, sess.wire.SetDeadline(noDeadline)
}

// UsesTLS reports whether the server's sessions are encrypted, for a connection
// that is opened elsewhere (the binlog dump).
func (s *Server) UsesTLS(ctx context.Context) (bool, error) { return s.encrypts(ctx) }

// encrypts reports whether new sessions use TLS; with the fallback allowed, the
// server is asked once what it gave to a connection that would have taken TLS.
func (s *Server) encrypts(ctx context.Context) (bool, error) {
	if s.cfg.TLS == nil || !s.cfg.TLSFallback {
		return s.cfg.TLS != nil, nil
	}
	s.mu.Lock()
	known, off := s.tlsKnown, s.tlsOff
	s.mu.Unlock()
	if known {
		return !off, nil
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	var name, cipher string
	if err := conn.QueryRowContext(ctx, "SHOW SESSION STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tlsKnown, s.tlsOff = true, cipher == ""
	return cipher != "", nil
}

// ID is the server's id of the connection.
func (s *Session) ID() uint64 { return s.id }

// Exec runs a statement that returns no rows.
func (s *Session) Exec(ctx context.Context, query string) (Result, error) {
	return s.ExecBytes(ctx, append(make([]byte, 5, len(query)+5), query...))
}

// ExecBytes is Exec for a statement that stands in packet from its sixth byte
// on; the five before it are for the packet header and are overwritten. The rest
// is as it was when it returns.
func (s *Session) ExecBytes(ctx context.Context, packet []byte) (Result, error) {
	var res Result
	err := s.do(ctx, func() error {
		if err := s.send(packet); err != nil {
			return err
		}
		head, err := s.readPacket()
		if err != nil {
			return err
		}
		switch head[0] {
		case gomysql.OK_HEADER:
			res, err = parseOK(head)
			return err
		case gomysql.ERR_HEADER:
			return parseErr(head)
		}
		return errors.New("statement returned rows where none were expected")
	})
	return res, err
}

// Query runs a query and calls row for each row with its columns as text bytes;
// nil is NULL. The slices are valid until row returns. An error of row ends the
// connection, since the rest of the result is not read.
func (s *Session) Query(ctx context.Context, query string, row func(fields [][]byte) error) error {
	return s.do(ctx, func() error {
		if err := s.send(append(make([]byte, 5, len(query)+5), query...)); err != nil {
			return err
		}
		head, err := s.readPacket()
		if err != nil {
			return err
		}
		switch head[0] {
		case gomysql.ERR_HEADER:
			return parseErr(head)
		case gomysql.OK_HEADER:
			return nil
		}
		n, _, _ := gomysql.LengthEncodedInt(head)
		for range int(n) + 1 { // column definitions and their EOF
			if _, err := s.readPacket(); err != nil {
				return err
			}
		}
		return s.readRows(int(n), row)
	})
}

func (s *Session) readRows(n int, row func([][]byte) error) error {
	if cap(s.fields) < n {
		s.fields = make([][]byte, n)
	}
	fields := s.fields[:n]
	s.packets.large.columns = n
	defer func() { s.packets.large.columns = 0 }()
	for {
		p, err := s.readPacket()
		if err != nil {
			return err
		}
		switch {
		case p[0] == gomysql.EOF_HEADER && len(p) < 9:
			return nil
		case p[0] == gomysql.ERR_HEADER: // no length-encoded integer begins so
			return parseErr(p)
		}
		if err := splitRow(p, fields); err != nil {
			s.cut()
			return err
		}
		if err := row(fields); err != nil {
			s.cut()
			return err
		}
	}
}

// QueryRow returns a copy of the first row, or nil where there is none.
func (s *Session) QueryRow(ctx context.Context, query string) ([][]byte, error) {
	var out [][]byte
	err := s.Query(ctx, query, func(fields [][]byte) error {
		if out == nil {
			for _, f := range fields {
				out = append(out, bytes.Clone(f))
			}
		}
		return nil
	})
	return out, err
}

// Close ends the connection without waiting for the server. A transaction that
// is open on it is rolled back by the server. It can be called twice.
func (s *Session) Close() error {
	s.once.Do(func() {
		_ = s.wire.SetDeadline(soon())
		_ = s.conn.Quit()
		_ = s.conn.Close()
		s.server.release(s.number)
	})
	return nil
}

// cut ends the TCP connection; Close still has to be called.
func (s *Session) cut() { _ = s.wire.Close() }

func (s *Session) send(packet []byte) error {
	packet[4] = gomysql.COM_QUERY
	s.packets.sequence = 0
	return s.packets.send(packet)
}

// OnLarge has fn called before a row of more than a few MiB is taken into
// memory, with the bytes that it will need; nil ends that. An error of fn ends
// the connection.
func (s *Session) OnLarge(fn func(bytes int64) error) { s.packets.large.large = fn }

// readPacket returns the next packet; what is left after an error is not read.
func (s *Session) readPacket() ([]byte, error) {
	p, err := s.packets.next()
	if err != nil {
		s.cut()
	}
	return p, err
}

// do runs fn so that the end of ctx, or of the server's patience, ends the
// connection under it.
func (s *Session) do(ctx context.Context, fn func() error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.server.guard(ctx, s.id, &s.wire.last, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, s.cut)
		err := fn()
		if !stop() && err != nil {
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		return err
	})
}

func parseOK(p []byte) (Result, error) {
	var r Result
	pos := 1
	var n int
	r.Affected, _, n = gomysql.LengthEncodedInt(p[pos:])
	pos += n
	_, _, n = gomysql.LengthEncodedInt(p[pos:])
	pos += n + 2 // status flags
	if len(p) < pos+2 {
		return r, errors.New("short OK packet")
	}
	r.Warnings = binary.LittleEndian.Uint16(p[pos:])
	// Without session tracking the protocol's text says string<EOF>, the servers
	// send a length in front.
	info := p[pos+2:]
	if len(info) > 0 && int(info[0]) == len(info)-1 {
		info = info[1:]
	}
	r.Info = string(info)
	return r, nil
}

func parseErr(p []byte) error {
	if len(p) < 9 {
		return errors.New("short error packet")
	}
	return &gomysql.MyError{Code: binary.LittleEndian.Uint16(p[1:]), State: string(p[4:9]), Message: Redact(string(p[9:]))}
}

// splitRow cuts a text row into its columns in place.
func splitRow(p []byte, fields [][]byte) error {
	pos := 0
	for i := range fields {
		if pos >= len(p) {
			return errors.New("short row packet")
		}
		if p[pos] == 0xfb {
			fields[i] = nil
			pos++
			continue
		}
		n, _, size := gomysql.LengthEncodedInt(p[pos:])
		pos += size
		end := pos + int(n)
		if end > len(p) {
			return errors.New("short row packet")
		}
		fields[i] = p[pos:end:end]
		pos = end
	}
	return nil
}
