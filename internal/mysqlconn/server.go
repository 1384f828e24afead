package mysqlconn

import (
	"database/sql"
	"fmt"
	"io"
	"log"
	"sync"

	"github.com/copydb/copydb/state"
	"github.com/go-sql-driver/mysql"
)

// Server is one server and the run's sessions on it. New opens nothing; Close
// ends the pool of nothing but idle connections: sessions are closed by who
// opened them.
type Server struct {
	cfg Config
	db  *sql.DB

	mu       sync.Mutex
	sessions map[int]state.Session
	closers  map[int]io.Closer
	last     int // number given last
	highest  int
	tlsKnown bool
	tlsOff   bool
}

// New checks cfg and returns a Server. The caller calls Close.
func New(cfg Config) (*Server, error) {
	if cfg.Name == "" || (cfg.Host == "" && cfg.Socket == "") {
		return nil, fmt.Errorf("server needs a name and an address")
	}
	dc := mysql.NewConfig()
	dc.User, dc.Passwd = cfg.User, cfg.Password
	dc.Net, dc.Addr = cfg.network(), cfg.Address()
	dc.Timeout = cfg.ConnectTimeout
	dc.InterpolateParams = true
	dc.Collation = "utf8mb4_bin"
	dc.Logger = log.New(io.Discard, "", 0)
	if cfg.TLS != nil {
		dc.TLS = cfg.TLS.Clone()
		dc.AllowFallbackToPlaintext = cfg.TLSFallback
	}
	connector, err := mysql.NewConnector(dc)
	if err != nil {
		return nil, fmt.Errorf("configure connection to %s %s: %w", cfg.Name, cfg.Address(), err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(-1) // a closed *sql.Conn is a closed connection
	return &Server{cfg: cfg, db: db, sessions: map[int]state.Session{}, closers: map[int]io.Closer{}}, nil
}

// Config returns what the server was made with.
func (s *Server) Config() Config { return s.cfg }

// Close releases what New took. Sessions stay with their owners.
func (s *Server) Close() error { return s.db.Close() }

// connectError is the error of a connection that could not be made.
func (s *Server) connectError(err error) error {
	if IsConnectionLost(err) {
		return fmt.Errorf("connect: %w", &LostError{Server: s.cfg.Name, Address: s.cfg.Address(), Err: err})
	}
	return fmt.Errorf("connect to %s %s: %w", s.cfg.Name, s.cfg.Address(), err)
}
