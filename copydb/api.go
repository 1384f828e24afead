package copydb

import (
	"context"

	"github.com/copydb/copydb/internal/check"
	"github.com/copydb/copydb/internal/group"
)

// CheckResult is what the preflight alone found.
type CheckResult struct {
	Findings []check.Finding
	// SourceGrants and TargetGrants are the statements that give the two users
	// what the run needs, and nothing more.
	SourceGrants, TargetGrants []string
}

// Run copies the selected tables and catches up. It blocks until done and
// returns nil, or an error whose exit code ExitCode tells. Everything else it
// has to say goes to opt.Reporter, the summary last.
func Run(ctx context.Context, opt Options) error {
	r := newRun(opt)
	err := group.Call("the run", func() error { return r.main(ctx) })
	return r.end(ctx, err)
}

// Check runs the preflight of a run that opt would start, and changes nothing.
// The error is one that kept the checks from running; findings are no error.
func Check(ctx context.Context, opt Options) (*CheckResult, error) {
	r := newRun(opt)
	defer r.closeServers()
	var res CheckResult
	err := group.Call("the preflight", func() error {
		if err := r.readStateOnly(); err != nil {
			return err
		}
		if err := r.openServers(); err != nil {
			return err
		}
		in, findings, err := r.preflight(ctx, nil)
		if err != nil {
			return err
		}
		res.Findings = findings
		res.SourceGrants, res.TargetGrants = check.Grants(in)
		if countErrors(findings) > 0 {
			return nil
		}
		return r.wouldTake(ctx)
	})
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return &res, nil
}
