package mysqlconn

import (
	"crypto/tls"
	"net"
	"strconv"
	"time"
)

// Config says how to reach a server. Name is "source" or "target", for
// messages.
type Config struct {
	Name     string
	Host     string
	Port     int
	Socket   string // used instead of Host and Port where set
	User     string
	Password string

	TLS         *tls.Config // nil: no encryption
	TLSFallback bool        // go on unencrypted where the server has no TLS

	ConnectTimeout time.Duration
	// NetworkTimeout is how long a server may be silent before it is asked
	// whether it still works on the statement.
	NetworkTimeout time.Duration

	// RunID marks the named locks of this run: "copydb:<RunID>:<n>". Empty: the
	// sessions take no lock.
	RunID string
}

// Address returns the place for messages: host:port or the socket.
func (c Config) Address() string {
	if c.Socket != "" {
		return c.Socket
	}
	return net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
}

func (c Config) network() string {
	if c.Socket != "" {
		return "unix"
	}
	return "tcp"
}
