package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the generated documents")

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k.Path] || k.Doc == "" || strings.Contains(k.Doc, "\n") || k.Kind == "" {
			t.Errorf("%s: twice, or without a doc line or a kind", k.Path)
		}
		seen[k.Path] = true
		if v, err := k.decode(k.defaultNode()); err != nil && !k.Required {
			t.Errorf("%s: default %s: %v (%v)", k.Path, k.Default, err, v)
		}
	}
	for _, g := range groups {
		if at := find(g.path); at == nil || at.key != nil {
			t.Errorf("group %s does not exist", g.path)
		}
	}
}

func TestMarkdownIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "configuration.md")
	if *update {
		if err := os.WriteFile(path, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != Markdown() {
		t.Errorf("docs/configuration.md is not what the table of keys says (%v); go test ./copydb/config -update", err)
	}
}

// The sample loads as it is, and also with everything in it that is commented
// out but for the keys that exclude each other.
func TestSample(t *testing.T) {
	env := func(string) (string, bool) { return "x", true }
	l, err := Load(Input{Name: "sample", File: strings.NewReader(Sample()), LookupEnv: env})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Source.Host, want.Target.Host = "source.example.com", "target.example.com"
	want.Source.User, want.Target.User = "copydb", "copydb"
	want.Source.Password, want.Target.Password = "x", "x"
	want.Tables.Include = []string{"shop.*", "crm.orders"}
	if d := cmp.Diff(want, l.Config); d != "" {
		t.Error(d)
	}

	var lines []string
	for line := range strings.Lines(Sample()) {
		if strings.Contains(line, "password: ") || strings.Contains(line, "password_file: ") {
			continue
		}
		if before, after, ok := strings.Cut(line, "# "); ok && strings.TrimSpace(before) == "" && strings.Contains(after, ": ") && strings.Contains(after, "  # ") {
			line = before + after
		}
		lines = append(lines, line)
	}
	if _, err := Load(Input{Name: "sample", File: strings.NewReader(strings.Join(lines, "")), LookupEnv: env}); err != nil {
		t.Error(err)
	}
	for _, k := range Keys() {
		if !strings.Contains(Sample(), leaf(k.Path)+": ") {
			t.Errorf("the sample lacks %s", k.Path)
		}
	}
}

func TestSecretIsNotShown(t *testing.T) {
	c := Default()
	c.Source.Password = "hunter2"
	j, err := json.Marshal(c)
	y, err2 := yaml.Marshal(c)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	var logs strings.Builder
	for _, h := range []slog.Handler{slog.NewTextHandler(&logs, nil), slog.NewJSONHandler(&logs, nil)} {
		slog.New(h).Info("x", "c", c, "p", c.Source.Password, "s", c.Source)
	}
	p := c.Source.Password
	for _, out := range []string{string(j), string(y), logs.String(),
		fmt.Sprintf("%v %+v %#v %s %q %x %d", c, c, c, p, p, p, p), fmt.Sprint(&c, p), fmt.Sprintf("%#v %v", c.Source, []Secret{p})} {
		if strings.Contains(out, "hunter2") || strings.Contains(out, "68756e74657232") {
			t.Errorf("shown: %s", out)
		}
	}
	if p.Reveal() != "hunter2" || Secret("").String() != "" {
		t.Error("Reveal or String")
	}
}

// No mistake in a file or in a setting shows the password that it holds.
func TestErrorsHoldNoSecret(t *testing.T) {
	const secret = "hunter2"
	files := []string{
		"source: {password: *hunter2}", "source: {password: !hunter2 x}", "source: {password: [hunter2]}", "source: {password: {a: hunter2}}",
		"source: {password: &hunter2 }", "source: {pasword: hunter2}", "source: {password:hunter2}", "source:\n  password:hunter2\n  user: x",
		"source:\n  password hunter2\n", "source: hunter2", "password: hunter2", "source: {password_env: hunter2}",
		"source: {password: a, password: hunter2}", "source: {password: hunter2, password_env: X}", "source: {password: 'hunter2}", "source: {password: \"hunter2\\q\"}",
		"source: {password: @hunter2}", "source: {password: hunter2: x}", "- hunter2", "hunter2", "source: {password: %hunter2}",
		"source: {password: >hunter2}", "source: {password: |hunter2}", "source:\n  password: hunter2\n user: x", "source: {password: `hunter2}",
	}
	for _, f := range files {
		_, err := load(t, f)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", f, err)
		}
	}
	for _, set := range []string{"source.password=hunter2", "source.password=*hunter2", "source.pasword=hunter2", "source={password: hunter2, x: 1}",
		"source=hunter2", "source.password:hunter2=", "source.password=[hunter2"} {
		s, err := ParseSet(set, "--set")
		if err == nil {
			_, err = Load(Input{Flags: []Setting{s}})
		}
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", set, err)
		}
	}
	if _, err := ParseSet("hunter2", "--set"); err == nil || strings.Contains(err.Error(), secret) {
		t.Error(err)
	}
}

