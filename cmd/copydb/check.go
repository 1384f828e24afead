package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/internal/check"
)

func (p *program) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check --config FILE", Short: "Look whether a run would start: every finding at once, each with its fix",
		Args: noArguments, RunE: p.runCheck,
	}
	f := cmd.Flags()
	p.configFlags(f)
	p.resumeFlag(f, "look whether a run would go on from the state `FILE`, which is only read")
	p.jsonFlag(f)
	f.BoolVar(&p.flags.printGrants, "print-grants", false, "print the statements that give the users what a run needs")
	f.StringVar(&p.flags.junit, "junit", "", "write the findings to `FILE` in JUnit's form, too")
	return cmd
}

func (p *program) runCheck(cmd *cobra.Command, _ []string) error {
	loaded, err := p.load(cmd)
	if err != nil {
		return err
	}
	opt := p.options(cmd, loaded)
	v := p.newVoice()
	rep := p.newReporter(v, false)
	rep.live = nil
	opt.Logger, opt.Reporter = v.logger, rep
	for _, w := range p.warnings(cmd, loaded) {
		rep.Report(copydb.WarningRecord{Message: w})
	}
	results := make(chan *copydb.CheckResult, 1)
	err, _ = p.supervised(cmd.Context(), v, loaded.Config, "", rep, func(ctx context.Context, abort <-chan struct{}) error {
		opt := opt
		opt.Abort, opt.Reporter = abort, discard{}
		result, err := p.work.check(ctx, opt)
		results <- result
		return err
	})
	result := &copydb.CheckResult{}
	if err == nil {
		result = <-results
	}
	if p.flags.junit != "" {
		if junitErr := writeJUnit(p.flags.junit, result.Findings, err); err == nil {
			err = junitErr
		}
	}
	if err != nil {
		p.end(v, rep, opt, err)
		return toldError{err}
	}
	p.printCheck(rep, result)
	if n := countBy(result.Findings)[check.SeverityError]; n > 0 {
		return toldError{&copydb.Error{Code: copydb.ExitPreflight, Message: plural(n, "error")}}
	}
	return nil
}

// discard drops what the checks say as they run: the findings are printed
// together.
type discard struct{}

// Report implements copydb.Reporter.
func (discard) Report(copydb.Record) {}

func (p *program) printCheck(rep *reporter, result *copydb.CheckResult) {
	if json, ok := rep.to.(*jsonReporter); ok {
		for _, f := range result.Findings {
			json.Report(copydb.FindingRecord{Finding: f})
		}
		if p.flags.printGrants {
			json.write("grants", map[string]any{"source": list(result.SourceGrants), "target": list(result.TargetGrants)})
		}
		return
	}
	out := p.console.stdout()
	fmt.Fprint(out, findingsText(result.Findings))
	if p.flags.printGrants {
		fmt.Fprint(out, "\n", grantsText("source", result.SourceGrants), "\n", grantsText("target", result.TargetGrants))
	}
}

func grantsText(side string, grants []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- on the %s\n", side)
	for _, g := range grants {
		b.WriteString(strings.TrimSuffix(g, ";") + ";\n")
	}
	return b.String()
}
