package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func begin(t *testing.T, o Options) *Server {
	t.Helper()
	began := time.Now()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s: started in %.2f s", s.Kind, s.Version, time.Since(began).Seconds())
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ask(t *testing.T, s *Server, query string) string {
	t.Helper()
	var value string
	if err := s.DB().QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func TestKindsAreWhatTheyAreCalled(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := begin(t, Options{Kind: kind, BinlogSize: ScenarioBinlog})
			checkVersion(t, s)
			checkSettings(t, s)
		})
	}
}

func checkVersion(t *testing.T, s *Server) {
	t.Helper()
	version := ask(t, s, "SELECT VERSION()")
	comment := ask(t, s, "SELECT @@version_comment")
	isMariaDB := strings.Contains(version, "MariaDB")
	if isMariaDB != s.Kind.IsMariaDB() {
		t.Errorf("VERSION() is %q, version_comment %q", version, comment)
	}
	if !isMariaDB && comment == "" {
		t.Error("version_comment is empty")
	}
	if s.binaries.Fetched && !strings.HasPrefix(version, s.Kind.Version()+".") {
		t.Errorf("VERSION() is %q, want %s", version, s.Kind.Version())
	}
	if !strings.HasPrefix(version, s.Version) {
		t.Errorf("VERSION() is %q, the binary said %q", version, s.Version)
	}
}

