package streamer

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/copydb/copydb/internal/hold"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/position"
	"github.com/go-mysql-org/go-mysql/client"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// dumpWriteTimeout is the session's net_write_timeout in seconds: a server ends
// a dump whose reader takes nothing for that long, and ours takes nothing while
// as much as may be read ahead waits for the target.
const dumpWriteTimeout = 3600

// Stream reads one source's binary log from one position. It is good for one
// Run; to go on after an error, make another from the last resumable position.
type Stream struct {
	cfg    Config
	tables *tables
	used   atomic.Bool
}

// New checks cfg and opens nothing.
func New(cfg Config) (*Stream, error) {
	cfg.setDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("configure stream: %w", err)
	}
	t, err := newTables(&cfg)
	if err != nil {
		return nil, fmt.Errorf("configure stream: %w", err)
	}
	return &Stream{cfg: cfg, tables: t}, nil
}

// Run reads until ctx ends, the log cannot be read on, or handle returns an
// error, and returns why. Transactions are handed over one by one, in log order,
// from one goroutine; while handle works nothing is read, so memory is bounded
// by one event and one part, and the source waits. handle must return when its
// context ends.
//
// Errors: what handle returned, as it was; context.Cause(ctx); *StopError;
// ErrLogGone; ErrHistoryLost; ErrSpillLost; ErrServerIDTaken; *mysqlconn.OtherServerError;
// else what mysqlconn.IsConnectionLost may know as worth another Stream. When
// Run returns, its connection is closed and no goroutine is left. The server may
// need until its next heartbeat to notice; Server.Sweep ends the session at once.
func (s *Stream) Run(ctx context.Context, handle func(ctx context.Context, tx *Transaction) error) error {
	return s.run(ctx, newReader(&s.cfg, s.tables, func(tx *Transaction) error { return handle(ctx, tx) }))
}

func (s *Stream) run(ctx context.Context, r *reader) error {
	if s.used.Swap(true) {
		return fmt.Errorf("run stream: it is good for one run")
	}
	if err := r.loadSpills(); err != nil {
		return err
	}
	defer r.dropSpill()
	defer r.parsers.close()
	lock, registered, release := s.cfg.Source.Reserve()
	defer release()
	d := &dialer{connect: s.connectTimeout(), silence: s.cfg.NetworkTimeout}
	defer d.close()
	defer context.AfterFunc(ctx, d.close)()

	useTLS, err := s.cfg.Source.UsesTLS(ctx)
	if err != nil {
		return fmt.Errorf("connect to source for its binary log: %w", err)
	}
	conf := s.syncerConfig(d, useTLS, func(c *client.Conn) error {
		registered(uint64(c.GetConnectionID()))
		return prepare(c, s.cfg.Identity, lock)
	})
	conf.SynchronousEventHandler = eventFunc(func(e *replication.BinlogEvent) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := hold.Point(ctx, "event"); err != nil {
			return err
		}
		if s.cfg.Pace != nil {
			if err := s.cfg.Pace(ctx, len(e.RawData)); err != nil {
				return err
			}
		}
		raw := e.RawData
		e.RawData, e.Event = nil, nil // else it stays in memory while its rows wait
		return r.read(raw)
	})
	syncer := replication.NewBinlogSyncer(conf)
	err = s.follow(ctx, syncer)
	d.close() // before Close, which else waits for a server that may hang
	syncer.Close()
	return s.explain(ctx, r, err)
}

// eventFunc lets a function handle events. Handling them in the goroutine that
// reads is real back-pressure; the library's channel is bounded by the number
// of events only, whatever their size.
type eventFunc func(*replication.BinlogEvent) error

// HandleEvent implements the library's event handler.
func (f eventFunc) HandleEvent(e *replication.BinlogEvent) error { return f(e) }

// follow starts the dump and waits for its end.
func (s *Stream) follow(ctx context.Context, syncer *replication.BinlogSyncer) error {
	events, err := s.start(syncer)
	if err != nil {
		return err
	}
	s.cfg.Logger.Debug("binary log stream started", slog.String("position", s.cfg.Start.String()))
	_, err = events.GetEvent(ctx) // no event ever comes this way
	return err
}

