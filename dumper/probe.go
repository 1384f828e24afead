package dumper

import (
	"context"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/state"
)

// Probe asks the source short questions about rows. Each is a statement of its
// own that looks into indexes, and ends within seconds if it finds none, so no
// metadata lock is held for longer. It belongs to one goroutine.
type Probe struct {
	d       *Dumper
	session *mysqlconn.Session
}

// OpenProbe opens a session that has proved to hold everything up to at. The
// caller closes the Probe.
func (d *Dumper) OpenProbe(ctx context.Context, at state.Position) (*Probe, error) {
	s, err := d.openSession(ctx, at)
	if err != nil {
		return nil, err
	}
	limit := "SET SESSION max_execution_time = 5000"
	if d.flavor() == mysqlconn.MariaDB {
		limit = "SET SESSION max_statement_time = 5"
	}
	if _, err := s.Exec(ctx, limit); err != nil {
		s.Close()
		return nil, fmt.Errorf("set up a session on the source: %w", err)
	}
	return &Probe{d, s}, nil
}

// Close ends the session.
func (p *Probe) Close() error { return p.session.Close() }

// Ask returns which of the conditions hold now.
func (p *Probe) Ask(ctx context.Context, conditions []string) ([]bool, error) {
	row, err := p.session.QueryRow(ctx, "SELECT "+strings.Join(conditions, ", "))
	if err != nil {
		return nil, fmt.Errorf("ask the source about rows: %w", err)
	}
	out := make([]bool, len(row))
	for i, f := range row {
		out[i] = string(f) == "1"
	}
	return out, nil
}

// End returns the end of the binary log: everything that Ask has seen lies
// before it.
func (p *Probe) End(ctx context.Context) (state.Position, error) {
	return Status(ctx, p.session, p.d.cfg.Identity.Version)
}
