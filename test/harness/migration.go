package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/state"
	"github.com/copydb/copydb/test/servers"
)

// Migration is a configuration and a state file in a folder of their own, and
// the servers they speak of.
type Migration struct {
	Source, Target *servers.Server
	Dir            string // of all files of the migration, and working directory of its runs
	ConfigPath     string
	StatePath      string

	t      testing.TB
	config Config
	holds  string // folder of the hold points
}

// New writes the configuration of a migration. Unless it names an account, it
// makes one on both servers and gives it what `copydb check --print-grants`
// prints, and no more.
func New(t testing.TB, source, target *servers.Server, c Config) *Migration {
	t.Helper()
	m := &Migration{Source: source, Target: target, Dir: t.TempDir(), t: t, config: c}
	m.ConfigPath, m.StatePath = filepath.Join(m.Dir, "copydb.yaml"), filepath.Join(m.Dir, "state.json")
	m.holds = filepath.Join(m.Dir, "holds")
	if err := os.Mkdir(m.holds, 0o700); err != nil {
		t.Fatal(err)
	}
	own := c.User == ""
	if own {
		m.config.User, m.config.Password = User, Password
	}
	m.WriteConfig()
	if own {
		m.Grant()
	}
	return m
}

// Config returns the configuration; change it with SetConfig.
func (m *Migration) Config() Config { return m.config }

// SetConfig replaces the configuration and its file.
func (m *Migration) SetConfig(change func(*Config)) {
	m.t.Helper()
	change(&m.config)
	m.WriteConfig()
}

// WriteConfig writes the configuration file, with the addresses that the
// servers have now.
func (m *Migration) WriteConfig() {
	m.t.Helper()
	source, target := m.Source.Addr(), m.Target.Addr()
	if m.config.SourceAddr != "" {
		source = m.config.SourceAddr
	}
	if m.config.TargetAddr != "" {
		target = m.config.TargetAddr
	}
	if err := os.WriteFile(m.ConfigPath, []byte(m.config.yaml(source, target)), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// Sibling returns another migration of the same servers, account and
// configuration, with a folder and state file of its own.
func (m *Migration) Sibling() *Migration { return m.In(m.t) }

// In is Sibling for a subtest.
func (m *Migration) In(t testing.TB) *Migration {
	t.Helper()
	return New(t, m.Source, m.Target, m.config)
}

// Grant makes the account on both servers without any privilege, asks copydb
// what it needs, and grants that.
func (m *Migration) Grant() {
	m.t.Helper()
	for _, srv := range []*servers.Server{m.Source, m.Target} {
		testdb.Exec(m.t, srv, fmt.Sprintf("CREATE USER IF NOT EXISTS %s@'%%' IDENTIFIED BY '%s'", User, Password))
	}
	source, target := m.Grants()
	for srv, grants := range map[*servers.Server][]string{m.Source: source, m.Target: target} {
		for _, g := range grants {
			testdb.Exec(m.t, srv, g)
		}
	}
}

// Grants returns the statements that `copydb check --print-grants` prints for
// each server.
func (m *Migration) Grants() (source, target []string) {
	m.t.Helper()
	p := m.Command().Start(m.t, "check", "--config", m.ConfigPath, "--print-grants", "--json")
	p.RequireExit(RunTimeout, 0, 3)
	var grants struct{ Source, Target []string }
	raw, err := json.Marshal(p.Last("grants"))
	if err == nil {
		err = json.Unmarshal(raw, &grants)
	}
	if err != nil || len(grants.Source) == 0 || len(grants.Target) == 0 {
		m.t.Fatalf("check --print-grants printed no grants: %v", err)
	}
	return grants.Source, grants.Target
}

// Command returns how the processes of the migration are started.
func (m *Migration) Command() Command {
	env := append([]string{}, m.config.Env...)
	if m.config.Build == HoldPoints {
		env = append(env, "COPYDB_TEST_HOLD="+m.holds)
	}
	return Command{Build: m.config.Build, Dir: m.Dir, Env: env, Secrets: []string{m.config.Password}}
}

// Start starts a fresh run.
func (m *Migration) Start(args ...string) *Process {
	m.t.Helper()
	return m.Command().Start(m.t, m.FreshArgs(args...)...)
}

// StartResume starts a run that goes on from the state file.
func (m *Migration) StartResume(args ...string) *Process {
	m.t.Helper()
	return m.Command().Start(m.t, m.ResumeArgs(args...)...)
}

// FreshArgs returns the arguments of a fresh run.
func (m *Migration) FreshArgs(more ...string) []string {
	return append([]string{"--config", m.ConfigPath, "--state", m.StatePath}, more...)
}

// ResumeArgs returns the arguments of a run that goes on.
func (m *Migration) ResumeArgs(more ...string) []string {
	return append([]string{"--config", m.ConfigPath, "--resume-state", m.StatePath}, more...)
}

// Run runs a fresh run to its end; the caller judges its exit code.
func (m *Migration) Run(args ...string) *Process {
	m.t.Helper()
	p := m.Start(args...)
	p.Wait(RunTimeout)
	return p
}

// Resume goes on from the state file to the end of the run.
func (m *Migration) Resume(args ...string) *Process {
	m.t.Helper()
	p := m.StartResume(args...)
	p.Wait(RunTimeout)
	return p
}

// RequireRun is Run that must end with 0.
func (m *Migration) RequireRun(args ...string) *Process {
	m.t.Helper()
	p := m.Start(args...)
	p.RequireExit(RunTimeout, 0)
	return p
}

// RequireResume is Resume that must end with 0.
func (m *Migration) RequireResume(args ...string) *Process {
	m.t.Helper()
	p := m.StartResume(args...)
	p.RequireExit(RunTimeout, 0)
	return p
}

// State reads the state file, also while a run goes on.
func (m *Migration) State() *state.State {
	m.t.Helper()
	s, err := state.Load(m.StatePath)
	if err != nil {
		m.t.Fatalf("read state: %v", err)
	}
	return s
}

// Phase returns the phase in the state file, empty if there is none yet.
func (m *Migration) Phase() state.Phase {
	s, err := state.Load(m.StatePath)
	if err != nil {
		return ""
	}
	return s.Phase
}

// RequireClean fails the test if copydb's account has a session or transaction
// on either server.
func (m *Migration) RequireClean() {
	m.t.Helper()
	testdb.RequireClean(m.t, m.Source, m.config.User)
	testdb.RequireClean(m.t, m.Target, m.config.User)
}