func checkSettings(t *testing.T, s *Server) {
	t.Helper()
	want := map[string]string{
		"@@log_bin": "1", "@@binlog_format": "ROW", "@@binlog_row_image": "FULL",
		"@@max_binlog_size": "4096", "@@local_infile": "1", "@@bind_address": "127.0.0.1",
		"@@sync_binlog": "1", "@@innodb_flush_log_at_trx_commit": "1",
		"@@max_allowed_packet": "67108864", "@@max_connections": "200",
		"@@innodb_buffer_pool_size": "134217728",
	}
	if !s.Kind.IsMariaDB() {
		mode := map[bool]string{true: "ON", false: "OFF"}[s.Kind.HasGTID()]
		want["@@gtid_mode"], want["@@enforce_gtid_consistency"] = mode, mode
		want["@@performance_schema"] = "1"
	}
	for name, value := range want {
		if got := ask(t, s, "SELECT "+name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

func TestServersOfOneTemplateDiffer(t *testing.T) {
	a, b := begin(t, Options{Kind: MySQL}), begin(t, Options{Kind: MySQL})
	for _, q := range []string{"SELECT @@server_uuid", "SELECT @@server_id", "SELECT @@port"} {
		if ask(t, a, q) == ask(t, b, q) {
			t.Errorf("%s is the same on both", q)
		}
	}
}

func TestDurabilityOptions(t *testing.T) {
	s := begin(t, Options{Kind: MariaDB118, Fast: true, NoLocalInfile: true, ExtraArgs: []string{"--max-connections=77"}})
	for q, want := range map[string]string{"SELECT @@sync_binlog": "0", "SELECT @@innodb_flush_log_at_trx_commit": "0",
		"SELECT @@local_infile": "0", "SELECT @@max_connections": "77"} {
		if got := ask(t, s, q); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
}

func TestLifeOfAServer(t *testing.T) {
	for _, kind := range []Kind{MySQL, MariaDB118} {
		t.Run(string(kind), func(t *testing.T) {
			s := begin(t, Options{Kind: kind})
			if _, err := s.DB().ExecContext(t.Context(), "CREATE DATABASE d; CREATE TABLE d.t (a INT); INSERT INTO d.t VALUES (7)"); err != nil {
				t.Fatal(err)
			}
			port, pid := s.Port, s.PID()
			s.Kill9()
			if s.Running() {
				t.Error("runs after Kill9")
			}
			if err := s.Restart(t.Context(), "--max-connections=55"); err != nil {
				t.Fatal(err)
			}
			if s.Port != port || s.PID() == pid {
				t.Errorf("port %d, was %d; pid %d, was %d", s.Port, port, s.PID(), pid)
			}
			if got := ask(t, s, "SELECT a + @@max_connections FROM d.t"); got != "62" {
				t.Errorf("after the restart: %s", got)
			}
			checkPause(t, s)
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			if err := s.DB().PingContext(t.Context()); err == nil {
				t.Error("answers after Stop")
			}
		})
	}
}

func checkPause(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.DB().ExecContext(ctx, "DO 1"); err == nil {
		t.Error("answers while paused")
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	ask(t, s, "SELECT 1")
}

func TestClientAndDump(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := begin(t, Options{Kind: kind})
			script := "CREATE DATABASE d; USE d;\nDELIMITER $$\nCREATE PROCEDURE p() BEGIN SELECT '漢'; END$$\nDELIMITER ;\nCALL p();"
			out, err := s.Client(t.Context(), strings.NewReader(script), "-N", "-B")
			if err != nil || strings.TrimSpace(out) != "漢" {
				t.Errorf("client: %q, %v", out, err)
			}
			if _, err := s.Client(t.Context(), strings.NewReader("SELEC 1")); err == nil || !strings.Contains(err.Error(), "1064") {
				t.Errorf("client on a wrong statement: %v", err)
			}
			dump, err := s.Dump(t.Context(), "--routines", "d")
			if err != nil || !strings.Contains(dump, "PROCEDURE") {
				t.Errorf("dump: %q, %v", dump, err)
			}
		})
	}
}

func TestFailedStartShowsTheLog(t *testing.T) {
	_, err := Start(t.Context(), Options{Kind: MySQL, ExtraArgs: []string{"--no-such-option=1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("error: %v", err)
	}
	if _, err := Start(t.Context(), Options{Kind: "oracle"}); err == nil {
		t.Error("no error for an unknown kind")
	}
}

func TestOwnDataFolderStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	a := begin(t, Options{Kind: MariaDB1011, DataDir: dir})
	if _, err := a.DB().ExecContext(t.Context(), "CREATE DATABASE kept"); err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b := begin(t, Options{Kind: MariaDB1011, DataDir: dir})
	ask(t, b, "SHOW DATABASES LIKE 'kept'")
}

// A server is used that the environment names: here the fetched one, made to
// look like one of the machine's own.
func TestServerNamedByTheEnvironment(t *testing.T) {
	fetchedOne, err := Locate(t.Context(), MariaDB1011)
	if err != nil {
		t.Fatal(err)
	}
	if !fetchedOne.Fetched {
		t.Skip("the machine has a server of its own")
	}
	base := t.TempDir()
	if err := os.Mkdir(filepath.Join(base, "sbin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"share", "lib"} {
		if err := os.Symlink(filepath.Join(fetchedOne.base, d), filepath.Join(base, d)); err != nil {
			t.Fatal(err)
		}
	}
	wrapper := "#!/bin/sh\nexec '" + strings.Join(append(fetchedOne.loader, fetchedOne.server), "' '") + "' \"$@\"\n"
	path := filepath.Join(base, "sbin", "mysqld") // as Debian's MariaDB package calls it
	if err := os.WriteFile(path, []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COPYDB_TEST_MYSQLD", path)
	s := begin(t, Options{Kind: MariaDB118})
	if s.binaries.Fetched || s.Version != fetchedOne.Version {
		t.Errorf("started %s, fetched %v", s.Version, s.binaries.Fetched)
	}
	checkVersion(t, s)
	if my := begin(t, Options{Kind: MySQL}); !my.binaries.Fetched {
		t.Error("a MySQL kind runs on the server of the other family")
	}
	t.Setenv("COPYDB_TEST_MYSQLD", filepath.Join(base, "none"))
	if _, err := Start(t.Context(), Options{Kind: MySQL}); err == nil || !strings.Contains(err.Error(), "COPYDB_TEST_MYSQLD") {
		t.Errorf("a variable that names nothing: %v", err)
	}
}

// The child starts a server and is killed with SIGKILL.
func TestServerDiesWithItsProcess(t *testing.T) {
	if os.Getenv("COPYDB_TEST_CHILD") == "1" {
		s := begin(t, Options{Kind: MySQL})
		fmt.Println("\naddr " + s.Addr())
		<-t.Context().Done()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithItsProcess$")
	cmd.Env = append(os.Environ(), "COPYDB_TEST_CHILD=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr := readAddr(t, out)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	waitClosed(t, addr)
}
