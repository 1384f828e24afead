package streamer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/copydb/copydb/internal/table"
)

// stKind is what a statement of the log is to a reader of rows.
type stKind uint8

const (
	stUnknown stKind = iota // may be anything
	stPass                  // touches no table's rows or structure
	stBegin
	stCommit
	stRollback
	stSavepoint
	stRollbackTo
	stRelease
	stXAStart
	stXAEnd
	stXACommit
	stXARollback
	stDDL
	stDML // changes rows
)

// statement is what can be told of a statement without parsing all of it.
type statement struct {
	kind   stKind
	name   string       // of a savepoint or an XID
	tables []table.Name // that it changes
	unsure bool         // it may change others, too

	created  []table.Name // whose rows may follow in the same group
	sequence table.Name   // that it makes
	dropped  []string     // databases
	altered  []string     // databases whose defaults change
	opens    bool         // a transaction that goes on behind it
}

// parser reads one statement. One token is read ahead.
type parser struct {
	scanner
	tok    token
	schema string
	st     statement
}

// parseStatement reads what a statement of the log does. schema is its default
// database.
func parseStatement(text []byte, set settings, schema string) *statement {
	p := &parser{scanner: scanner{text: string(text), set: set}, schema: schema}
	p.advance()
	p.statement()
	if p.st.kind == stUnknown {
		p.st.unsure = true
	}
	if foreign(text, set.client) && (p.st.kind == stDDL || p.st.kind == stDML) {
		p.st.unsure = true
	}
	return &p.st
}

// foreign reports names that may be written in another way than ours: the text
// is in the character set of its client.
func foreign(text []byte, client uint16) bool {
	for _, c := range text {
		if c >= 0x80 {
			return !utf8.Valid(text) || client != 0 && !isUTF8(client)
		}
	}
	return false
}

// isUTF8 knows the collation ids of utf8mb3, utf8mb4 and binary.
func isUTF8(id uint16) bool {
	switch {
	case id == 33, id == 45, id == 46, id == 63, id == 76, id == 83, id >= 192 && id <= 247, id >= 255 && id <= 323:
		return true
	case id >= 576 && id <= 610, id >= 1057 && id <= 1302, id >= 2048 && id <= 4095: // MariaDB's
		return true
	}
	return false
}

func (p *parser) advance() token {
	was := p.tok
	p.tok = p.scanner.next()
	return was
}

// accept passes over one of words, if it stands there.
func (p *parser) accept(words ...string) bool {
	for _, w := range words {
		if p.tok.is(w) {
			p.advance()
			return true
		}
	}
	return false
}

// acceptAll passes over words where all stand there one after the other.
func (p *parser) acceptAll(words ...string) bool {
	was := *p
	for _, w := range words {
		if !p.accept(w) {
			p.scanner, p.tok = was.scanner, was.tok
			return false
		}
	}
	return true
}

// seek goes behind the next word outside parentheses.
func (p *parser) seek(word string) bool {
	for depth := 0; p.tok.kind != tokEnd; {
		if depth == 0 && p.accept(word) {
			return true
		}
		switch {
		case p.tok.is("("):
			depth++
		case p.tok.is(")"):
			depth--
		}
		p.advance()
	}
	return false
}

// tableName reads a name with or without its database.
func (p *parser) tableName() (table.Name, bool) {
	if p.tok.kind != tokWord && p.tok.kind != tokName {
		p.st.unsure = true
		return table.Name{}, false
	}
	n := table.Name{Database: p.schema, Table: p.advance().text}
	if p.accept(".") {
		if p.tok.kind != tokWord && p.tok.kind != tokName {
			p.st.unsure = true
			return table.Name{}, false
		}
		n.Database, n.Table = n.Table, p.advance().text
	}
	if n.Database == "" {
		p.st.unsure = true
	}
	return n, true
}

func (p *parser) addTable() table.Name {
	n, ok := p.tableName()
	if ok {
		p.st.tables = append(p.st.tables, n)
	}
	return n
}

func (p *parser) ifExists() { _ = p.acceptAll("IF", "NOT", "EXISTS") || p.acceptAll("IF", "EXISTS") }

// passes are the first words of statements that touch no table.
var passes = map[string]bool{"GRANT": true, "REVOKE": true, "FLUSH": true, "INSTALL": true, "UNINSTALL": true,
	"CHANGE": true, "RESET": true, "PURGE": true, "KILL": true, "LOCK": true, "UNLOCK": true, "USE": true,
	"SHUTDOWN": true, "RESTART": true, "CLONE": true, "PREPARE": true, "DEALLOCATE": true, "SHOW": true}

