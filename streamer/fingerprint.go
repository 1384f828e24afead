package streamer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/copydb/copydb/state"
	"github.com/go-mysql-org/go-mysql/replication"
)

// ErrHistoryLost is returned where the source has another file under a name
// that the run has read from it: its log was reset, or it was restored from an
// older copy. Its identity stays the same over both.
var ErrHistoryLost = errors.New("the source has lost the binary log that was read from it")

// errProbed ends a reader that has seen what it was started for.
var errProbed = errors.New("the file's description is read")

// fingerprint tells one log file from all others: its name, the time at which
// it was begun as its format description has it, also where a dump starts in
// the middle, and the server that wrote it, since the names and times of another
// one of the same history say nothing.
func fingerprint(file string, created uint32, server string) string {
	return fmt.Sprintf("%s@%d@%s", file, created, server)
}

// SplitFingerprint returns the file that a fingerprint is of and the UUID of the
// server that wrote it; both are empty where it is none.
func SplitFingerprint(fingerprint string) (file, server string) {
	i := strings.LastIndexByte(fingerprint, '@')
	if i < 0 {
		return "", ""
	}
	j := strings.LastIndexByte(fingerprint[:i], '@')
	if j < 0 {
		return "", ""
	}
	return fingerprint[:j], fingerprint[i+1:]
}

// Fingerprint returns the fingerprint of one file of the source's log: it begins
// a dump and ends it with the first event. cfg needs what says how to connect;
// its Start and its tables are not looked at. Errors are those of Stream.Run.
func Fingerprint(ctx context.Context, cfg Config, file string) (string, error) {
	cfg.Start, cfg.GTIDs, cfg.Tables, cfg.Fingerprint = state.Position{File: file, Pos: 4}, false, nil, ""
	cfg.StatePath, cfg.Spilled = "", nil
	s, err := New(cfg)
	if err != nil {
		return "", err
	}
	r := newReader(&s.cfg, s.tables, func(*Transaction) error { return nil })
	r.probe = true
	if err := s.run(ctx, r); !errors.Is(err, errProbed) {
		return "", fmt.Errorf("look at binary log file %s of the source: %w", file, err)
	}
	return r.fingerprint, nil
}

// format takes the event that each file begins with, and that a dump begins
// with wherever it starts.
func (r *reader) format(h *replication.EventHeader, e *replication.FormatDescriptionEvent) error {
	r.trailer = 0
	if e.ChecksumAlgorithm == replication.BINLOG_CHECKSUM_ALG_CRC32 {
		r.trailer = replication.BinlogChecksumLength
	}
	if h.Timestamp != 0 {
		r.fingerprint, r.fingerprintFile = fingerprint(r.file, h.Timestamp, r.cfg.Identity.UUID), r.file
	}
	if r.probe {
		return errProbed
	}
	file, server := SplitFingerprint(r.cfg.Fingerprint)
	if file == r.file && server == r.cfg.Identity.UUID && r.fingerprint != r.cfg.Fingerprint {
		return fmt.Errorf("%w: file %s is not the one that was read", ErrHistoryLost, file)
	}
	if !r.turned {
		return nil
	}
	r.turned = false
	return r.moved()
}
