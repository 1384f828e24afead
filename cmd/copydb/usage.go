package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a wrong call; nothing has been contacted or written.
type usageError struct {
	msg  string
	hint string // further lines; may be empty
}

// Error returns the message without the hint.
func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{msg: fmt.Sprintf(format, args...)} }

const shortUsage = `usage: copydb --config FILE                        copy, or go on with --resume-state STATE
       copydb --source URL --target URL --include PATTERN
       copydb config                               print a commented sample configuration
       copydb check --config FILE                  look whether a run would start
See copydb --help for the rest.`

var errNothingToDo = &usageError{msg: "nothing to do: no configuration is given", hint: shortUsage}

const notYet = "not supported yet"

// later is a command of a later release.
func later(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short + " (" + notYet + ")", DisableFlagParsing: true, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return usagef("%s: %s", cmd.Name(), notYet) },
	}
}

var plainWord = regexp.MustCompile(`^[a-z][a-z_-]{0,20}$`)

// noArguments refuses arguments; on the root they are taken for a command's
// name. What is no plain word is not repeated: it may be a URL with a password.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasParent() || !plainWord.MatchString(args[0]) {
		return usagef("%s takes no arguments", cmd.CommandPath())
	}
	msg := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		msg += fmt.Sprintf("; did you mean %q?", near[0])
	}
	return &usageError{msg: msg}
}

// flagError rewords what the flag library refuses, without the value, which may
// be a password (-pSECRET is a habit of MySQL's users).
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var noValue *pflag.ValueRequiredError
	var badValue *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		return usagef("unknown flag --%s; %s --help lists them", safeFlag(unknown.GetSpecifiedName()), cmd.CommandPath())
	case errors.As(err, &unknown):
		return usagef("unknown flag -%.1s; flags have long names: --config, --source, …", unknown.GetSpecifiedName())
	case errors.As(err, &noValue):
		return usagef("--%s needs a value", noValue.GetFlag().Name)
	case errors.As(err, &badValue):
		return usagef("--%s %s", badValue.GetFlag().Name, wanted(badValue.GetFlag()))
	}
	return usagef("the command line cannot be read; see copydb --help")
}

func safeFlag(name string) string {
	if i := strings.IndexFunc(name, func(r rune) bool { return r != '-' && r != '_' && (r < 'a' || r > 'z') }); i >= 0 {
		return name[:i] + "…"
	}
	return name
}

// wanted says what values a flag takes.
func wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "must be true or false"
	case "duration":
		return "must be a duration such as 30s, 5m or 1h"
	}
	return "has a wrong value"
}
