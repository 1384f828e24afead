package cases

import (
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/copydb/copydb/test/servers"
)

// Case is one report.
type Case struct {
	Number int
	Title  string
	Runs   []Run
}

// SQL is what a case runs on the servers. Parts that are empty are left out.
type SQL struct {
	Source, Target, During, Mend, Check string
	Want                                []string // the lines that Check prints
}

// Run is one way to run a case. The comments name the directives.
type Run struct {
	Name string
	SQL  SQL

	// kinds: the kinds of servers, separated by blanks; without it those of
	// DefaultKinds.
	Kinds []servers.Kind
	// moment: when During is run; see Moment.
	Moment Moment
	// stop: INT, TERM or KILL: the signal that ends the run at the moment.
	// During is then run while nothing runs, and the run goes on afterwards.
	Stop syscall.Signal
	// stop_at_each: chunk_read or chunk_written: the run is ended by Stop at
	// that point of each chunk, and goes on, until it comes through.
	StopAtEach string
	// stops: how often StopAtEach must have stopped it at least.
	Stops int
	// chunk_rows: the most rows of a chunk; 0 leaves it to the command.
	ChunkRows int
	// cut_rows: how many rows must be left of a table for a second worker to
	// take half of them; 0 leaves it to the command, which cuts no small table.
	CutRows int
	// include: patterns, separated by blanks; without it all databases that
	// the part source makes.
	Include []string
	// set: a setting for all calls, as in "catch_up.ddl=ignore"; may be repeated.
	Set []string
	// env: a variable for all calls, as in "TZ=America/New_York"; may be repeated.
	Env []string
	// source_args, target_args: options of servers of the run's own.
	SourceArgs, TargetArgs []string
	// user: name and password of an account, made by the SQL, that stands in
	// for the one with exactly the privileges it needs.
	User, Password string
	// exit: the exit code of the first call; without it 0. After another one
	// the run ends, unless there is a part mend: then it goes on.
	Exit int
	// message: a regular expression that stderr of the first call must match.
	Message *regexp.Regexp
	// target: untouched: the first call made nothing on the target and no state.
	Untouched bool
	// within: how long each call may take.
	Within time.Duration
	// script: the function that does it all.
	Script string
	// release: yes: also run with the binary that users get, at moment never.
	Release bool
}

// When names the kinds of moments.
type When string

// The moments at which the part during is run. At every one but AtNever the
// process stands still at a hold point.
const (
	AtStart     When = "start"       // before the command starts
	AtPositions      = When("1")     // start positions are kept, no row is read
	AtRead           = When("2")     // "2 TABLE [N]": the N-th chunk of the table is read, not written
	AtWritten        = When("3")     // "3 TABLE [N]": the N-th chunk of the table is written
	AtCatchUp        = When("4")     // all chunks are done, no event is read
	AtNever          = When("never") // catch-up runs with `until: never`
	AtPoint          = When("at")    // "at POINT [N]": at any other hold point
)

// Moment is one of them, with what it needs.
type Moment struct {
	When    When
	Name    string // the table, or the point
	Arrival int    // which arrival there, from 1
}

// Point returns the hold point of the moment, empty if it has none.
func (m Moment) Point() string {
	switch m.When {
	case AtPositions:
		return "start_taken"
	case AtRead:
		return "chunk_read:" + m.Name
	case AtWritten:
		return "chunk_written:" + m.Name
	case AtCatchUp:
		return "catch_up"
	case AtPoint:
		return m.Name
	}
	return ""
}

// DefaultKinds are the kinds that a run takes without a directive: one of each
// family. The two others are named where positions or the version matter.
func DefaultKinds() []servers.Kind {
	return []servers.Kind{servers.MySQL, servers.MariaDB118}
}

// On tells whether the run is one for the kind.
func (r *Run) On(kind servers.Kind) bool { return slices.Contains(r.Kinds, kind) }

var (
	createDatabase = regexp.MustCompile(`(?i)CREATE\s+DATABASE\s+(\w+)`)
	createTable    = regexp.MustCompile(`(?i)CREATE\s+TABLE\s+(\w+\.\w+)`)
)

// Databases returns the databases that the case makes.
func (s *SQL) Databases() []string { return made(createDatabase, s.Source) }

// Tables returns the tables that the case makes on the source, as
// "database.table".
func (s *SQL) Tables() []string { return made(createTable, s.Source) }

func made(what *regexp.Regexp, sql string) []string {
	var names []string
	for _, m := range what.FindAllStringSubmatch(sql, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// Output returns what the part check prints, as one text.
func (s *SQL) Output() string { return strings.Join(s.Want, "\n") }
