package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/pattern"
	"github.com/copydb/copydb/test/servers"
)

// connTo returns a server as the code under test takes it, for an account.
func connTo(t *testing.T, name string, srv *servers.Server, user, password string) *mysqlconn.Server {
	t.Helper()
	s, err := mysqlconn.New(mysqlconn.Config{Name: name, Host: srv.Host, Port: srv.Port, User: user, Password: password,
		ConnectTimeout: 10 * time.Second, NetworkTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// input returns the preflight of a plain fresh run as the super user.
func input(t *testing.T, source, target *servers.Server, include ...string) *Input {
	t.Helper()
	return &Input{
		Source: connTo(t, "source", source, "root", ""), Target: connTo(t, "target", target, "root", ""),
		Select:     selecting(include...),
		AllowLocks: true, SQLLogBin: true, LoadMethod: "auto", ExistingTables: "error",
	}
}

func selecting(include ...string) func(bool) (Selection, error) {
	return func(fold bool) (Selection, error) { return pattern.Compile(include, nil, fold) }
}

func run(t *testing.T, in *Input) []Finding {
	t.Helper()
	found, err := Run(t.Context(), in)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	for _, f := range found {
		if f.ID == "" || f.Message == "" || f.Fix == "" || strings.ContainsAny(f.Message+f.Fix, "\n") {
			t.Errorf("finding is not whole: %+v", f)
		}
	}
	return found
}

// want fails unless a finding of that id and severity is there whose text holds
// every one of parts.
func want(t *testing.T, found []Finding, severity Severity, id string, parts ...string) {
	t.Helper()
	for _, f := range found {
		text := f.Object + " " + f.Message + " " + f.Fix
		ok := f.ID == id && f.Severity == severity
		for _, p := range parts {
			ok = ok && strings.Contains(text, p)
		}
		if ok {
			return
		}
	}
	t.Errorf("no %s %s with %q in\n%s", severity, id, parts, show(found))
}

// wantNot fails if a finding of one of the ids is there.
func wantNot(t *testing.T, found []Finding, ids ...string) {
	t.Helper()
	for _, f := range found {
		for _, id := range ids {
			if f.ID == id {
				t.Errorf("unwanted %s %s: %s", f.Severity, f.ID, f.Message)
			}
		}
	}
}

// wantNoErrors fails if there is any error.
func wantNoErrors(t *testing.T, found []Finding) {
	t.Helper()
	for _, f := range found {
		if f.Severity == SeverityError {
			t.Errorf("unwanted error %s: %s", f.ID, f.Message)
		}
	}
}

func show(found []Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "  %s %s [%s] %s -> %s\n", f.Severity, f.ID, f.Object, f.Message, f.Fix)
	}
	return b.String()
}