func (p *parser) statement() {
	if p.tok.kind == tokEnd {
		p.st.kind = stPass // only a comment, as in place of an event of another version
		return
	}
	first := p.advance()
	if first.kind != tokWord {
		return
	}
	word := strings.ToUpper(first.text)
	if passes[word] {
		p.st.kind = stPass
		return
	}
	switch word {
	case "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "START", "XA":
		p.transaction(word)
	case "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "IMPORT":
		p.definition(word)
	case "ANALYZE", "OPTIMIZE", "REPAIR", "CHECK":
		p.accept("LOCAL", "NO_WRITE_TO_BINLOG")
		if p.tok.is("TABLE") || p.tok.is("TABLES") {
			p.st.kind = stPass
		}
	case "SET":
		p.setStatement()
	case "INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "CALL", "SELECT", "DO", "EXECUTE", "HANDLER", "VALUES":
		p.change(word)
	}
}

// setStatement reads SET STATEMENT … FOR statement; any other SET touches no
// table.
func (p *parser) setStatement() {
	if !p.accept("STATEMENT") {
		p.st.kind = stPass
		return
	}
	if p.seek("FOR") {
		p.statement()
	}
}

func (p *parser) transaction(word string) {
	switch word {
	case "BEGIN":
		p.st.kind = stBegin
	case "START":
		if p.accept("TRANSACTION") {
			p.st.kind = stBegin
		}
	case "COMMIT":
		p.st.kind = stCommit
	case "ROLLBACK":
		p.accept("WORK")
		if p.st.kind = stRollback; p.accept("TO") {
			p.accept("SAVEPOINT")
			p.st.kind, p.st.name = stRollbackTo, p.tok.text
		}
	case "SAVEPOINT":
		p.st.kind, p.st.name = stSavepoint, p.tok.text
	case "RELEASE":
		p.st.kind = stRelease
	case "XA":
		p.xa()
	}
}

func (p *parser) xa() {
	kinds := map[string]stKind{"START": stXAStart, "BEGIN": stXAStart, "END": stXAEnd, "COMMIT": stXACommit, "ROLLBACK": stXARollback}
	kind, ok := kinds[strings.ToUpper(p.advance().text)]
	if !ok {
		return
	}
	p.st.kind = kind
	var parts []string
	for p.tok.kind != tokEnd && len(parts) < 3 {
		switch t := p.advance(); {
		case t.is(","), t.is("X"):
		default:
			parts = append(parts, strings.ToLower(t.text))
		}
	}
	p.st.name = strings.Join(parts, ",")
}

// xidText writes an XID as the servers write it into their statements.
func xidText(format uint32, gtrid, bqual []byte) string {
	return fmt.Sprintf("%x,%x,%d", gtrid, bqual, format)
}

// change reads which table a statement that changes rows is about.
func (p *parser) change(word string) {
	p.st.kind = stDML
	switch word {
	case "INSERT", "REPLACE":
		for p.accept("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO") {
		}
		p.addTable()
	case "UPDATE":
		p.references("SET")
	case "DELETE":
		p.references("WHERE", "ORDER", "LIMIT", "RETURNING")
	case "LOAD":
		if p.seek("INTO") && p.accept("TABLE") {
			p.addTable()
			return
		}
		p.st.unsure = true
	default:
		p.st.unsure = true
	}
}

// joinWords are what stands between the tables of a statement.
var joinWords = map[string]bool{"FROM": true, "JOIN": true, "AS": true, "USING": true, "LEFT": true, "RIGHT": true, "INNER": true,
	"OUTER": true, "CROSS": true, "NATURAL": true, "STRAIGHT_JOIN": true, "LOW_PRIORITY": true, "QUICK": true, "IGNORE": true,
	"PARTITION": true, "ON": true, "FOR": true, "FORCE": true, "USE": true, "HISTORY": true}

// references takes every name up to one of the words for a table, but for
// aliases and what follows ON. Names too many are harmless: they stop a stream
// that could have gone on.
func (p *parser) references(until ...string) {
	condition := false
	for depth := 0; p.tok.kind != tokEnd; {
		if depth == 0 && p.isOneOf(until) {
			return
		}
		switch {
		case p.tok.is("("):
			depth++
		case p.tok.is(")"):
			depth--
		case p.tok.is("ON"):
			condition = true
		case p.tok.is(","), p.tok.is("JOIN"), p.tok.is("STRAIGHT_JOIN"):
			condition = false
		case p.isName() && !condition:
			p.addTable()
			p.accept("AS")
			if p.isName() && !p.isOneOf(until) {
				p.advance()
			}
			continue
		}
		p.advance()
	}
}

func (p *parser) isName() bool {
	return p.tok.kind == tokName || p.tok.kind == tokWord && !joinWords[strings.ToUpper(p.tok.text)]
}

func (p *parser) isOneOf(words []string) bool {
	return slices.ContainsFunc(words, p.tok.is)
}
