package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flags are the values of all flags of all commands.
type flags struct {
	config  string
	source  sideFlags
	target  sideFlags
	include []string
	set     []string

	state           string
	resumeState     string
	resumeIfPresent bool
	startOver       bool
	dryRun          bool
	until           string
	deadline        time.Duration
	showKeys        bool
	pprof           string

	logFormat        string
	logLevel         string
	quiet            bool
	json             bool
	progressInterval time.Duration

	printGrants bool
	junit       string
}

// sideFlags say how to reach one server without a configuration file.
type sideFlags struct {
	url, passwordEnv, passwordFile string
}

// startFlags choose how a run begins; they are no part of the command that
// resumes it.
var startFlags = []string{"state", "resume-state", "resume-if-present", "start-over", "dry-run"}

// laterFlags are refused: a later release brings them.
var laterFlags = []string{"summary", "listen", "listen-token-file", "accept-selection-change"}

func (p *program) logFlags(f *pflag.FlagSet) {
	f.StringVar(&p.flags.logFormat, "log-format", "text", "form of the log on stderr: text or json")
	f.StringVar(&p.flags.logLevel, "log-level", "info", "least level that is logged: debug, info, warn or error")
}

func (p *program) configFlags(f *pflag.FlagSet) {
	f.StringVar(&p.flags.config, "config", "", "configuration `FILE`; - reads stdin")
	f.StringArrayVar(&p.flags.set, "set", nil, "`KEY=VALUE` of the configuration, the value in YAML; may be repeated")
	f.StringVar(&p.flags.source.url, "source", "", "`URL` of the source: mysql://user@host:port")
	f.StringVar(&p.flags.source.passwordEnv, "source-password-env", "", "`NAME` of the environment variable with the source's password")
	f.StringVar(&p.flags.source.passwordFile, "source-password-file", "", "`FILE` with the source's password in its first line")
	f.StringVar(&p.flags.target.url, "target", "", "`URL` of the target")
	f.StringVar(&p.flags.target.passwordEnv, "target-password-env", "", "`NAME` of the environment variable with the target's password")
	f.StringVar(&p.flags.target.passwordFile, "target-password-file", "", "`FILE` with the target's password in its first line")
	f.StringArrayVar(&p.flags.include, "include", nil, "`PATTERN` of tables to copy: 'shop.*'; may be repeated")
}

func (p *program) stateFlag(f *pflag.FlagSet, usage string) {
	f.StringVar(&p.flags.state, "state", "", usage)
}

func (p *program) jsonFlag(f *pflag.FlagSet) {
	f.BoolVar(&p.flags.json, "json", false, "write JSON to stdout, one record per line")
}

func (p *program) resumeFlag(f *pflag.FlagSet, usage string) {
	f.StringVar(&p.flags.resumeState, "resume-state", "", usage)
}

func (p *program) runFlags(f *pflag.FlagSet) {
	p.stateFlag(f, "`FILE` that a fresh run writes its state to (default: state in the configuration)")
	p.resumeFlag(f, "go on from the state `FILE`, and keep writing to it")
	f.BoolVar(&p.flags.resumeIfPresent, "resume-if-present", false, "go on if the state file is there, else begin")
	f.BoolVar(&p.flags.startOver, "start-over", false, "begin again: move the state away, drop the tables that the run before made, copy anew")
	f.BoolVar(&p.flags.dryRun, "dry-run", false, "connect, check and print the plan; write nothing")
	f.StringVar(&p.flags.until, "until", "", "where catch-up ends: caught_up, never, gtid:SET or file:NAME:POS")
	f.DurationVar(&p.flags.deadline, "deadline", 0, "the process has ended after this `DURATION`; a resume goes on")
	f.DurationVar(&p.flags.progressInterval, "progress-interval", 30*time.Second, "`DURATION` between two lines of progress")
	f.BoolVar(&p.flags.quiet, "quiet", false, "no progress; only warnings, errors and how it ended")
	f.BoolVar(&p.flags.showKeys, "show-keys", false, "let key values of rows appear on stderr, in messages about them")
	f.StringVar(&p.flags.pprof, "pprof", "", "answer Go's profiles at http://`ADDR`/debug/pprof/ while the run goes on; a loopback address, as 127.0.0.1:6060")
	p.jsonFlag(f)
	for _, name := range laterFlags {
		f.String(name, "", notYet)
		f.Lookup(name).Hidden = true
	}
	f.Lookup("accept-selection-change").NoOptDefVal = "true"
}

// checkFlags refuses what no flag's type tells.
func (p *program) checkFlags(cmd *cobra.Command) error {
	for _, name := range laterFlags {
		if _, set := p.origin[name]; set {
			return usagef("--%s: %s", name, notYet)
		}
	}
	for _, f := range []struct {
		name, value string
		words       []string
	}{
		{"log-format", p.flags.logFormat, []string{"text", "json"}},
		{"log-level", p.flags.logLevel, []string{"debug", "info", "warn", "error"}},
	} {
		if err := oneOf(f.name, f.value, f.words); err != nil {
			return err
		}
	}
	if p.flags.progressInterval <= 0 && cmd.Flags().Lookup("progress-interval") != nil {
		return usagef("--progress-interval must be more than 0")
	}
	if p.given("pprof") {
		if err := checkLoopback(p.flags.pprof); err != nil {
			return err
		}
	}
	return p.checkStart()
}

// checkStart refuses more than one way to begin.
func (p *program) checkStart() error {
	if p.origin["resume-state"] == "--resume-state" && p.origin["state"] == envName("state") {
		delete(p.origin, "state") // a flag goes before the environment
		p.flags.state = ""
	}
	var ways []string
	for _, name := range []string{"resume-state", "resume-if-present", "start-over"} {
		if p.given(name) {
			ways = append(ways, "--"+name)
		}
	}
	switch {
	case len(ways) > 1:
		return usagef("%s and %s exclude each other", ways[0], ways[1])
	case p.given("resume-state") && p.given("state"):
		return usagef("--state is where a fresh run writes; with --resume-state the state stays where it is")
	case p.given("resume-state") && p.flags.resumeState == "":
		return usagef("--resume-state needs a file")
	}
	return nil
}

// given reports whether a flag was set to something other than false.
func (p *program) given(name string) bool {
	_, set := p.origin[name]
	switch name {
	case "resume-if-present":
		return set && p.flags.resumeIfPresent
	case "start-over":
		return set && p.flags.startOver
	}
	return set
}

func oneOf(name, value string, words []string) error {
	for _, w := range words {
		if w == value {
			return nil
		}
	}
	return usagef("--%s must be one of %v", name, words)
}
