package cases

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/servers"
	"github.com/google/go-cmp/cmp"
)

const sample = "# 7. A sample\n\nProse.\n\n" +
	"```sql\n-- source\nCREATE DATABASE b07; CREATE TABLE b07.t (id INT);\n-- note\n-- during\nDELETE FROM b07.t;\n-- check\nSELECT 1;\n-- => 1\n-- => \t2\n```\n\n" +
	"## plain\n\n```run\nmoment: 2 b07.t 3\nkinds: mariadb-11.8\nstop: KILL\nchunk_rows: 2\nset: a=b\nset: c=d\nwithin: 5s\n```\n\n" +
	"## other rows\n\n```sql\n-- check\nSELECT 2;\n-- => 2\n```\n\n```run\nmoment: never\nmessage: a+b\n```\n"

func TestParse(t *testing.T) {
	c, err := Parse(sample)
	if err != nil {
		t.Fatal(err)
	}
	if c.Number != 7 || c.Title != "A sample" || len(c.Runs) != 2 {
		t.Fatalf("got %d %q with %d runs", c.Number, c.Title, len(c.Runs))
	}
	base := SQL{Source: "CREATE DATABASE b07; CREATE TABLE b07.t (id INT);\n-- note\n", During: "DELETE FROM b07.t;\n", Check: "SELECT 1;\n", Want: []string{"1", "\t2"}}
	first := Run{Name: "plain", SQL: base, Kinds: []servers.Kind{servers.MariaDB118}, Moment: Moment{AtRead, "b07.t", 3}, Stop: syscall.SIGKILL,
		ChunkRows: 2, Include: []string{"b07.*"}, Set: []string{"a=b", "c=d"}, Within: 5 * time.Second}
	if diff := cmp.Diff(first, c.Runs[0]); diff != "" {
		t.Error(diff)
	}
	second := c.Runs[1]
	if second.SQL.Check != "SELECT 2;\n" || second.SQL.Output() != "2" || second.SQL.Source != base.Source || second.Moment.When != AtNever ||
		second.Message == nil || !second.Message.MatchString("aab") || len(second.Kinds) != 2 {
		t.Errorf("second run: %+v", second)
	}
	if got := first.Moment.Point(); got != "chunk_read:b07.t" {
		t.Errorf("hold point %q", got)
	}
}

// A directive that is misspelt or a part that is missing must not make a run
// test less than it says.
func TestParseRefuses(t *testing.T) {
	for name, change := range map[string][2]string{
		"no number":            {"# 7. A", "# A"},
		"unknown directive":    {"chunk_rows:", "chunk_row:"},
		"empty directive":      {"kinds: mariadb-11.8", "kinds:"},
		"unknown kind":         {"mariadb-11.8", "mariadb-5.5"},
		"unknown moment":       {"moment: never", "moment: whenever"},
		"moment without table": {"moment: 2 b07.t 3", "moment: 2"},
		"arrival 0":            {"b07.t 3", "b07.t 0"},
		"unknown signal":       {"KILL", "HUP"},
		"twice":                {"chunk_rows: 2", "chunk_rows: 2\nchunk_rows: 2"},
		"stop at no point":     {"moment: never", "moment: never\nstop: INT"},
		"unknown block":        {"```run", "```runs"},
		"no end":               {"message: a+b\n```", "message: a+b"},
		"nothing expected":     {"-- => 2\n```", "```"},
		"no database":          {"CREATE DATABASE b07;", ""},
		"same name":            {"## other rows", "## plain"},
		"part twice":           {"-- during", "-- source"},
		"sql without a part":   {"-- source\n", ""},
		"untouched and exit 0": {"moment: never", "target: untouched"},
		"bad expression":       {"a+b", "(a"},
	} {
		text := strings.Replace(sample, change[0], change[1], 1)
		if text == sample {
			t.Fatalf("%s: nothing is changed", name)
		}
		if _, err := Parse(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Every case says where it comes from.
func TestCasesHaveLinks(t *testing.T) {
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\n  https://") {
			t.Errorf("%s has no link", f)
		}
	}
}

// Statements print what the server's own client prints for them, and an error
// of any of them is an error of the whole.
func TestPrintedIsWhatTheClientPrints(t *testing.T) {
	srv := testdb.One(t, servers.MariaDB118, testdb.WithFast())
	const script = "SET @a=1; SELECT 1,NULL,'x\ty'; CREATE DATABASE p; CREATE TABLE p.t (i INT); INSERT INTO p.t VALUES (1),(2); SELECT * FROM p.t WHERE i>5;" +
		" SELECT i, -1.50, CAST('a\nb\\\\c' AS CHAR) FROM p.t ORDER BY i; SELECT ''; DROP DATABASE p;"
	want, err := srv.Client(t.Context(), strings.NewReader(script), "--batch", "--skip-column-names")
	if err != nil {
		t.Fatal(err)
	}
	got, err := printed(t.Context(), srv, script)
	if err != nil || got+"\n" != want {
		t.Errorf("printed %q, %v; the client prints %q", got, err, want)
	}
	if got, err := printed(t.Context(), srv, "DELIMITER //\nSELECT 3//\n"); err != nil || got != "3" {
		t.Errorf("with DELIMITER: %q, %v", got, err)
	}
	for _, bad := range []string{"SELECT 1; SELECT nothing; SELECT 2", "SET @a=1; SIGNAL SQLSTATE '45000'", "nonsense"} {
		if got, err := printed(t.Context(), srv, bad); err == nil {
			t.Errorf("%s: printed %q and no error", bad, got)
		}
	}
}
