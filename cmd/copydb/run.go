package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/copydb/config"
	"github.com/copydb/copydb/internal/group"
)

const (
	liveInterval = 500 * time.Millisecond
	mostInterval = time.Second // keeps SIGUSR1's answer fresh
)

// toldError wraps an error that the user has been told of already.
type toldError struct{ error }

// Unwrap returns the error.
func (e toldError) Unwrap() error { return e.error }

func (p *program) runCommand(cmd *cobra.Command, _ []string) error {
	loaded, err := p.load(cmd)
	if err != nil {
		return err
	}
	opt := p.options(cmd, loaded)
	v := p.newVoice()
	rep := p.newReporter(v, opt.DryRun)
	opt.Logger, opt.Reporter = v.logger, rep
	opt.ProgressInterval = min(p.flags.progressInterval, mostInterval)
	if rep.live != nil {
		opt.ProgressInterval = liveInterval
	}
	if p.given("pprof") {
		profiles, err := startProfiler(p.flags.pprof)
		if err != nil {
			return err
		}
		defer profiles.close()
		v.info("profiles are at " + profiles.url())
	}
	for _, w := range p.warnings(cmd, loaded) {
		rep.Report(copydb.WarningRecord{Message: w})
	}
	saved := "the state is saved in " + opt.StatePath
	if opt.DryRun {
		saved = ""
	}
	err, stopped := p.supervised(cmd.Context(), v, loaded.Config, saved, rep, func(ctx context.Context, abort <-chan struct{}) error {
		opt := opt // the other goroutine may end first
		opt.Abort = abort
		return p.work.run(ctx, opt)
	})
	end := func() { p.end(v, rep, opt, err) }
	if stopped {
		within(lastWords/2, end)
	} else {
		end()
	}
	if err != nil {
		return toldError{err}
	}
	return nil
}

// supervised lets work run under signals and the deadline, and reports whether
// one of them stopped it.
func (p *program) supervised(ctx context.Context, v *voice, cfg config.Config, saved string, rep *reporter,
	work func(context.Context, <-chan struct{}) error) (err error, stopped bool) {
	signals, release := p.notify()
	defer release()
	s := supervisor{signals: signals, stopTimeout: cfg.StopTimeout, saved: saved, say: v.warningFree, report: func() { sayProgress(v, rep) }}
	if p.given("deadline") {
		if p.flags.deadline <= cfg.StopTimeout {
			return usagef("--deadline must be longer than stop_timeout (%s)", cfg.StopTimeout), false
		}
		s.deadline = p.started.Add(p.flags.deadline - cfg.StopTimeout)
	}
	err = s.run(ctx, work)
	return err, s.stop != nil
}

func sayProgress(v *voice, rep *reporter) {
	line := "no progress to report yet"
	if last := rep.lastProgress(); last != nil {
		line = progressLine(*last)
	}
	v.warningFree(line)
}

// newReporter returns the reporter that the flags ask for.
func (p *program) newReporter(v *voice, dryRun bool) *reporter {
	out := p.console.stdout()
	rep := &reporter{interval: p.flags.progressInterval}
	if p.flags.json {
		rep.to = &jsonReporter{out: out}
		return rep
	}
	rep.to = &textReporter{voice: v, dryRun: dryRun, stdout: func(s string) { _, _ = out.Write([]byte(s)) }}
	if p.console.width() > 0 && !v.json && !v.quiet {
		rep.live = func(rec copydb.ProgressRecord) { p.console.show(liveLines(rec, p.console.width())) }
	}
	return rep
}

// end says how the run ended, as far as it has not said so itself.
func (p *program) end(v *voice, rep *reporter, opt copydb.Options, err error) {
	p.console.endLive()
	if err == nil {
		return
	}
	if isA[*usageError](err) {
		p.complain(err)
		return
	}
	summary, failed := rep.ended()
	if failed == nil {
		failed = exitError(err)
		rep.Report(*failed)
	}
	v.failure(failureText(*failed, howToResume(exitCode(err), summary, opt)))
	p.showStack(v, err)
}

func exitError(err error) *copydb.ExitErrorRecord {
	rec := &copydb.ExitErrorRecord{ExitCode: exitCode(err), Message: err.Error()}
	var e *copydb.Error
	if errors.As(err, &e) {
		where := e.Where
		bare := *e
		bare.Where = ""
		rec.Where, rec.Message, rec.Next = where, bare.Error(), e.Next
	}
	return rec
}

// failureText says what failed, where, and what to do next.
func failureText(rec copydb.ExitErrorRecord, resume string) string {
	text := rec.Message
	if rec.Where != "" {
		text += "\n  where:  " + rec.Where
	}
	if rec.Key != "" {
		text += "\n  key:    " + rec.Key
	}
	if rec.Next != "" {
		text += "\n  next:   " + rec.Next
	}
	if resume != "" && !strings.Contains(rec.Next, resume) {
		text += "\n  resume: " + resume
	}
	return text
}

// howToResume returns the command that goes on; "" if there is nothing to go on
// from. A run that got as far as its summary knows best.
func howToResume(code int, summary *copydb.SummaryRecord, opt copydb.Options) string {
	if summary != nil {
		return summary.ResumeCommand
	}
	switch code {
	case copydb.ExitFailed, copydb.ExitResumable, copydb.ExitDeadline, copydb.ExitInterrupt, copydb.ExitTerminated:
	default:
		return ""
	}
	if _, err := os.Stat(opt.StatePath); err != nil || opt.DryRun {
		return ""
	}
	return resumeCommand(opt.Command, opt.StatePath)
}

func (p *program) showStack(v *voice, err error) {
	var bug *group.PanicError
	if p.flags.logLevel == "debug" && errors.As(err, &bug) {
		v.logger.Debug("stack of the panic", "stack", string(bug.Stack))
	}
}

// complain says what is wrong where nobody has said it yet.
func (p *program) complain(err error) {
	if err == nil || isA[toldError](err) {
		return
	}
	v := p.newVoice()
	v.failure(err.Error())
	var usage *usageError
	if errors.As(err, &usage) && usage.hint != "" {
		v.failureHint(usage.hint)
	}
	var known *copydb.Error
	if errors.As(err, &known) && known.Next != "" {
		v.failureHint(fmt.Sprintf("  next: %s", known.Next))
	}
	p.showStack(v, err)
}
