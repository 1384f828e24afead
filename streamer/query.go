package streamer

import (
	"encoding/binary"
	"slices"

	"github.com/copydb/copydb/internal/table"
	"github.com/go-mysql-org/go-mysql/replication"
)

// query handles a statement in the log.
func (r *reader) query(h *replication.EventHeader, e *replication.QueryEvent) error {
	if err := r.ensure(h); err != nil {
		return err
	}
	g := r.group
	if g.idle {
		return r.end(h, false)
	}
	st := parseStatement(e.Query, readSettings(e.StatusVars), string(e.Schema))
	switch st.kind {
	case stBegin:
		g.open = true
		return nil
	case stCommit, stRollback:
		return r.end(h, st.kind == stRollback)
	case stSavepoint:
		r.savepoint(st.name)
		return nil
	case stRollbackTo:
		return r.rollbackTo(st.name)
	case stRelease:
		return nil // an unused mark does no harm
	case stXAStart:
		g.open, g.xa = true, true
		return nil
	case stXAEnd:
		return nil
	case stXACommit, stXARollback:
		return r.xaDecided(h, st)
	case stDML:
		if err := r.statementFormat(st); err != nil {
			return err
		}
	case stDDL, stUnknown:
		if err := r.definition(e, st); err != nil {
			return err
		}
	}
	if st.sequence != (table.Name{}) {
		r.ignored[st.sequence] = true
	}
	g.open = g.open || st.opens
	if g.open {
		return nil
	}
	return r.end(h, false)
}

// statementReason is what is the matter with such a change.
const statementReason = "a change that is logged as a statement, not as rows"

// statementFormat stops at a change that was logged as its statement, if it may
// have changed a selected table. What triggers and functions of tables that are
// not selected do elsewhere is not seen.
func (r *reader) statementFormat(st *statement) error {
	const next = "set binlog_format=ROW for every session and start over"
	wanted := r.tables.wanted(st.tables, r.group)
	unsure := st.unsure && !r.tables.allCovered(r.group)
	switch {
	case r.scan != nil:
		r.scan.statement(r, wanted, unsure)
	case len(wanted) > 0:
		return r.stop(wanted[0], "", statementReason, next)
	case unsure:
		return r.stop(table.Name{}, "", statementReason+", and may touch selected tables", next)
	}
	return nil
}

// queryExcerpt bounds the text of a statement in messages.
const queryExcerpt = 300

// definition notes a DDL of selected tables in its group.
func (r *reader) definition(e *replication.QueryEvent, st *statement) error {
	g := r.group
	if st.kind == stUnknown && g.open {
		return r.statementFormat(&statement{unsure: true}) // inside a transaction there is hardly any DDL
	}
	g.created = append(g.created, st.created...)
	if r.scan != nil {
		r.scan.definition(r, st)
		return nil
	}
	names := st.tables
	for _, db := range st.dropped {
		names = append(names, r.tables.inDatabase(db)...)
	}
	d := DDL{Tables: r.tables.wanted(names, g), Unknown: st.unsure && !r.tables.allCovered(g)}
	for _, db := range st.altered {
		if r.tables.listAt.Covers(g.gtid, g.inside) {
			continue // databases were read with the list of tables
		}
		ours := r.tables.inDatabase(db)
		if slices.ContainsFunc(ours, func(n table.Name) bool { return !r.tables.covered(n, g) }) {
			d.Databases = append(d.Databases, db)
		}
	}
	if len(d.Tables) == 0 && len(d.Databases) == 0 && !d.Unknown {
		return nil
	}
	d.Query = string(e.Query[:min(len(e.Query), queryExcerpt)])
	g.ddl = &d
	return nil
}

// load handles LOAD DATA in statement format. The library reads only its header.
func (r *reader) load(e *replication.BinlogEvent) error {
	if err := r.ensure(e.Header); err != nil {
		return err
	}
	const header = 4 + 4 + 1 + 2 + 2 + 4 + 4 + 4 + 1
	body := r.bodyOf(e)
	st := &statement{kind: stDML, unsure: true}
	if len(body) > header {
		schema, status := int(body[8]), int(binary.LittleEndian.Uint16(body[11:]))
		if rest := body[header:]; len(rest) > status+schema {
			st = parseStatement(rest[status+schema+1:], readSettings(rest[:status]), string(rest[status:status+schema]))
		}
	}
	if st.kind != stDML {
		st.unsure = true
	}
	return r.statementFormat(st)
}