// byFile reports whether the dump is asked for by file and place. MySQL's sets
// are exact and name the same place on every server; MariaDB's are positions,
// which a domain that goes backwards can mislead.
func (c *Config) byFile() bool {
	if c.Start.File == "" || c.Start.Pos > maxUint32 {
		return false
	}
	return c.Version.Flavor == mysqlconn.MariaDB || !c.GTIDs
}

func (s *Stream) start(syncer *replication.BinlogSyncer) (*replication.BinlogStreamer, error) {
	if s.cfg.byFile() {
		return syncer.StartSync(gomysql.Position{Name: s.cfg.Start.File, Pos: uint32(s.cfg.Start.Pos)})
	}
	set, err := position.Parse(s.cfg.Version.Flavor, s.cfg.Start.GTIDSet)
	if err != nil {
		return nil, err
	}
	theirs, err := set.Library() // a copy: the library changes what it is given
	if err != nil {
		return nil, err
	}
	return syncer.StartSyncGTID(theirs)
}

func (s *Stream) syncerConfig(d *dialer, useTLS bool, option func(*client.Conn) error) replication.BinlogSyncerConfig {
	server := s.cfg.Source.Config()
	conf := replication.BinlogSyncerConfig{
		ServerID: s.cfg.ServerID, Flavor: string(s.cfg.Version.Flavor),
		Host: server.Host, Port: uint16(server.Port), User: server.User, Password: server.Password,
		Localhost: "copydb", Logger: slog.New(slog.DiscardHandler), // everything it says comes back as an error
		Dialer: d.dial, Option: option,
		HeartbeatPeriod: s.cfg.Heartbeat, DisableRetrySync: true, DiscardGTIDSet: true,
		RawModeEnabled: true, EventCacheCount: 1,
	}
	if server.Socket != "" {
		conf.Host, conf.Port = server.Socket, 0
	}
	if useTLS {
		conf.TLSConfig = tlsClone(server.TLS)
	}
	if s.cfg.Version.Flavor == mysqlconn.MariaDB {
		// With all events sent, the sizes of those without a position add up.
		conf.DumpCommandFlag = replication.BINLOG_SEND_ANNOTATE_ROWS_EVENT
	}
	return conf
}

func tlsClone(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	return c.Clone()
}

func (s *Stream) connectTimeout() time.Duration {
	if t := s.cfg.Source.Config().ConnectTimeout; t > 0 {
		return t
	}
	return 10 * time.Second
}

// prepare makes sure that the dump session is on the run's server, marks it as
// ours and makes the server patient.
func prepare(c *client.Conn, want mysqlconn.Identity, lock string) error {
	if err := prove(c, want); err != nil {
		return err
	}
	if _, err := c.Execute(fmt.Sprintf("SET SESSION lock_wait_timeout = 5, wait_timeout = 60, net_write_timeout = %d", dumpWriteTimeout)); err != nil {
		return err
	}
	if lock == "" {
		return nil
	}
	r, err := c.Execute("SELECT GET_LOCK('" + lock + "', 0)")
	if err != nil {
		return err
	}
	if got, err := r.GetInt(0, 0); err != nil || got != 1 {
		return fmt.Errorf("named lock %s is held by another session", lock)
	}
	return nil
}

// prove asks on this very connection which server it reached: a proxy may give
// out another one each time.
func prove(c *client.Conn, want mysqlconn.Identity) error {
	if want.UUID == "" {
		return nil
	}
	r, err := c.Execute(mysqlconn.IdentityQuery(want.Version.Flavor))
	if err != nil {
		return fmt.Errorf("identify the source: %w", err)
	}
	raw, err := r.GetString(0, 0)
	if err != nil {
		return fmt.Errorf("identify the source: %w", err)
	}
	return want.Prove(raw)
}

// explain chooses the error that Run returns.
func (s *Stream) explain(ctx context.Context, r *reader, err error) error {
	if r.handled != nil {
		return r.handled
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if r.failed != nil {
		return r.failed
	}
	return fmt.Errorf("read binary log of source at %s: %w", r.here(), classify(err))
}
