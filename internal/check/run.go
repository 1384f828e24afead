package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
)

const (
	stepLimit = time.Minute      // for one check
	loadLimit = 10 * time.Minute // for reading the structure of all tables
)

// need is what a check cannot do without.
type need int

const (
	needSource need = 1 << iota
	needTarget
	needTables
	needBoth = needSource | needTarget
)

// step is one check. Its name is for messages about the check itself.
type step struct {
	name  string
	needs need
	run   func(context.Context, *runner) error
}

// steps lists all checks in the order in which findings are shown; a later one
// may use the facts of an earlier one.
var steps = []step{
	{"server families and versions", needSource, checkSourceVersion},
	{"server families and versions", needTarget, checkTargetVersion},
	{"that source and target differ", needBoth, checkPair},
	{"names and case", needBoth, checkNameCase},
	{"rights on the source", needSource, checkSourceRights},
	{"binary log settings", needSource, checkBinlog},
	{"binary log filters", needSource, checkBinlogEnd},
	{"binary log expiry", needSource, checkExpiry},
	{"the source's own replication", needSource, checkReplicaSource},
	{"prepared XA transactions", needSource, checkXA},
	{"the way to a start position", needSource, checkRung},
	{"the server id", needSource, checkServerID},
	{"the stop point", needSource, checkUntil},
	{"clocks", needSource, checkClock},
	{"the selection", needSource, checkSelection},
	{"objects that are left out", needSource | needTables, checkLeftOut},
	{"keys", needTables, checkKeys},
	{"columns", needTables, checkColumns},
	{"expressions", needTables, checkExpressions},
	{"foreign keys", needSource | needTables, checkForeign},
	{"whether the target takes writes", needTarget, checkWritable},
	{"rights on the target", needTarget, checkTargetRights},
	{"the target's binary log", needTarget, checkLogBin},
	{"durability", needSource | needTarget, checkDurability},
	{"packet sizes", needBoth, checkPacket},
	{"the load method", needTarget, checkLoadMethod},
	{"the target's own replication", needTarget, checkReplicaTarget},
	{"primary keys that the target demands", needTarget | needTables, checkForcedKeys},
	{"databases on the target", needTarget | needTables, checkDatabases},
	{"existing tables", needTarget | needTables, checkExisting},
	{"triggers on the target", needTarget | needTables, checkTriggers},
	{"storage engines", needTarget | needTables, checkEngines},
	{"collations", needTarget | needTables, checkCollations},
}

// runner is one preflight under way.
type runner struct {
	in             *Input
	source, target *side
	raw            *mysqlconn.Session // on the source
	found          []Finding
	have           need
	end            map[string]string // the row of the binary log status
}

// Run asks both servers everything that a copy needs and returns all findings.
// What a server refuses to tell is a finding, too; an error means that the
// checks could not be done, as when a connection breaks in the middle.
func Run(ctx context.Context, in *Input) ([]Finding, error) {
	if in.Select == nil {
		return nil, errors.New("preflight needs a selection")
	}
	in.Facts = Facts{}
	r := &runner{in: in}
	defer r.close()
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	for _, s := range steps {
		if s.needs&^r.have != 0 {
			continue
		}
		if err := r.step(ctx, s); err != nil {
			return nil, err
		}
	}
	return capped(r.found), nil
}

func (r *runner) step(ctx context.Context, s step) error {
	limit := stepLimit
	if s.needs&needTables == 0 && s.name == "the selection" {
		limit = loadLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	err := s.run(ctx, r)
	switch {
	case err == nil:
		return nil
	case mysqlconn.IsAccessDenied(err):
		r.warn("not_checked", "", fmt.Sprintf("could not check %s: %v", s.name, err),
			"see --print-grants for the privileges that the checks and the copy need")
		return nil
	case context.Cause(ctx) != nil && !errors.Is(err, context.Cause(ctx)):
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return fmt.Errorf("check %s: %w", s.name, err)
}

func (r *runner) close() {
	for _, s := range []*side{r.source, r.target} {
		if s != nil && s.conn != nil {
			s.conn.Close()
		}
	}
	if r.raw != nil {
		r.raw.Close()
	}
}

func (r *runner) add(severity Severity, id, object, message, fix string) {
	r.found = append(r.found, Finding{ID: id, Severity: severity, Object: object, Message: message, Fix: fix})
}

func (r *runner) fail(id, object, message, fix string) {
	r.add(SeverityError, id, object, message, fix)
}

func (r *runner) warn(id, object, message, fix string) {
	r.add(SeverityWarning, id, object, message, fix)
}

func (r *runner) info(id, object, message, fix string) {
	r.add(SeverityInfo, id, object, message, fix)
}

// maxAlike is how many findings of one kind are shown one by one.
const maxAlike = 20

// capped replaces what is too much of one kind by a finding with the number and
// the first names.
func capped(all []Finding) []Finding {
	type kind struct {
		id       string
		severity Severity
	}
	seen := map[kind]int{}
	rest := map[kind][]string{}
	out := make([]Finding, 0, len(all))
	for _, f := range all {
		k := kind{f.ID, f.Severity}
		if seen[k]++; seen[k] > maxAlike {
			rest[k] = append(rest[k], f.Object)
			continue
		}
		out = append(out, f)
	}
	for i := len(out) - 1; i >= 0; i-- {
		k := kind{out[i].ID, out[i].Severity}
		names := rest[k]
		if names == nil {
			continue
		}
		delete(rest, k)
		out = slices.Insert(out, i+1, Finding{ID: k.id, Severity: k.severity,
			Message: fmt.Sprintf("the same holds for %d more: %s", len(names), list(names)), Fix: out[i].Fix})
	}
	return out
}

// list writes names for a message, the first few of many.
func list(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
