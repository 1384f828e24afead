package servers

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func readAddr(t *testing.T, out io.Reader) string {
	t.Helper()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if addr, ok := strings.CutPrefix(lines.Text(), "addr "); ok {
			return addr
		}
	}
	t.Fatal("the child has printed no address")
	return ""
}

func waitClosed(t *testing.T, addr string) {
	t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		_ = conn.Close()
	}
	t.Fatal("the server lives on after its process was killed")
}

func TestChooseMirror(t *testing.T) {
	cases := []struct{ name, targets, want string }{
		{"label", "Packages|main|Debian-Security|http://m/debian-security/\nDEP-11|main|Debian|http://m/x/\nPackages|contrib|Debian|http://m/c/\nPackages|main|Debian|http://m/mirror/\n", "http://m/mirror/"},
		{"no label", "Packages|main||http://m/debian-security/\nPackages|main||http://m/debian/\n", "http://m/debian/"},
		{"none", "Packages|main|Ubuntu|http://m/ubuntu/\n", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := chooseMirror(c.targets)
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestParseKind(t *testing.T) {
	for _, k := range Kinds() {
		if got, err := ParseKind(string(k)); err != nil || got != k {
			t.Errorf("%s: %s, %v", k, got, err)
		}
	}
	if _, err := ParseKind("mysql57"); err == nil || !strings.Contains(err.Error(), "mariadb-11.8") {
		t.Errorf("unknown kind: %v", err)
	}
}

func TestToolNames(t *testing.T) {
	my, maria := &Binaries{Family: FamilyMySQL}, &Binaries{Family: FamilyMariaDB}
	for _, c := range [][3]string{{"mysql", "mysql", "mariadb"}, {"mariadb", "mysql", "mariadb"},
		{"mysqldump", "mysqldump", "mariadb-dump"}, {"mariadb-binlog", "mysqlbinlog", "mariadb-binlog"}} {
		if a, b := my.toolName(c[0]), maria.toolName(c[0]); a != c[1] || b != c[2] {
			t.Errorf("%s: %s, %s", c[0], a, b)
		}
	}
}
