package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/copydb/copydb/test/servers"
)

// contestant is a way to apply the recorded write load to the target.
type contestant struct {
	name string
	args []string // of the target's server; none: copydb
}

// followers are copydb and the server's own replica, with its default of keeping
// the source's order of commits.
func (b *bench) followers() []contestant {
	ours := contestant{name: ourWay}
	if !b.replicas {
		return []contestant{ours}
	}
	if b.kind.IsMariaDB() {
		threads := func(n int, mode string) []string {
			return []string{fmt.Sprintf("--slave-parallel-threads=%d", n), "--slave-parallel-mode=" + mode}
		}
		return []contestant{ours, {"replica, 1 worker", threads(0, "none")}, {"replica, 4 workers, conservative", threads(4, "conservative")},
			{"replica, 4 workers, optimistic", threads(4, "optimistic")}}
	}
	workers := func(n int) []string { return []string{fmt.Sprintf("--replica-parallel-workers=%d", n)} }
	return []contestant{ours, {"replica, 1 worker", workers(1)}, {"replica, 4 workers", workers(4)}}
}

// replay is the target as it was before the write load, for each contestant to
// begin from.
type replay struct {
	*bench
	saved string // data folder and state files
	start string // the source's position there, as CHANGE REPLICATION SOURCE wants it
}

// catchUp copies once more, writes to the source while nobody follows, and lets
// copydb and the server's own replica apply that by turns, each from the same
// target.
func (b *bench) catchUp(ctx context.Context, l load) error {
	if _, err := b.measure(ctx, way{name: ourWay, run: b.copydbRun}, 0); err != nil {
		return err
	}
	_, err := b.lab.Source.DB().ExecContext(ctx, "CREATE USER IF NOT EXISTS repl IDENTIFIED BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl")
	if err != nil {
		return err
	}
	base, err := b.save(ctx)
	if err != nil {
		return fmt.Errorf("keep the target as it is: %w", err)
	}
	b.say("writing to the source: %s", l.text)
	wrote, err := b.write(ctx, l, b.transactions)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	for round := range b.rounds {
		for _, c := range b.followers() {
			u, err := base.measure(ctx, c)
			if err != nil {
				return err
			}
			r := b.record(catchUpMeasure, c.name, round+1, u)
			r.Load, r.Transactions, r.Changes = l.name, wrote.transactions, wrote.changes
			if err := b.keep(r); err != nil {
				return err
			}
		}
	}
	// The next load begins from servers that replicate nothing.
	return errors.Join(base.restore(ctx, nil), os.RemoveAll(base.saved), b.reread(ctx))
}

// save stops the target and keeps its data.
func (b *bench) save(ctx context.Context) (*replay, error) {
	p := &replay{bench: b, saved: filepath.Join(b.lab.Dir, "saved")}
	if err := p.position(ctx); err != nil {
		return nil, err
	}
	if err := b.lab.Target.Stop(); err != nil {
		return nil, err
	}
	err := os.CopyFS(filepath.Join(p.saved, "data"), os.DirFS(b.lab.Target.DataDir))
	if err != nil {
		return nil, err
	}
	states, err := filepath.Glob(filepath.Join(b.lab.Dir, stateFile+"*"))
	for _, f := range states {
		text, rerr := os.ReadFile(f)
		err = errors.Join(err, rerr, os.WriteFile(filepath.Join(p.saved, filepath.Base(f)), text, 0o600))
	}
	return p, err
}

func (p *replay) position(ctx context.Context) error {
	source := p.lab.Source
	query := "SHOW BINARY LOG STATUS"
	if p.kind.IsMariaDB() {
		query = "SHOW MASTER STATUS"
	}
	row, err := status(ctx, source, query)
	if err != nil {
		return err
	}
	at := fmt.Sprintf("'%s', %s_LOG_POS = %s", row["File"], "%[1]s", row["Position"])
	p.start = "%[1]s_LOG_FILE = " + at
	return nil
}

// restore puts the data back and starts the target with args.
func (p *replay) restore(ctx context.Context, args []string) error {
	target := p.lab.Target
	if err := target.Stop(); err != nil {
		return err
	}
	if err := os.RemoveAll(target.DataDir); err != nil {
		return err
	}
	if err := os.CopyFS(target.DataDir, os.DirFS(filepath.Join(p.saved, "data"))); err != nil {
		return err
	}
	states, err := filepath.Glob(filepath.Join(p.saved, stateFile+"*"))
	if err != nil {
		return err
	}
	for _, f := range states {
		text, err := os.ReadFile(f)
		if err = errors.Join(err, os.WriteFile(filepath.Join(p.lab.Dir, filepath.Base(f)), text, 0o600)); err != nil {
			return err
		}
	}
	return target.Restart(ctx, args...)
}

