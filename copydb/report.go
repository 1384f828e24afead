package copydb

import (
	"time"

	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/state"
)

// Reporter receives what a run has to say, in order. Report must not block for
// long: it is called from the run's own goroutines, from one at a time.
type Reporter interface {
	Report(Record)
}

// Record is one thing to say. Its concrete types are the *Record structs of
// this package; Kind is the "type" of the JSON form.
type Record interface {
	Kind() string
}

// RunRecord says which run speaks. It comes as soon as both ids are known; a
// Reporter puts them into every record after it.
type RunRecord struct {
	MigrationID string `json:"migration_id"`
	RunID       string `json:"run_id"`
	StatePath   string `json:"state"`
	Resumed     bool   `json:"resumed"`
}

// PhaseRecord says that a phase begins.
type PhaseRecord struct {
	Phase state.Phase `json:"phase"`
}

// ProgressRecord says where the run stands. Numbers are base units: bytes,
// seconds, rows. A negative ETASeconds or LagSeconds means not known.
type ProgressRecord struct {
	Phase          state.Phase `json:"phase"`
	TablesDone     int         `json:"tables_done"`
	TablesTotal    int         `json:"tables_total"`
	Rows           int64       `json:"rows"`
	RowsTotal      int64       `json:"rows_total_estimate"`
	Bytes          int64       `json:"bytes"`
	BytesTotal     int64       `json:"bytes_total_estimate"`
	RowsPerSecond  float64     `json:"rows_per_second"`
	BytesPerSecond float64     `json:"bytes_per_second"`
	ETASeconds     float64     `json:"eta_seconds"`
	LagSeconds     float64     `json:"lag_seconds"`
	DistanceBytes  int64       `json:"distance_bytes"`
	BacklogBytes   int64       `json:"backlog_bytes"`
	Transactions   int64       `json:"transactions"`
	ThrottleReason string      `json:"throttle_reason"`
	Elapsed        float64     `json:"elapsed_seconds"`
}

// TableRecord says that the copy of one table has ended or gone on to another
// status.
type TableRecord struct {
	Database string            `json:"database"`
	Table    string            `json:"table"`
	Rows     int64             `json:"rows"`
	Bytes    int64             `json:"bytes"`
	Seconds  float64           `json:"seconds"`
	Status   state.TableStatus `json:"status"`
}

// FindingRecord is one result of the preflight.
type FindingRecord struct {
	check.Finding
}

// PlanRecord says what a run will do.
type PlanRecord struct {
	Tables     []PlanTable `json:"tables"`
	Order      []string    `json:"order"`
	LeftOut    []string    `json:"left_out"`
	LoadMethod string      `json:"load_method"`
	LoadWhy    string      `json:"load_method_reason"`
	Position   string      `json:"position_method"`
	Threads    int         `json:"threads"`
}

// PlanTable is one table of a plan. Rows and Bytes are the source's estimates.
type PlanTable struct {
	Database string           `json:"database"`
	Table    string           `json:"table"`
	Class    state.TableClass `json:"class"`
	Key      []string         `json:"key"`
	Rows     int64            `json:"rows_estimate"`
	Bytes    int64            `json:"bytes_estimate"`
	// LoadMethod is how the rows are written: load_data or insert.
	LoadMethod string `json:"load_method"`
}

// WarningRecord is something the user should know that stops nothing.
type WarningRecord struct {
	Message string `json:"message"`
}

// CheckpointRecord says that the state file was saved with these positions, and
// how long that took.
type CheckpointRecord struct {
	LastStreamed  state.Position `json:"last_streamed"`
	LastResumable state.Position `json:"last_resumable"`
	Seconds       float64        `json:"seconds"`
}

// PhaseTotal is how long one phase of this run took.
type PhaseTotal struct {
	Phase   state.Phase `json:"phase"`
	Seconds float64     `json:"seconds"`
	Rows    int64       `json:"rows"`
	Bytes   int64       `json:"bytes"`
}

// SummaryRecord is the last word of a run, also of one that failed.
type SummaryRecord struct {
	ExitCode      int             `json:"exit_code"`
	Phase         state.Phase     `json:"phase"`
	Rows          int64           `json:"rows"`
	Bytes         int64           `json:"bytes"`
	Transactions  int64           `json:"transactions"`
	Seconds       float64         `json:"seconds"`
	StopPoint     *state.Position `json:"stop_point"`
	StopPointAt   *time.Time      `json:"stop_point_at"`
	SinceThen     int64           `json:"transactions_since"` // -1 = not known
	SourceClean   string          `json:"source_clean"`       // true, false, unknown
	LeftOut       []string        `json:"left_out"`
	LeftBehind    []string        `json:"left_behind"`
	ResumeCommand string          `json:"resume_command"`
	Phases        []PhaseTotal    `json:"phases"`
	Tables        []TableRecord   `json:"tables"`
}

// ExitErrorRecord says why a run failed.
type ExitErrorRecord struct {
	ExitCode int    `json:"exit_code"`
	Where    string `json:"where"`
	Key      string `json:"-"` // with Options.ShowKeys; never among records
	Message  string `json:"message"`
	Next     string `json:"next"`
}

// Kind implements Record.
func (RunRecord) Kind() string { return "run" }

// Kind implements Record.
func (PhaseRecord) Kind() string { return "phase" }

// Kind implements Record.
func (ProgressRecord) Kind() string { return "progress" }

// Kind implements Record.
func (TableRecord) Kind() string { return "table" }

// Kind implements Record.
func (FindingRecord) Kind() string { return "finding" }

// Kind implements Record.
func (PlanRecord) Kind() string { return "plan" }

// Kind implements Record.
func (WarningRecord) Kind() string { return "warning" }

// Kind implements Record.
func (CheckpointRecord) Kind() string { return "checkpoint" }

// Kind implements Record.
func (SummaryRecord) Kind() string { return "summary" }

// Kind implements Record.
func (ExitErrorRecord) Kind() string { return "exit_error" }
