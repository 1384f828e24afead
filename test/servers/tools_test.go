package servers

import (
	"strings"
	"testing"
)

func TestMyDumperIsThere(t *testing.T) {
	m, err := LocateMyDumper(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if major, rest, ok := strings.Cut(m.Version, "."); !ok || major == "" || rest == "" {
		t.Errorf("version %q", m.Version)
	}
	for _, program := range []string{"mydumper", "myloader"} {
		out, err := m.Command(t.Context(), program, &Server{Host: "127.0.0.1", Port: 1, RootUser: "root"}, "--help").Output()
		if err != nil || !strings.Contains(string(out), "--threads") {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
	}
}
