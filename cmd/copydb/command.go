package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/copydb/copydb/state"
)

// command writes the call again, without what chooses how a run begins. There
// are no secrets in it: a call with a password on its command line is refused.
func (p *program) command(cmd *cobra.Command) string {
	words := []string{"copydb"}
	cmd.Root().Flags().VisitAll(func(f *pflag.Flag) {
		if _, set := p.origin[f.Name]; !set || slices.Contains(startFlags, f.Name) {
			return
		}
		for _, value := range values(cmd.Flags().Lookup(f.Name)) {
			words = append(words, strings.TrimSuffix("--"+f.Name+" "+value, " "))
		}
	})
	return strings.Join(words, " ")
}

// values returns the words behind each use of a flag; "" for one that takes none.
func values(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		var quoted []string
		for _, s := range list.GetSlice() {
			quoted = append(quoted, state.ShellQuote(s))
		}
		return quoted
	}
	switch {
	case f.Value.Type() != "bool":
		return []string{state.ShellQuote(f.Value.String())}
	case f.Value.String() == "true":
		return []string{""}
	}
	return nil
}

// resumeCommand is the command that goes on from a state file.
func resumeCommand(command, statePath string) string {
	return command + " --resume-state " + state.ShellQuote(statePath)
}
