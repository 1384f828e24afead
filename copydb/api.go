package copydb

import (
	"context"
	"errors"

	"github.com/copydb/copydb/internal/check"
)

// CheckResult is what the preflight alone found.
type CheckResult struct {
	Findings []check.Finding
	// SourceGrants and TargetGrants are the statements that give the two users
	// what the run needs, and nothing more.
	SourceGrants, TargetGrants []string
}

var errNotBuilt = errors.New("not built yet")

// Run copies the selected tables and catches up. It blocks until done and
// returns nil, or an error whose exit code ExitCode tells.
func Run(ctx context.Context, opt Options) error { return errNotBuilt }

// Check runs the preflight of a run that opt would start, and changes nothing.
// The error is one that kept the checks from running; findings are no error.
func Check(ctx context.Context, opt Options) (*CheckResult, error) { return nil, errNotBuilt }

// Cleanup removes what the migration of the state file keeps on the target.
func Cleanup(ctx context.Context, opt Options) error { return errNotBuilt }
