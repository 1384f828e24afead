package streamer

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

var errOnce = errors.New("the stream has had its one connection")

// dialer gives the library one connection and no second one. On Close the
// library would open another to KILL the first one's id, which behind a proxy
// may be a stranger's thread on another server; refusing it is the only way to
// prevent that.
type dialer struct {
	connect time.Duration
	silence time.Duration

	mu   sync.Mutex
	used bool
	conn net.Conn
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	used := d.used
	d.used = true
	d.mu.Unlock()
	if used {
		return nil, errOnce
	}
	c, err := (&net.Dialer{Timeout: d.connect}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn = c
	return &patientConn{Conn: c, silence: d.silence}, nil
}

// close ends the connection and refuses any other one. It can be called at any
// time, from any goroutine.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used = true
	if d.conn != nil {
		_ = d.conn.Close()
	}
}

// patientConn gives up after a silence that begins with each call. The
// library's own read timeout runs on while an event is handled, and so would
// end the stream when the target is slow.
type patientConn struct {
	net.Conn
	silence time.Duration
}

func (c *patientConn) Read(b []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *patientConn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
