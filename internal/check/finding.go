package check

// Severity says what a finding means for a run.
type Severity string

// An error refuses the run; a warning and an info do not.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Finding is one result of the preflight: what is the matter, with which
// object, and what mends it.
type Finding struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Object   string   `json:"object"`
	Message  string   `json:"message"`
	Fix      string   `json:"fix"`
}