// measure lets one contestant apply the load, and compares the rows.
func (p *replay) measure(ctx context.Context, c contestant) (u used, err error) {
	if err := p.restore(ctx, c.args); err != nil {
		return u, err
	}
	if c.args == nil {
		u, err = p.copydbCall(ctx, "--config", "copydb.yaml", "--resume-state", stateFile)
	} else {
		var took time.Duration
		took, err = p.replica(ctx)
		u.seconds = took.Seconds()
	}
	if err != nil {
		return u, fmt.Errorf("%s: %w", c.name, err)
	}
	p.say("%-34s %7.2f s", c.name, u.seconds)
	return u, p.sameRows(ctx)
}

// replica applies the load with the server's own replication, from a relay log
// that is fetched before the clock starts.
func (p *replay) replica(ctx context.Context) (time.Duration, error) {
	source, target := p.lab.Source, p.lab.Target
	words := map[string]string{"replica": "REPLICA", "SOURCE": "SOURCE", "to": "REPLICATION SOURCE TO", "key": ", GET_SOURCE_PUBLIC_KEY = 1"}
	if p.kind.IsMariaDB() {
		words = map[string]string{"replica": "SLAVE", "SOURCE": "MASTER", "to": "MASTER TO", "key": ""}
	}
	db := target.DB()
	if _, err := db.ExecContext(ctx, "STOP "+words["replica"]); err != nil {
		return 0, err
	}
	_, err := db.ExecContext(ctx, fmt.Sprintf("CHANGE %s %s_HOST = '%s', %[2]s_PORT = %[4]d, %[2]s_USER = 'repl', %[2]s_PASSWORD = 'repl', ", words["to"],
		words["SOURCE"], source.Host, source.Port)+fmt.Sprintf(p.start, words["SOURCE"])+words["key"])
	if err != nil {
		return 0, err
	}
	if _, err := db.ExecContext(ctx, "START "+words["replica"]+" IO_THREAD"); err != nil {
		return 0, err
	}
	query := map[bool]string{false: "SHOW BINARY LOG STATUS", true: "SHOW MASTER STATUS"}[p.kind.IsMariaDB()]
	end, err := status(ctx, source, query)
	if err != nil {
		return 0, err
	}
	fetched := func(row map[string]string) bool {
		return row[word(words["SOURCE"], "Log_File")] == end["File"] && row["Read_"+word(words["SOURCE"], "Log_Pos")] == end["Position"]
	}
	if err := p.await(ctx, words["replica"], fetched); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := db.ExecContext(ctx, "START "+words["replica"]+" SQL_THREAD"); err != nil {
		return 0, err
	}
	err = p.await(ctx, words["replica"], func(row map[string]string) bool {
		return row["Relay_"+word(words["SOURCE"], "Log_File")] == end["File"] && row["Exec_"+word(words["SOURCE"], "Log_Pos")] == end["Position"]
	})
	return time.Since(began), err
}

func word(who, what string) string { return who[:1] + strings.ToLower(who[1:]) + "_" + what }

// await asks for the replica's status until it is as wanted.
func (p *replay) await(ctx context.Context, replica string, done func(map[string]string) bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		row, err := status(ctx, p.lab.Target, "SHOW "+replica+" STATUS")
		switch {
		case err != nil:
			return err
		case row["Last_SQL_Error"]+row["Last_IO_Error"] != "":
			return errors.New(row["Last_SQL_Error"] + row["Last_IO_Error"])
		case done(row):
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// status is the one row that a SHOW statement answers with.
func status(ctx context.Context, srv *servers.Server, query string) (map[string]string, error) {
	all, err := statusRows(ctx, srv, query)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s answers with nothing", query)
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// statusRows are the rows that a SHOW statement answers with, by column.
func statusRows(ctx context.Context, srv *servers.Server, query string) ([]map[string]string, error) {
	rows, err := srv.DB().QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	cells, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range cells {
		into[i] = &cells[i]
	}
	var all []map[string]string
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, c := range cells {
			row[columns[i]] = c.String
		}
		all = append(all, row)
	}
	return all, rows.Err()
}
