package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/copydb/copydb/copydb"
	"github.com/copydb/copydb/copydb/config"
)

var update = flag.Bool("update", false, "write the generated documents")

func TestExitCodesDocIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "exit-codes.md")
	if *update {
		if err := os.WriteFile(path, []byte(exitCodesMarkdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != exitCodesMarkdown() {
		t.Errorf("docs/exit-codes.md is not what the table of exit codes says (%v); go test ./cmd/copydb -update", err)
	}
}

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		args, want string
	}{
		{"", "usage: copydb --config FILE"},
		{"--json", "no configuration"},
		{"chek", `unknown command "chek"; did you mean "check"?`},
		{"check extra", "takes no arguments"},
		{"--nonsense", "unknown flag --nonsense"},
		{"--config", "--config needs a value"},
		{"--config /no/such.yaml", "cannot read the configuration"},
		{"--config -", "source.host is missing"},
		{"--config - --set x", "--set wants KEY=VALUE"},
		{"--config - --set snapshot.thread=2", `--set: unknown key "snapshot.thread"; did you mean "snapshot.threads"?`},
		{"--config - --pprof 6060", "--pprof must be an address as 127.0.0.1:6060"},
		{"--config - --pprof :6060", "--pprof takes only loopback addresses"},
		{"--config - --pprof 0.0.0.0:6060", "--pprof takes only loopback addresses"},
		{"--config - --pprof [::]:6060", "--pprof takes only loopback addresses"},
		{"--config - --pprof example.com:6060", "--pprof takes only loopback addresses"},
		{"--config - --until soon", "--until: catch_up.until: must be caught_up"},
		{"--config - --until cutover", "not supported yet"},
		{"--config - --deadline soon", "--deadline must be a duration"},
		{"--config - --log-format xml", "--log-format must be one of [text json]"},
		{"--config - --log-level loud", "--log-level must be one of"},
		{"--config - --progress-interval 0s", "--progress-interval must be more than 0"},
		{"--config - --resume-state a --state b", "--state is where a fresh run writes"},
		{"--config - --resume-state a --start-over", "--resume-state and --start-over exclude each other"},
		{"--config - --resume-if-present --start-over", "exclude each other"},
		{"--config - --resume-state=", "--resume-state needs a file"},
		{"--source nonsense", "--source: must have the form mysql://user@host:port"},
		{"completion", "completion needs one of"},
		{"check", "no configuration"},
		{"cleanup", "no configuration"},
		{"status --quiet", "unknown flag --quiet"},
	}
	for _, cmd := range []string{"verify", "cutover", "pause", "continue", "set a=b", "doctor --state x", "reverse"} {
		tests = append(tests, struct{ args, want string }{cmd, strings.Fields(cmd)[0] + ": not supported yet"})
	}
	for _, flag := range []string{"--summary x", "--listen x", "--listen-token-file x", "--accept-selection-change"} {
		tests = append(tests, struct{ args, want string }{"--config - " + flag, strings.Fields(flag)[0] + ": not supported yet"})
	}
	for _, tt := range tests {
		got := caller{}.call(t, strings.Fields(tt.args)...)
		if got.code != copydb.ExitUsage || !strings.Contains(got.stderr, tt.want) || got.out != "" || got.opt != nil {
			t.Errorf("copydb %s: exit %d, stdout %q, stderr %q; want %q", tt.args, got.code, got.out, got.stderr, tt.want)
		}
	}
}

func TestPlainCommands(t *testing.T) {
	for args, want := range map[string]string{
		"config":                config.Sample(),
		"version":               "copydb dev (go",
		"--help":                "--resume-state FILE",
		"help":                  "--resume-state FILE",
		"check --help":          "--print-grants",
		"completion bash":       "# bash completion",
		"completion zsh":        "#compdef copydb",
		"completion fish":       "# fish completion",
		"completion powershell": "Register-ArgumentCompleter",
	} {
		if got := (caller{}).call(t, strings.Fields(args)...); got.code != 0 || !strings.Contains(got.out, want) || got.stderr != "" {
			t.Errorf("copydb %s: exit %d, stderr %q, stdout:\n%s", args, got.code, got.stderr, got.out)
		}
	}
}

func TestOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "source: {host: a, user: u, password_env: PW}\ntarget: {host: b, user: v}\ntables: {include: [a]}\nstate: s.json\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PW=secret"}
	tests := []struct {
		name    string
		args    []string
		env     []string
		start   copydb.Start
		state   string
		command string
	}{
		{"fresh", []string{"--config", file}, nil, copydb.StartFresh, "s.json", "copydb --config " + file},
		{"state", []string{"--config", file, "--state", "t.json", "--dry-run"}, nil, copydb.StartFresh, "t.json", "copydb --config " + file},
		{"resume", []string{"--config", file, "--resume-state", "r.json"}, nil, copydb.StartResume, "r.json", "copydb --config " + file},
		{"resume by env", []string{"--config", file}, []string{"COPYDB_RESUME_STATE=e.json"}, copydb.StartResume, "e.json", "copydb --config " + file},
		{"flag before env", []string{"--config", file, "--resume-state", "r.json"}, []string{"COPYDB_RESUME_STATE=e.json", "COPYDB_STATE=x"}, copydb.StartResume, "r.json", "copydb --config " + file},
		{"if present", []string{"--resume-if-present"}, []string{"COPYDB_CONFIG=" + file}, copydb.StartResumeIfPresent, "s.json", "copydb --config " + file},
		{"start over", []string{"--config", file, "--start-over", "--until", "gtid:a:1", "--set", "source.tls={mode: required}", "--quiet"}, nil,
			copydb.StartOver, "s.json", "copydb --config " + file + " --quiet --set 'source.tls={mode: required}' --until gtid:a:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := caller{env: append(tt.env, env...)}.call(t, tt.args...)
			if got.code != 0 || got.opt == nil {
				t.Fatalf("exit %d: %s", got.code, got.stderr)
			}
			o := got.opt
			if o.Start != tt.start || o.StatePath != tt.state || o.Config.State != tt.state || o.Command != tt.command {
				t.Errorf("start %v, state %q, command %q", o.Start, o.StatePath, o.Command)
			}
			if o.Config.Source.Password.Reveal() != "secret" {
				t.Error("password not resolved")
			}
		})
	}
}

func TestPrecedence(t *testing.T) {
	file := "source: {host: a, user: u}\ntarget: {host: b, user: v}\ntables: {include: [a]}\nstop_timeout: 2s\nretry_timeout: 2s\ncheckpoint_interval: 2s\n"
	c := caller{stdin: file, env: []string{"COPYDB_SET=stop_timeout=3s\nretry_timeout=3s\n", "COPYDB_UNTIL=never", "COPYDB_INCLUDE=x.a\nx.b", "COPYDB_QUIET=true"}}
	got := c.call(t, "--config", "-", "--set", "stop_timeout=4s", "--until", "file:b.1:99")
	if got.code != 0 {
		t.Fatal(got.stderr)
	}
	o := got.opt.Config
	want := []any{4 * time.Second, 3 * time.Second, 2 * time.Second, config.Until{File: "b.1", Pos: 99}, []string{"x.a", "x.b"}}
	if d := cmp.Diff(want, []any{o.StopTimeout, o.RetryTimeout, o.CheckpointInterval, o.CatchUp.Until, o.Tables.Include}); d != "" {
		t.Error(d)
	}
}

