package copydb

import (
	"fmt"

	"github.com/copydb/copydb/copydb/config"
	"github.com/copydb/copydb/internal/mysqlconn"
)

func newServer(name string, c config.Server, runID string) (*mysqlconn.Server, error) {
	conf, fallback, err := c.Encryption().Config()
	if err != nil {
		return nil, &Error{Code: ExitUsage, Where: name, Err: err}
	}
	s, err := mysqlconn.New(mysqlconn.Config{
		Name: name, Host: c.Host, Port: c.Port, Socket: c.Socket, User: c.User, Password: c.Password.Reveal(),
		TLS: conf, TLSFallback: fallback,
		ConnectTimeout: c.ConnectTimeout, NetworkTimeout: c.NetworkTimeout, RunID: runID,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the %s: %w", name, err)
	}
	return s, nil
}
