package dumper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/state"
)

// MariaDB moves the position that it gives with a snapshot to the begin of a new
// log file before the transactions that filled the old one are visible: beside
// rotations one of thirty snapshots lacked a transaction that its position
// covers (10.11 and 11.8). So the begin of a file is a snapshot's position only
// where nobody commits any more, and for a while. Where each transaction fills a
// file, no other place is ever seen.
const (
	snapshotTries = 200
	snapshotPause = 20 * time.Millisecond
	quietTries    = 25  // snapshots in a row at the same begin of a file
	blindTries    = 150 // the same where the account may not see who commits
)

// passedFiles is how many files the log must go on by for every transaction in
// front of a file's begin to be visible: each rotation is of another group of
// commits, and at most three groups are on their way into the log and out of it.
const passedFiles = 8

// rotatingError says that every snapshot stood beside a rotation.
type rotatingError struct {
	// Passed is a position whose transactions are all visible by now; zero where
	// none is known.
	Passed state.Position
}

// Error says what can be done.
func (e *rotatingError) Error() string {
	return "open a snapshot: each one stands beside a rotation of the binary log, or at a place of which the source knows no GTID position; a larger max_binlog_size on the source has fewer rotations"
}

// snapshotPosition opens a consistent snapshot on s, a MariaDB, and returns the
// position that belongs to it; a *rotatingError where none can be told, and no
// snapshot is open then.
func (d *Dumper) snapshotPosition(ctx context.Context, s *mysqlconn.Session) (state.Position, error) {
	d.snapshots.Lock() // our own sessions at least do not ask at the same time
	defer d.snapshots.Unlock()
	var first, last state.Position
	quiet := 0 // snapshots in a row at last beside which nobody committed
	files := 0 // that the log went on by since first
	for range snapshotTries {
		p, begin, err := d.trySnapshot(ctx, s)
		if err != nil {
			return p, err
		}
		if !p.IsZero() && !begin {
			return p, nil
		}
		switch {
		case p.IsZero():
			quiet = 0
		case first.IsZero():
			first, last = p, p
		case p == last:
			quiet++
		default:
			if p.File != last.File {
				files++
			}
			last, quiet = p, 0
		}
		n, enough, err := committing(ctx, s)
		if err != nil {
			return p, err
		}
		if n > 0 {
			quiet = 0
		}
		if quiet >= enough {
			return p, nil
		}
		if err := endSnapshot(ctx, s); err != nil {
			return p, err
		}
		if err := group.Pause(ctx, snapshotPause); err != nil {
			return p, err
		}
	}
	if files < passedFiles {
		first = state.Position{}
	}
	return state.Position{}, &rotatingError{first}
}

// trySnapshot opens a snapshot and returns its position, and whether that is the
// begin of a log file. The position is zero where the log was rotated meanwhile:
// its file and its place are not set at once.
func (d *Dumper) trySnapshot(ctx context.Context, s *mysqlconn.Session) (p state.Position, begin bool, err error) {
	before, err := Status(ctx, s, d.cfg.Identity.Version)
	if err != nil {
		return p, false, err
	}
	if err := openSnapshot(ctx, s); err != nil {
		return p, false, err
	}
	p, err = steady(func() (state.Position, error) { return snapshotStatus(ctx, s) })
	if err != nil {
		return p, false, fmt.Errorf("read the snapshot's position: %w", err)
	}
	if p.File != before.File {
		return state.Position{}, false, nil
	}
	p, err = withGTIDSet(ctx, s, p)
	switch {
	case errors.Is(err, errNoGTID): // the file ends before that place
		return state.Position{}, false, nil
	case err != nil:
		return p, false, err
	}
	first, err := withGTIDSet(ctx, s, state.Position{File: p.File, Pos: firstEvent})
	return p, p.GTIDSet == first.GTIDSet, err
}

// committing counts the sessions that are seen to commit, and says how many
// snapshots in a row are enough: without PROCESS an account sees its own
// sessions only.
func committing(ctx context.Context, s *mysqlconn.Session) (sessions, enough int, err error) {
	row, err := s.QueryRow(ctx, "SELECT (SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND NOT LIKE 'Binlog%' AND ID <> CONNECTION_ID()"+
		" AND (STATE LIKE '%commit%' OR STATE LIKE '%binlog%' OR STATE LIKE '%semi-sync%')),"+
		" (SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'PROCESS')")
	if err != nil {
		return 0, 0, fmt.Errorf("look for sessions that commit: %w", err)
	}
	enough = quietTries
	if string(row[1]) == "0" {
		enough = blindTries
	}
	sessions, err = strconv.Atoi(string(row[0]))
	return sessions, enough, err
}

// How often a snapshot's position must read the same, one after the other, and
// how often it is read at the most.
const (
	steadyReads = 25
	steadyTries = 1000
)

// steady reads a position until it is the same several times. MariaDB answers
// from two variables that all sessions share and that each SHOW STATUS of any
// session sets (MYSQL_BIN_LOG::set_status_variables), so that one answer may be
// that of another session's, or half of it.
func steady(read func() (state.Position, error)) (last state.Position, err error) {
	same := 0
	for range steadyTries {
		p, err := read()
		if err != nil {
			return p, err
		}
		if p != last {
			last, same = p, 0
		}
		if same++; same == steadyReads {
			return p, nil
		}
	}
	return last, errors.New("binlog_snapshot_file and binlog_snapshot_position change all the time; other sessions ask for SHOW STATUS too often")
}

func snapshotStatus(ctx context.Context, s *mysqlconn.Session) (p state.Position, err error) {
	err = s.Query(ctx, "SHOW STATUS LIKE 'binlog_snapshot_%'", func(f [][]byte) error {
		switch strings.ToLower(string(f[0])) {
		case "binlog_snapshot_file":
			p.File = string(f[1])
		case "binlog_snapshot_position":
			n, err := strconv.ParseUint(string(f[1]), 10, 64)
			p.Pos = n
			return err
		}
		return nil
	})
	if err == nil && p.File == "" {
		err = errors.New("the server gives no binlog_snapshot_file")
	}
	return p, err
}
