package blackbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// oddNames are names that break where a quote is forgotten, a pattern is taken
// for a name, or a text for a format.
var oddNames = []string{
	"select", "a.b", "it's", `dou"ble`, "back`tick", "100%", "%s%d", "a/b", `c:\tmp`, "sp ace", " first", "semi;colon", "new\nline", "-- x", "/*x*/", "#x",
	"名前", "Ünïcödé", "(paren", "a,b", "under_score", "$1", "?", "@v", "{x}", "*", "tab\there", strings.Repeat("x", 64), "`", "123", "1e5", "NULL", "İi",
}

// oddTexts stand in comments and defaults.
var oddTexts = []string{
	"semi;colon", "new\nline", "-- comment", "/* x */", "/*!50000 x */", "#", `back\slash`, `it's`, `dou"ble`, "%s", "COMMENT='x'", ") ENGINE=MyISAM", "`tick`", "ünï 漢", "\r\t\x01", "",
}

func ident(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// text writes a string for a session with backslash escapes.
func text(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
}

// oddTable writes a table whose columns, indexes and constraints have the name,
// and the odd text as comments and default.
func oddTable(database, name, txt string) string {
	full := ident(database) + "." + ident(name)
	short := name
	if len(short) > 60 {
		short = short[:60]
	}
	return fmt.Sprintf(`CREATE TABLE %[1]s (%[2]s INT NOT NULL COMMENT %[3]s, %[4]s VARCHAR(200) NOT NULL DEFAULT %[3]s COMMENT %[3]s, %[5]s INT,
		PRIMARY KEY (%[2]s, %[5]s), UNIQUE KEY %[2]s (%[4]s(50), %[2]s) COMMENT %[3]s, KEY %[4]s (%[5]s), CONSTRAINT %[4]s CHECK (%[2]s < 100000)) COMMENT %[3]s`,
		full, ident(name), text(txt), ident(short+" 2"), ident(short+" 3"))
}

// Names and texts that break where a quote is forgotten, by both paths.
func TestB4_01_OddNames(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		every := times(3, 1)
		var include, databases []string
		for i := 0; i < len(oddNames); i += every {
			d := oddNames[i]
			database := d + "!"
			if len(d) == 64 {
				database = d
			}
			if strings.HasPrefix(d, " ") || d == "new\nline" {
				database = "db" + d + "x"
			}
			databases = append(databases, database)
			include = append(include, harness.Literal(database))
			testdb.Exec(t, source, "CREATE DATABASE "+ident(database))
			for k := range 4 {
				n := (i + k*len(oddNames)/4) % len(oddNames)
				testdb.Exec(t, source, oddTable(database, oddNames[n], oddTexts[n%len(oddTexts)]))
				change(t, source, database, oddNames[n], 1)
			}
			testdb.Exec(t, source, fmt.Sprintf("CREATE TABLE %[1]s.child (id INT PRIMARY KEY, p INT, q INT, CONSTRAINT %[3]s FOREIGN KEY (p, q) REFERENCES %[1]s.%[2]s (%[2]s, %[4]s))",
				ident(database), ident(oddNames[i]), ident("fk "+oddNames[i][:min(len(oddNames[i]), 60)]), ident(oddNames[i][:min(len(oddNames[i]), 60)]+" 3")))
		}
		m := harness.New(t, source, target, harness.Config{Include: include, Build: harness.HoldPoints})
		m.Hold(harness.HoldCatchUp)
		p := m.Start("--json")
		m.WaitReached(p, harness.HoldCatchUp)
		for i, d := range databases {
			for k := range 4 {
				change(t, source, d, oddNames[(i*every+k*len(oddNames)/4)%len(oddNames)], 2)
			}
		}
		m.Release(harness.HoldCatchUp)
		p.RequireExit(2*time.Minute, 0)
		testdb.RequireEqual(t, source, target, databases)
	})
}

// change writes to an oddTable: rows of a first round, and changes of a second.
func change(t *testing.T, source *servers.Server, database, name string, round int) {
	t.Helper()
	full, first, third := ident(database)+"."+ident(name), ident(name), ident(name[:min(len(name), 60)]+" 3")
	if round == 1 {
		testdb.Exec(t, source, fmt.Sprintf("INSERT INTO %s (%s, %s) VALUES (1, 1), (2, 2), (3, 3)", full, first, third))
		return
	}
	testdb.Exec(t, source, fmt.Sprintf("UPDATE %[1]s SET %[3]s = 20 WHERE %[2]s = 2; DELETE FROM %[1]s WHERE %[2]s = 3; INSERT INTO %[1]s (%[2]s, %[3]s) VALUES (4, 4)", full, first, third))
}

// Defaults of databases and tables are kept on a target whose own are others.
func TestB4_02_DefaultCharacterSets(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source := testdb.One(t, kind, testdb.WithFast())
		target := testdb.One(t, kind, testdb.WithFast(), testdb.WithArgs("--character-set-server=cp1251", "--collation-server=cp1251_bulgarian_ci"))
		databases := []string{"plain"}
		testdb.Exec(t, source, "CREATE DATABASE plain")
		for i, collation := range []string{"latin1_general_cs", "utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb3_general_ci", "ucs2_bin", "binary", "sjis_japanese_ci", "utf8mb4_general_ci"} {
			d := fmt.Sprintf("cs%d", i)
			testdb.Exec(t, source, fmt.Sprintf("CREATE DATABASE %s CHARACTER SET %s COLLATE %s", d, strings.SplitN(collation, "_", 2)[0], collation))
			databases = append(databases, d)
		}
		var include []string
		for _, d := range databases {
			include = append(include, d+".*")
			testdb.Exec(t, source, fmt.Sprintf(`CREATE TABLE %[1]s.inherits (id INT PRIMARY KEY, v VARCHAR(20));
				CREATE TABLE %[1]s.own (id INT PRIMARY KEY, v VARCHAR(20), w VARCHAR(20) CHARACTER SET koi8r, x TEXT COLLATE utf8mb4_bin) DEFAULT CHARSET=greek COLLATE=greek_bin;
				CREATE TABLE %[1]s.mixed (id VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY, e ENUM('a','b'), s SET('a','b') CHARACTER SET ascii);
				INSERT INTO %[1]s.inherits VALUES (1, 'abc'), (2, ''); INSERT INTO %[1]s.own VALUES (1, 'abc', 'def', 'x'); INSERT INTO %[1]s.mixed VALUES ('k', 'a', 'a,b')`, d))
		}
		m := harness.New(t, source, target, harness.Config{Include: include, Build: harness.HoldPoints})
		m.Hold(harness.HoldCatchUp)
		p := m.Start()
		m.WaitReached(p, harness.HoldCatchUp)
		for _, d := range databases {
			testdb.Exec(t, source, fmt.Sprintf("INSERT INTO %[1]s.inherits VALUES (3, 'ghi'); UPDATE %[1]s.own SET v = 'ABC', w = 'D'; UPDATE %[1]s.mixed SET s = '', e = 'b'", d))
		}
		m.Release(harness.HoldCatchUp)
		p.RequireExit(time.Minute, 0)
		testdb.RequireEqual(t, source, target, databases)
	})
}
