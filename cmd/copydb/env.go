package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const envPrefix = "COPYDB_"

// envName returns the variable that stands for a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// lookupEnv finds a variable of the environment that the command was given.
func (p *program) lookupEnv(name string) (string, bool) {
	for _, e := range slices.Backward(p.environ) {
		if n, v, ok := strings.Cut(e, "="); ok && n == name {
			return v, true
		}
	}
	return "", false
}

// readEnv sets the flags that the command line did not set from the environment,
// and notes where each value came from.
func (p *program) readEnv(cmd *cobra.Command) error {
	p.origin = map[string]string{}
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		value, inEnv := p.lookupEnv(envName(f.Name))
		switch {
		case f.Name == "set" && inEnv:
			// Each key has its own precedence, so both lists count.
			err = errors.Join(err, p.addSets(f, value))
		case f.Changed:
			p.origin[f.Name] = "--" + f.Name
		case inEnv && err == nil:
			p.origin[f.Name] = envName(f.Name)
			err = setFromEnv(f, value)
		}
	})
	return err
}

// addSets puts the settings of COPYDB_SET before those of --set.
func (p *program) addSets(f *pflag.Flag, value string) error {
	fromFlags := p.flags.set
	p.flags.set = nil
	if err := setFromEnv(f, value); err != nil {
		return err
	}
	p.origin[f.Name] = envName(f.Name)
	p.envSets = len(p.flags.set)
	p.flags.set = append(p.flags.set, fromFlags...)
	return nil
}

// setFromEnv gives a flag its value; one that may be repeated takes a line each.
func setFromEnv(f *pflag.Flag, value string) error {
	values := []string{value}
	if _, many := f.Value.(pflag.SliceValue); many {
		values = strings.Split(strings.TrimRight(value, "\n"), "\n")
	}
	for _, v := range values {
		if f.Value.Set(v) != nil {
			return usagef("%s %s", envName(f.Name), wanted(f))
		}
	}
	return nil
}

// unknownEnv returns the COPYDB_ variables that nothing reads. Also known are
// those in use for passwords, by the configuration at hand or by the sample.
func (p *program) unknownEnv(root *cobra.Command, inUse []string) []string {
	known := append([]string{"COPYDB_SOURCE_PASSWORD", "COPYDB_TARGET_PASSWORD"}, inUse...)
	for _, cmd := range append(root.Commands(), root) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, envName(f.Name)) })
		cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { known = append(known, envName(f.Name)) })
	}
	var unknown []string
	for _, e := range p.environ {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, envPrefix) && !strings.HasPrefix(name, "COPYDB_TEST_") && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return slices.Compact(unknown)
}
