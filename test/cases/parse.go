package cases

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/copydb/copydb/test/servers"
)

// Load reads all cases of a folder, in the order of their file names.
func Load(dir fs.FS) ([]Case, error) {
	names, err := fs.Glob(dir, "*.md")
	if err != nil {
		return nil, err
	}
	var all []Case
	seen := map[int]string{}
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		c, err := Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if other := seen[c.Number]; other != "" {
			return nil, fmt.Errorf("%s: number %d is that of %s", name, c.Number, other)
		}
		seen[c.Number] = name
		all = append(all, c)
	}
	return all, nil
}

// Parse reads one case. What is in the file and means nothing is an error.
func Parse(text string) (Case, error) {
	p := parser{}
	for n, line := range strings.Split(text, "\n") {
		if err := p.line(line); err != nil {
			return Case{}, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return p.end()
}

// parser reads a file line by line.
type parser struct {
	c     Case
	base  SQL
	fence string // the kind of block that the line is in
	part  string // of a block of sql
	seen  map[string]bool
}

var title = regexp.MustCompile(`^# (\d+)\. (.+)$`)

func (p *parser) line(line string) error {
	switch {
	case p.fence == "" && strings.HasPrefix(line, "```"):
		p.fence, p.part = strings.TrimPrefix(line, "```"), ""
		p.seen = map[string]bool{}
		return p.begin()
	case p.fence != "" && line == "```":
		p.fence = ""
	case p.fence == "sql":
		return p.sql(line)
	case p.fence == "run":
		return p.directive(line)
	case strings.HasPrefix(line, "# "):
		return p.title(line)
	case strings.HasPrefix(line, "## "):
		p.c.Runs = append(p.c.Runs, Run{Name: strings.TrimPrefix(line, "## "), SQL: p.base,
			Moment: Moment{When: AtStart}, Kinds: DefaultKinds(), Within: 30 * time.Second})
	}
	return nil
}

func (p *parser) title(line string) error {
	m := title.FindStringSubmatch(line)
	if m == nil || p.c.Title != "" {
		return errors.New(`want one heading "# NUMBER. Title"`)
	}
	p.c.Number, _ = strconv.Atoi(m[1]) // digits only
	p.c.Title = m[2]
	return nil
}

func (p *parser) begin() error {
	switch {
	case p.fence != "sql" && p.fence != "run":
		return fmt.Errorf("a block of %q means nothing here", p.fence)
	case p.fence == "run" && len(p.c.Runs) == 0:
		return errors.New(`a block of directives belongs under a heading "## name"`)
	}
	return nil
}

func (p *parser) run() *Run { return &p.c.Runs[len(p.c.Runs)-1] }

// sql takes a line of a block of sql. A part replaces the one of the file.
func (p *parser) sql(line string) error {
	s := &p.base
	if len(p.c.Runs) > 0 {
		s = &p.run().SQL
	}
	parts := map[string]*string{"source": &s.Source, "target": &s.Target, "during": &s.During, "mend": &s.Mend, "check": &s.Check}
	if want, ok := strings.CutPrefix(line, "-- => "); ok && p.part == "check" {
		s.Want = append(s.Want, want)
		return nil
	}
	if name, ok := strings.CutPrefix(line, "-- "); ok && parts[name] != nil {
		if p.seen[name] {
			return fmt.Errorf("part %s is there twice", name)
		}
		p.seen[name], p.part = true, name
		*parts[name] = ""
		if name == "check" {
			s.Want = nil
		}
		return nil
	}
	if p.part == "" {
		return errors.New("SQL before the name of its part")
	}
	*parts[p.part] += line + "\n"
	return nil
}

func (p *parser) directive(line string) error {
	if strings.TrimSpace(line) == "" {
		return nil
	}
	name, value, ok := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	if !ok || value == "" {
		return fmt.Errorf("%q is no directive with a value", line)
	}
	if p.seen[name] && name != "set" && name != "env" {
		return fmt.Errorf("%s is there twice", name)
	}
	p.seen[name] = true
	if err := p.run().set(name, value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// set carries a directive out.
func (r *Run) set(name, value string) (err error) {
	switch name {
	case "kinds":
		r.Kinds, err = kinds(value)
	case "moment":
		r.Moment, err = moment(strings.Fields(value))
	case "stop":
		r.Stop, err = signal(value)
	case "stop_at_each":
		r.StopAtEach, err = value, oneOf(value, "chunk_read", "chunk_written")
	case "stops":
		r.Stops, err = strconv.Atoi(value)
	case "chunk_rows":
		r.ChunkRows, err = strconv.Atoi(value)
	case "cut_rows":
		r.CutRows, err = strconv.Atoi(value)
	case "include":
		r.Include = strings.Fields(value)
	case "set":
		r.Set = append(r.Set, value)
	case "env":
		r.Env = append(r.Env, value)
	case "source_args":
		r.SourceArgs = strings.Fields(value)
	case "target_args":
		r.TargetArgs = strings.Fields(value)
	case "user":
		r.User, r.Password, _ = strings.Cut(value, " ")
	case "exit":
		r.Exit, err = strconv.Atoi(value)
	case "message":
		r.Message, err = regexp.Compile(value)
	case "target":
		r.Untouched, err = true, oneOf(value, "untouched")
	case "within":
		r.Within, err = time.ParseDuration(value)
	case "script":
		r.Script = value
	case "release":
		r.Release, err = true, oneOf(value, "yes")
	default:
		return errors.New("there is no such directive")
	}
	return err
}

func kinds(value string) ([]servers.Kind, error) {
	if value == "all" {
		return servers.Kinds(), nil
	}
	var all []servers.Kind
	for _, name := range strings.Fields(value) {
		k, err := servers.ParseKind(name)
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

func moment(words []string) (Moment, error) {
	m := Moment{When: When(words[0]), Arrival: 1}
	switch m.When {
	case AtRead, AtWritten, AtPoint:
		if len(words) < 2 {
			return m, fmt.Errorf("%s needs a name", m.When)
		}
		m.Name, words = words[1], words[1:]
	case AtStart, AtPositions, AtCatchUp, AtNever:
	default:
		return m, fmt.Errorf("%q is none", m.When)
	}
	if len(words) > 2 {
		return m, fmt.Errorf("%q is too much", words[2:])
	}
	if len(words) == 2 {
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 1 {
			return m, fmt.Errorf("%q is no number of an arrival", words[1])
		}
		m.Arrival = n
	}
	return m, nil
}

func signal(name string) (syscall.Signal, error) {
	s, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[name]
	if !ok {
		return 0, fmt.Errorf("%q is none of INT, TERM, KILL", name)
	}
	return s, nil
}

func oneOf(value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", value, strings.Join(allowed, ", "))
}

// end looks at the whole.
func (p *parser) end() (Case, error) {
	switch {
	case p.fence != "":
		return p.c, fmt.Errorf("the block of %s has no end", p.fence)
	case p.c.Title == "":
		return p.c, errors.New("there is no title")
	case len(p.c.Runs) == 0:
		return p.c, errors.New("there is no run")
	}
	names := map[string]bool{}
	for i := range p.c.Runs {
		r := &p.c.Runs[i]
		if names[r.Name] {
			return p.c, fmt.Errorf("run %q is there twice", r.Name)
		}
		names[r.Name] = true
		if err := r.complete(); err != nil {
			return p.c, fmt.Errorf("run %q: %w", r.Name, err)
		}
	}
	return p.c, nil
}

// complete refuses a run that would test less than it says.
func (r *Run) complete() error {
	switch {
	case len(r.SQL.Databases()) == 0:
		return errors.New("its part source makes no database")
	case strings.TrimSpace(r.SQL.Check) == "" || len(r.SQL.Want) == 0:
		return errors.New("it has no part check with lines to expect")
	case r.StopAtEach != "" && (r.Stop == 0 || r.Stops == 0):
		return errors.New("stop_at_each needs stop and stops")
	case r.Stop != 0 && r.StopAtEach == "" && r.Moment.Point() == "":
		return errors.New("stop needs a moment with a hold point")
	case r.Untouched && r.Exit == 0:
		return errors.New("an untouched target needs an exit code")
	case r.Moment.When == AtNever && r.Exit != 0:
		return errors.New("a run until never has no exit code of its own")
	}
	if len(r.Include) == 0 {
		for _, d := range r.SQL.Databases() {
			r.Include = append(r.Include, d+".*")
		}
	}
	return nil
}
