package servers

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/go-sql-driver/mysql"
)

// Addr returns "127.0.0.1:port".
func (s *Server) Addr() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

func (s *Server) config() *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = s.RootUser, "tcp", s.Addr()
	c.MultiStatements = true
	c.MaxAllowedPacket = 64 << 20
	return c
}

// DSN returns the go-sql-driver address of the super user: no default
// database, several statements per call allowed, times as text.
func (s *Server) DSN() string { return s.config().FormatDSN() }

// DB returns a pool of the super user, opened with the first call. It belongs
// to the server, and Close closes it.
func (s *Server) DB() *sql.DB {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		s.db = s.Open()
	}
	return s.db
}

// Open returns another pool of the super user, which the caller closes. It
// prints nothing about connections that break.
func (s *Server) Open() *sql.DB {
	c := s.config()
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		panic(fmt.Sprintf("connector of a config of our own: %v", err))
	}
	return sql.OpenDB(connector)
}

// Tool returns the argv prefix that runs a client tool of the server's own
// installation, under either family's name (mysql, mariadb, mysqldump,
// mariadb-dump, mysqlbinlog, ...). ConnArgs come next, then the tool's own.
func (s *Server) Tool(name string) []string { return s.binaries.Tool(name) }

// ConnArgs returns the options that make a client tool log in as the super
// user over TCP. They must come before any other option.
func (s *Server) ConnArgs() []string {
	return []string{"--no-defaults", "--host=" + s.Host, "--port=" + strconv.Itoa(s.Port),
		"--protocol=tcp", "--user=" + s.RootUser}
}

// Client runs the family's own command-line client as the super user, with
// stdin as its script, and returns what it printed. An error carries what it
// said. The client stops at the first statement that fails.
func (s *Server) Client(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	return s.run(ctx, "mysql", stdin, append([]string{"--default-character-set=utf8mb4", "--max-allowed-packet=64M"}, args...))
}

// Dump runs the family's own dump program as the super user and returns what
// it printed, all in memory.
func (s *Server) Dump(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, "mysqldump", nil, args)
}

func (s *Server) run(ctx context.Context, tool string, stdin io.Reader, args []string) (string, error) {
	argv := append(append(s.Tool(tool), s.ConnArgs()...), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = stdin
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("run %s on %s: %w\n%s", tool, s.Kind, err, tail(stderr.String(), 2000))
	}
	return stdout.String(), nil
}

// located remembers what Locate found, as asking a binary takes a tenth of a
// second: by kind and by the variables that decide.
var located struct {
	sync.Mutex
	found map[string]*Binaries
}

func locateOnce(ctx context.Context, kind Kind) (*Binaries, error) {
	key := string(kind)
	for _, v := range append([]string{"PATH"}, serverVariables...) {
		key += "\x00" + os.Getenv(v)
	}
	located.Lock()
	defer located.Unlock()
	if b := located.found[key]; b != nil {
		return b, nil
	}
	b, err := Locate(ctx, kind)
	if err != nil {
		return nil, err
	}
	if located.found == nil {
		located.found = map[string]*Binaries{}
	}
	located.found[key] = b
	return b, nil
}
