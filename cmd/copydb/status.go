package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/copydb/config"
	"github.com/copydb/copydb/state"
)

func (p *program) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Print what a state file says, also while a run goes on", Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return p.runStatus() },
	}
	p.stateFlag(cmd.Flags(), "state `FILE` (default: "+config.Default().State+")")
	p.jsonFlag(cmd.Flags())
	return cmd
}

func (p *program) runStatus() error {
	path := config.Default().State
	if p.given("state") {
		path = p.flags.state
	}
	s, err := state.Load(path)
	if err != nil {
		return err
	}
	if !p.flags.json {
		fmt.Fprint(p.console.stdout(), statusText(path, s))
		return nil
	}
	r := jsonReporter{out: p.console.stdout(), ids: copydb.RunRecord{MigrationID: s.MigrationID, RunID: s.RunID}}
	r.write("status", newStatus(path, s))
	return nil
}

// status is the record of the status command.
type status struct {
	State         string                    `json:"state"`
	UpdatedAt     time.Time                 `json:"updated_at"`
	Phase         state.Phase               `json:"phase"`
	Tables        map[state.TableStatus]int `json:"tables"`
	TablesTotal   int                       `json:"tables_total"`
	Rows          int64                     `json:"rows"`
	Bytes         int64                     `json:"bytes"`
	Transactions  int64                     `json:"transactions"`
	LastStreamed  state.Position            `json:"last_streamed"`
	LastResumable state.Position            `json:"last_resumable"`
	ConsistentAt  *state.Position           `json:"consistent_at"`
	StopPoint     *state.Position           `json:"stop_point"`
	SwitchedOn    []state.Setting           `json:"switched_on_target"`
	LastStop      *state.Stop               `json:"last_stop"`
}

func newStatus(path string, s *state.State) status {
	st := status{
		State: path, UpdatedAt: s.UpdatedAt.UTC(), Phase: s.Phase, Tables: map[state.TableStatus]int{}, TablesTotal: len(s.Tables),
		Rows: s.Throughput.Rows, Bytes: s.Throughput.Bytes, Transactions: s.Throughput.Transactions, LastStop: s.LastStop, SwitchedOn: s.SwitchedOnTarget,
	}
	for _, t := range s.Tables {
		st.Tables[t.Status]++
	}
	if len(s.Sources) > 0 {
		src := s.Sources[0]
		st.LastStreamed, st.LastResumable, st.ConsistentAt, st.StopPoint = src.LastStreamed, src.LastResumable, src.ConsistentAt, src.StopPoint
	}
	return st
}

func statusText(path string, s *state.State) string {
	st := newStatus(path, s)
	var rowsCopied, bytesCopied int64 // also of a run that goes on
	for _, t := range s.Tables {
		rowsCopied += t.Rows
		bytesCopied += t.Bytes
	}
	rows := [][]string{
		{"state", path},
		{"migration", s.MigrationID},
		{"last run", s.RunID},
		{"saved", st.UpdatedAt.Format(time.RFC3339)},
		{"phase", string(st.Phase)},
		{"tables", tablesByStatus(st)},
		{"copied", plural(rowsCopied, "row") + ", " + size(bytesCopied)},
		{"runs that ended", strings.Join([]string{plural(st.Rows, "row"), size(st.Bytes), plural(st.Transactions, "transaction")}, ", ")},
	}
	for _, s := range s.Sources {
		rows = append(rows, []string{"source", serverText(s.Server)})
	}
	rows = append(rows, []string{"target", serverText(s.Target)},
		[]string{"last streamed", st.LastStreamed.String()}, []string{"last resumable", st.LastResumable.String()})
	if st.ConsistentAt != nil {
		rows = append(rows, []string{"consistent at", st.ConsistentAt.String()})
	}
	for _, set := range s.SwitchedOnTarget {
		rows = append(rows, []string{"switched on target", fmt.Sprintf("%s, was %s", set.Name, set.Was)})
	}
	if st.LastStop != nil {
		rows = append(rows, []string{"last stop", fmt.Sprintf("%s, exit code %d (%s)", st.LastStop.At.UTC().Format(time.RFC3339), st.LastStop.ExitCode, st.LastStop.Reason)})
	}
	return grid(rows)
}

func serverText(s state.Server) string {
	return fmt.Sprintf("%s %s at %s:%d", s.Flavor, s.Version, s.Host, s.Port)
}

func tablesByStatus(st status) string {
	var parts []string
	for _, status := range []state.TableStatus{state.TablePending, state.TableCopying, state.TableCopied, state.TableIndexed, state.TableRestart} {
		if n := st.Tables[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", st.TablesTotal, strings.Join(parts, ", "))
}
