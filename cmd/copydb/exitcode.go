package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/copydb/config"
	"github.com/copydb/copydb/internal/group"
	"github.com/copydb/copydb/state"
)

// exitRule says which errors end in which code, and what the code means.
type exitRule struct {
	codes   []int
	meaning string
	next    string
	// is tells the errors that this package knows; package copydb's carry their
	// code themselves. nil: none.
	is func(error) bool
}

// exitRules is the one table of exit codes; docs/exit-codes.md comes from it.
var exitRules = []exitRule{
	{codes: []int{copydb.ExitOK}, next: "",
		meaning: "done: caught up to the printed stop point · `check`: no error (warnings may be) · `verify`: equal, or equal after `--repair`"},
	{codes: []int{copydb.ExitFailed}, next: "read the message",
		meaning: "failed, and none of the below; also a panic that the program caught: the message says where, the state is kept",
		is:      isA[*group.PanicError]},
	{codes: []int{copydb.ExitCrash}, next: "resume, report it",
		meaning: "a crash inside the program (Go's own code for a panic): a bug; the last checkpoint is valid"},
	{codes: []int{copydb.ExitPreflight}, next: "fix the findings",
		meaning: "preflight failed (cannot connect or log in at start, missing rights, existing tables, nothing selected, …); nothing was written by this call"},
	{codes: []int{copydb.ExitState}, next: "see the message; the file is left as it was",
		meaning: "may not start from this state: it exists, is missing, corrupt, of a newer format, of another source, target or selection; a different server that lacks our GTIDs; `_copydb` gone from the target; a target that was restarted while `target.fast_load` had its redo log off; state or target schema held by another run",
		is:      isA[*state.FileError]},
	{codes: []int{copydb.ExitLogGone}, next: "start over: the message has the command",
		meaning: "binary logs that are needed are gone, or the same source lost history (RESET, restore, shorter file), at resume or during the run"},
	{codes: []int{copydb.ExitDiffers}, next: "see the report",
		meaning: "verification found differences"},
	{codes: []int{copydb.ExitResumable}, next: "fix the cause, resume",
		meaning: "stopped by an error that a later resume can go on from (also a server unreachable for `retry_timeout`)"},
	{codes: []int{copydb.ExitUsage}, next: "fix the call",
		meaning: "usage or configuration error (also `copydb` without arguments); nothing was contacted or written",
		is:      func(err error) bool { return isA[*usageError](err) || isA[*config.Error](err) }},
	{codes: []int{copydb.ExitDeadline}, next: "resume",
		meaning: "stopped by `--deadline`; state is saved"},
	{codes: []int{copydb.ExitInterrupt, copydb.ExitTerminated}, next: "resume",
		meaning: "stopped by SIGINT, or by SIGTERM or SIGHUP; state is saved"},
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// exitCode returns the code that err ends in.
func exitCode(err error) int {
	if code := copydb.ExitCode(err); code != copydb.ExitFailed {
		return code
	}
	for _, rule := range exitRules {
		if rule.is != nil && rule.is(err) {
			return rule.codes[0]
		}
	}
	return copydb.ExitFailed
}

// exitCodesMarkdown returns docs/exit-codes.md.
func exitCodesMarkdown() string {
	var b strings.Builder
	b.WriteString(`# Exit codes

<!-- Generated from the table of exit codes: go test ./cmd/copydb -update -->

| code | meaning | next move |
|---|---|---|
`)
	for _, rule := range exitRules {
		codes := strings.Trim(strings.ReplaceAll(fmt.Sprint(rule.codes), " ", ", "), "[]")
		fmt.Fprintf(&b, "| %s | %s | %s |\n", codes, rule.meaning, rule.next)
	}
	b.WriteString(`
A second signal ends the process within a second with the code of the first. If a run does not stop within
` + "`stop_timeout`" + `, the process ends all the same, with the code of the signal or the deadline; the last checkpoint is valid.
`)
	return b.String()
}
