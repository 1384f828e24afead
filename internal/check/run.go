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
	slow  bool // takes time with many tables
}

// steps lists all checks in the order in which findings are shown; a later one
// may use the facts of an earlier one.
var steps = []step{
	{name: "server families and versions", needs: needSource, run: checkSourceVersion},
	{name: "server families and versions", needs: needTarget, run: checkTargetVersion},
	{name: "that source and target differ", needs: needBoth, run: checkPair},
	{name: "names and case", needs: needBoth, run: checkNameCase},
	{name: "rights on the source", needs: needSource, run: checkSourceRights},
	{name: "binary log settings", needs: needSource, run: checkBinlog},
	{name: "binary log filters", needs: needSource, run: checkBinlogEnd},
	{name: "binary log expiry", needs: needSource, run: checkExpiry},
	{name: "the source's own replication", needs: needSource, run: checkReplicaSource},
	{name: "prepared XA transactions", needs: needSource, run: checkXA},
	{name: "the way to a start position", needs: needSource, run: checkRung},
	{name: "the server id", needs: needSource, run: checkServerID},
	{name: "the stop point", needs: needSource, run: checkUntil},
	{name: "clocks", needs: needSource, run: checkClock},
	{name: "the selection", needs: needSource, run: checkSelection, slow: true},
	{name: "names that the target cannot tell apart", needs: needTarget | needTables, run: checkFolding},
	{name: "objects that are left out", needs: needSource | needTables, run: checkLeftOut},
	{name: "unlogged cascades", needs: needSource | needTables, run: checkCascades},
	{name: "keys", needs: needTables, run: checkKeys},
	{name: "columns", needs: needTables, run: checkColumns},
	{name: "JSON documents", needs: needTables, run: checkJSON},
	{name: "expressions", needs: needTables, run: checkExpressions},
	{name: "foreign keys", needs: needSource | needTables, run: checkForeign},
	{name: "whether the target takes writes", needs: needTarget, run: checkWritable},
	{name: "rights on the target", needs: needTarget, run: checkTargetRights},
	{name: "the target's binary log", needs: needTarget, run: checkLogBin},
	{name: "durability", needs: needSource | needTarget, run: checkDurability},
	{name: "packet sizes", needs: needBoth, run: checkPacket},
	{name: "the largest values", needs: needTarget | needTables, run: checkLargest},
	{name: "how long the copy takes", needs: needSource | needTables, run: checkForecast},
	{name: "disk space", needs: needTarget | needTables, run: checkDisk},
	{name: "the clocks of both servers", needs: needBoth, run: checkTargetClock},
	{name: "what earlier runs left", needs: needBoth | needTables, run: checkLeftovers},
	{name: "what tables need beside them", needs: needTarget | needTables, run: checkOutside},
	{name: "the load method", needs: needTarget, run: checkLoadMethod},
	{name: "locks of AUTO_INCREMENT", needs: needTarget | needTables, run: checkAutoIncrementLock},
	{name: "the target's own replication", needs: needTarget, run: checkReplicaTarget},
	{name: "replicas of the target", needs: needTarget, run: checkTargetReplicas, slow: true},
	{name: "loading without a redo log", needs: needTarget, run: checkFastLoad},
	{name: "primary keys that the target demands", needs: needTarget | needTables, run: checkForcedKeys},
	{name: "databases on the target", needs: needTarget | needTables, run: checkDatabases},
	{name: "existing tables", needs: needTarget | needTables, run: checkExisting},
	{name: "triggers on the target", needs: needTarget | needTables, run: checkTriggers},
	{name: "storage engines", needs: needTarget | needTables, run: checkEngines},
	{name: "collations", needs: needTarget | needTables, run: checkCollations},
}

// runner is one preflight under way.
type runner struct {
	in             *Input
	source, target *side
	raw            *mysqlconn.Session // on the source
	found          []Finding
	have           need
	end            map[string]string // the row of the binary log status
	made           map[object]bool   // see created; nil before it is asked
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
	if s.slow {
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
	r.source.close()
	r.target.close()
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
