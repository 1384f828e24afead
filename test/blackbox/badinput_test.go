package blackbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
	"github.com/google/go-cmp/cmp"
)

// badCall is a call that must be refused: its exit code, what the message says,
// and nothing written.
type badCall struct {
	name   string
	change func(c *harness.Config)                  // of the configuration
	mend   func(t *testing.T, m *harness.Migration) // what else goes before
	args   func(m *harness.Migration) []string      // fresh without it
	code   int
	says   string
}

func TestBadCalls(t *testing.T) {
	const typo = "s3cret-mistyped"
	calls := []badCall{
		{name: "no arguments", args: func(*harness.Migration) []string { return nil }, code: 64, says: "--config"},
		{name: "no such config", args: func(*harness.Migration) []string { return []string{"--config", "nowhere.yaml"} }, code: 64, says: "nowhere.yaml"},
		{name: "config is no YAML", mend: func(t *testing.T, m *harness.Migration) { writeFile(t, m.ConfigPath, []byte("source: [\n")) }, code: 64, says: "copydb.yaml"},
		{name: "unknown key", change: func(c *harness.Config) { c.Extra = []string{"snapshot: {chunksize: 1MiB}"} }, code: 64, says: "chunk_size"},
		{name: "wrong type", change: func(c *harness.Config) { c.Extra = []string{"stop_timeout: soon"} }, code: 64, says: "stop_timeout"},
		{name: "unknown flag", args: func(m *harness.Migration) []string { return m.FreshArgs("--resumestate", "x") }, code: 64, says: "--resumestate"},
		{name: "password in a URL", args: func(*harness.Migration) []string {
			return []string{"--source", "mysql://copydb:" + typo + "@127.0.0.1:1", "--target", "mysql://copydb@127.0.0.1:1", "--include", "shop.*"}
		}, code: 64, says: "password"},
		{name: "not supported yet", change: func(c *harness.Config) { c.Extra = []string{"verify_at_end: true"} }, code: 64, says: "not supported yet"},
		{name: "wrong password", change: func(c *harness.Config) { c.Password = typo }, code: 3, says: "refuses user"},
		{name: "unreachable host", change: func(c *harness.Config) { c.SourceAddr = "127.0.0.1:1" }, code: 3, says: "127.0.0.1:1"},
		{name: "unknown host", change: func(c *harness.Config) { c.TargetAddr = "no-such-host.invalid:3306" }, code: 3, says: "no-such-host.invalid"},
		{name: "nothing selected", change: func(c *harness.Config) { c.Include = []string{"shop.nothing_*"} }, code: 3, says: "nothing_selected"},
		{name: "existing table", mend: func(t *testing.T, m *harness.Migration) {
			testdb.Exec(t, m.Target, "CREATE DATABASE shop; CREATE TABLE shop.load1 (id INT PRIMARY KEY); INSERT INTO shop.load1 VALUES (77)")
		}, code: 3, says: "shop.load1"},
		{name: "existing state", mend: func(t *testing.T, m *harness.Migration) { writeFile(t, m.StatePath, []byte("anything")) }, code: 4, says: "--resume-state"},
		{name: "only a backup", mend: func(t *testing.T, m *harness.Migration) { writeFile(t, m.StatePath+".bak", []byte("anything")) }, code: 4, says: ".bak"},
		{name: "no state", args: func(m *harness.Migration) []string { return m.ResumeArgs() }, code: 4, says: "--state"},
	}
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "shop", 2, 10)
		m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}})
		for _, c := range calls {
			t.Run(c.name, func(t *testing.T) { c.check(t, m, typo) })
		}
	}, families...)
}

func (c *badCall) check(t *testing.T, shared *harness.Migration, secret string) {
	m := shared.In(t)
	if c.change != nil {
		m.SetConfig(c.change)
	}
	if c.mend != nil {
		c.mend(t, m)
	}
	args := m.FreshArgs()
	if c.args != nil {
		args = c.args(m)
	}
	command := m.Command()
	command.Secrets = append(command.Secrets, secret)
	requireRefused(t, m, command, c.code, c.says, args...)
	testdb.Exec(t, m.Target, "DROP DATABASE IF EXISTS shop")
}