func TestParseURL(t *testing.T) {
	c := func(raw string) (Server, error) {
		set, err := ParseURL("source", raw, "--source")
		if err != nil {
			return Server{}, err
		}
		l, err := Load(Input{Name: "f", File: strings.NewReader("source: {socket: /old, user: old}\ntarget: {host: b, user: v}\ntables: {include: [a]}"), Flags: set})
		if err != nil {
			return Server{}, err
		}
		return l.Config.Source.Server, nil
	}
	base := Default().Source.Server
	with := func(change func(*Server)) Server { s := base; change(&s); return s }
	for raw, want := range map[string]Server{
		"mysql://u@h":                         with(func(s *Server) { s.User, s.Host = "u", "h" }),
		"mysql://u@h:33/":                     with(func(s *Server) { s.User, s.Host, s.Port = "u", "h", 33 }),
		"mysql://h":                           with(func(s *Server) { s.User, s.Host = "old", "h" }),
		"mysql://a%40b@[::1]:33?tls=required": with(func(s *Server) { s.User, s.Host, s.Port, s.TLS.Mode = "a@b", "::1", 33, "required" }),
		"mysql://u@localhost/?socket=/s.sock": with(func(s *Server) { s.User, s.Socket = "u", "/s.sock" }),
		"mysql://u@/?socket=/s.sock":          with(func(s *Server) { s.User, s.Socket = "u", "/s.sock" }),
	} {
		got, err := c(raw)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", raw, err, d)
		}
	}
	for _, raw := range []string{"mysql://u:hunter2@h", "mysql://u:hunter2#@h", "mysql://u:12/hunter2@h", "mysql://u:12?hunter2@h", "mysql://u:12?hunter2;@h",
		"hunter2", "mysql://", "http://u@h", "mysql://u@h/hunter2", "mysql://u@h/?hunter2=1", "mysql://u@h?tls=a&tls=hunter2", "mysql://u@h#hunter2", "mysql:u@h", ":hunter2"} {
		if _, err := c(raw); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func parseUntil(text string) (Until, error) {
	n, err := parseValue(text)
	if err != nil {
		return Until{}, err
	}
	return decodeUntil(n)
}

func TestParseUntil(t *testing.T) {
	for text, want := range map[string]Until{
		"caught_up":                    {Word: UntilCaughtUp},
		"never":                        {Word: UntilNever},
		"gtid:2001-1-5":                {GTID: "2001-1-5"},
		"gtid:a:1-5,b:1":               {GTID: "a:1-5,b:1"},
		"file:binlog.000001:4":         {File: "binlog.000001", Pos: 4},
		"{gtid: 2001-1-5}":             {GTID: "2001-1-5"},
		"{file: a:b, pos: 4294967300}": {File: "a:b", Pos: 4294967300},
	} {
		got, err := parseUntil(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "soon", "gtid:", "file:a", "file::4", "file:a:x", "file:a:3", "{file: a}", "{pos: 4}", "{gtid: a, gtid: b}", "{gtid: [a]}", "{", "cutover", "{gtid: }"} {
		if got, err := parseUntil(text); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestSelectionDigest(t *testing.T) {
	digest := func(change func(*Config)) string { c := Default(); change(&c); return c.SelectionDigest() }
	base := digest(func(c *Config) { c.Tables.Include = []string{"a", "b"} })
	if !strings.HasPrefix(base, "sha256:") || len(base) != len("sha256:")+64 {
		t.Error(base)
	}
	same := digest(func(c *Config) {
		c.Tables.Include = []string{"b", "a", "b"}
		c.StopTimeout = 1
		c.Tables.Exclude = []string{}
	})
	if same != base {
		t.Error("order, repetition and other keys must not matter")
	}
	for i, change := range []func(*Config){
		func(c *Config) { c.Tables.Include = []string{"a"} },
		func(c *Config) { c.Tables.Include = []string{"a", "b"}; c.Tables.Exclude = []string{"c"} },
		func(c *Config) { c.Tables.Include = []string{"a", "b"}; c.Schema.Objects = nil },
	} {
		if digest(change) == base {
			t.Errorf("change %d does not show", i)
		}
	}
}