func TestUnknownEnvironment(t *testing.T) {
	c := caller{env: []string{"COPYDB_RESUME_STAT=x", "COPYDB_TEST_X=1", "COPYDB_PRINT_GRANTS=true", "COPYDB_PW=p", "COPYDB_SOURCE_PASSWORD=y", "OTHER=z"}}
	got := c.call(t, small("--source-password-env", "COPYDB_PW")...)
	if got.code != 0 || strings.Count(got.stderr, "warning:") != 1 || !strings.Contains(got.stderr, "COPYDB_RESUME_STAT means nothing") {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
	bad := caller{env: []string{"COPYDB_QUIET=hunter2"}}.call(t, small()...)
	if bad.code != copydb.ExitUsage || !strings.Contains(bad.stderr, "COPYDB_QUIET must be true or false") || strings.Contains(bad.stderr, "hunter2") {
		t.Errorf("exit %d: %s", bad.code, bad.stderr)
	}
}

func TestHowFailuresEnd(t *testing.T) {
	stateFile := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(stateFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	resume := "resume: copydb --include 'shop.*' --source mysql://u@src.example --target mysql://v@dst.example:33 --resume-state " + stateFile
	tests := []struct {
		name string
		err  error
		code int
		want []string
		not  string
	}{
		{"full", &copydb.Error{Code: 7, Where: "shop.orders chunk 3", Message: "write rows", Next: "free some disk", Err: errors.New("disk full")}, 7,
			[]string{"error: write rows: disk full", "where:  shop.orders chunk 3", "next:   free some disk", resume}, "goroutine"},
		{"preflight", &copydb.Error{Code: 3, Message: "2 errors"}, 3, []string{"error: 2 errors"}, "resume:"},
		{"plain", fmt.Errorf("read rows: %w", errors.New("boom")), 1, []string{"error: read rows: boom", resume}, "where"},
		{"stopped", &copydb.StopError{Reason: "SIGTERM", Code: 143}, 143, []string{"stopped by SIGTERM", resume}, "where"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := caller{work: work{run: func(context.Context, copydb.Options) error { return tt.err }}}
			got := c.call(t, small("--state", stateFile)...)
			for _, want := range tt.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("%q is missing", want)
				}
			}
			if got.code != tt.code || strings.Contains(got.stderr, tt.not) || got.out != "" {
				t.Errorf("exit %d, stdout %q, stderr:\n%s", got.code, got.out, got.stderr)
			}
		})
	}
}

func TestPanicIsAnError(t *testing.T) {
	c := caller{work: work{run: func(context.Context, copydb.Options) error { var none []int; none[len(none)] = 1; return nil }}}
	got := c.call(t, small()...)
	if got.code != copydb.ExitFailed || !strings.Contains(got.stderr, "(a bug, in ") || !strings.Contains(got.stderr, "cli_test.go:") || strings.Contains(got.stderr, "goroutine ") {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
	if got = c.call(t, small("--log-level", "debug")...); !strings.Contains(got.stderr, "goroutine ") {
		t.Errorf("no trace with --log-level debug: %s", got.stderr)
	}
}

// The password is in no output, wherever it comes from and however it ends.
func TestNoSecretInOutput(t *testing.T) {
	const secret = "hunter2"
	dir := t.TempDir()
	pwFile := filepath.Join(dir, "pw")
	if err := os.WriteFile(pwFile, []byte(secret+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	good := "source: {host: a, user: u, password: hunter2}\ntarget: {host: b, user: v, password_file: " + pwFile + "}\ntables: {include: [a]}\n"
	fail := func(_ context.Context, opt copydb.Options) error {
		opt.Logger.Error("all of it", "config", opt.Config, "password", opt.Config.Source.Password)
		return fmt.Errorf("connect with %+v %v", opt.Config, opt.Config.Target)
	}
	calls := []struct {
		stdin, args string
		used        bool
	}{
		{good, "--config -", true},
		{good, "--config - --json --log-format json --log-level debug", true},
		{good, "--config - --dry-run", true},
		{good + "stat: 1\n", "--config -", false},
		{good, "--config - --set source.port=x", false},
		{good, "--config - --set source.password=hunter2", false},
		{"source: {password: *hunter2}", "--config -", false},
		{"", "--source mysql://u:hunter2@h --target mysql://v@h --include a", false},
		{"", "-phunter2", false},
		{"", "--password=hunter2", false},
		{"", "--hunter2", false},
		{"", "mysql://u:hunter2@h", false},
		{"", "check mysql://u:hunter2@h", false},
		{"", "--source hunter2", false},
		{"", "--config - --set hunter2", false},
		{"", "--deadline hunter2 --config -", false},
		{"", "--source mysql://u@h --target mysql://v@h --include a --source-password-env hunter2", false},
	}
	for _, tt := range calls {
		got := caller{stdin: tt.stdin, work: work{run: fail}}.call(t, strings.Fields(tt.args)...)
		if got.code == 0 || (got.opt != nil) != tt.used {
			t.Errorf("copydb %s: exit %d, used %v: %s", tt.args, got.code, got.opt != nil, got.stderr)
		}
		// A flag is repeated by its name only, and that is what this one is called.
		shown := strings.ReplaceAll(got.out+got.stderr, "unknown flag --hunter…", "")
		if strings.Contains(shown, secret) {
			t.Errorf("copydb %s shows it:\n%s%s", tt.args, got.out, got.stderr)
		}
	}
}