// requireRefused runs a call that must end with the code, say the text, and
// write nothing: no file, and nothing on the target.
func requireRefused(t *testing.T, m *harness.Migration, command harness.Command, code int, says string, args ...string) {
	t.Helper()
	before, onTarget := files(t, m.Dir), everything(t, m.Target)
	p := command.Start(t, args...)
	if got := p.Wait(time.Minute); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	if !strings.Contains(p.Stderr()+p.Stdout(), says) {
		t.Errorf("%q is not said", says)
	}
	// The preflight says all findings and then that it failed; all else is one error.
	if n := strings.Count("\n"+p.Stderr(), "\nerror: "); n != 1 && (code != 3 || !strings.Contains(p.Stderr(), "the preflight found")) {
		t.Errorf("%d errors are said, want one", n)
	}
	after := files(t, m.Dir)
	delete(after, filepath.Base(m.StatePath)+".lock") // stays beside a state that was good enough to be locked
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("files were written: %s", diff)
	}
	if diff := cmp.Diff(onTarget, everything(t, m.Target)); diff != "" {
		t.Errorf("the target was changed: %s", diff)
	}
	testdb.RequireClean(t, m.Source, harness.User)
	testdb.RequireClean(t, m.Target, harness.User)
}

// everything lists the tables of the server with their digests.
func everything(t *testing.T, srv *servers.Server) map[string]string {
	t.Helper()
	databases := names(t, srv, "SELECT schema_name FROM information_schema.schemata"+
		" WHERE schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')")
	all := testdb.Digest(t, srv, databases)
	for _, d := range databases {
		all[d] = "a database"
	}
	return all
}

// States that cannot be used are refused, and left as they are.
func TestB1_09_BrokenStates(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.CreateLoadTables(t, source, "shop", 2, 10)
		done := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}})
		done.RequireRun()
		good := readFile(t, done.StatePath)
		other := testdb.One(t, kind, testdb.WithFast())
		testdb.CreateLoadTables(t, other, "shop", 2, 10)
		harness.New(t, other, target, harness.Config{Include: []string{"shop.*"}}) // makes the account there
		for _, c := range []struct {
			name   string
			text   []byte
			change func(*harness.Config)
			says   string
		}{
			{name: "empty", text: nil, says: "empty"},
			{name: "cut in half", text: good[:len(good)/2], says: "cut"},
			{name: "trailing garbage", text: append(append([]byte{}, good...), "{}"...), says: "state.json"},
			{name: "newer format", text: edited(t, good, func(s map[string]any) { s["format_version"] = 999 }), says: "999"},
			{name: "wrong type", text: edited(t, good, func(s map[string]any) { s["tables"] = "all" }), says: "tables"},
			{name: "other selection", text: good, change: func(c *harness.Config) { c.Include = []string{"shop.load1"} }, says: "selection"},
			{name: "other source", text: good, change: func(c *harness.Config) { c.SourceAddr = other.Addr() }, says: "another server"},
		} {
			t.Run(c.name, func(t *testing.T) {
				m := done.In(t)
				writeFile(t, m.StatePath, c.text)
				if c.change != nil {
					m.SetConfig(c.change)
				}
				requireRefused(t, m, m.Command(), 4, c.says, m.ResumeArgs()...)
			})
		}
	}, families...)
}

func edited(t *testing.T, text []byte, change func(map[string]any)) []byte {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	change(s)
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An account without rights is told which, and with those that --print-grants
// lists, a run succeeds: harness.New has it so. Here every other way of giving
// the password is tried.
func TestPasswordsFromElsewhere(t *testing.T) {
	source, target := sharedPair(t, servers.MariaDB118)
	testdb.CreateLoadTables(t, source, "shop", 1, 10)
	m := harness.New(t, source, target, harness.Config{Include: []string{"shop.*"}})
	secret := m.Dir + "/secret"
	writeFile(t, secret, []byte(harness.Password+"\n"))
	command := m.Command()
	command.Env = append(command.Env, "THE_PASSWORD="+harness.Password)
	p := command.Start(t, "--source", "mysql://"+harness.User+"@"+source.Addr(), "--source-password-env", "THE_PASSWORD",
		"--target", "mysql://"+harness.User+"@"+target.Addr(), "--target-password-file", secret, "--include", "shop.*", "--state", m.StatePath)
	p.RequireExit(time.Minute, 0)
	testdb.RequireEqual(t, source, target, []string{"shop"})
	for name, text := range files(t, m.Dir) {
		if strings.HasPrefix(name, "state.json") && strings.Contains(text, harness.Password) {
			t.Errorf("%s has the password", name)
		}
	}
	if info, err := os.Stat(m.StatePath); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the state file: %v, %v", info.Mode(), err)
	}
}
