package streamer

import "strings"

// objects are what CREATE, ALTER and DROP can be about; true for those that are
// no tables and change none.
var objects = map[string]bool{
	"TABLE": false, "TABLES": false, "INDEX": false, "DATABASE": false, "SCHEMA": false, "SEQUENCE": false,
	"VIEW": true, "TRIGGER": true, "PROCEDURE": true, "FUNCTION": true, "EVENT": true, "USER": true, "ROLE": true,
	"SERVER": true, "TABLESPACE": true, "LOGFILE": true, "PACKAGE": true, "RESOURCE": true, "REFERENCE": true,
	"INSTANCE": true, "LIBRARY": true, "PREPARE": true, "CATALOG": true,
}

// object goes behind the word that says what a definition is about, and reports
// whether TEMPORARY stood before it.
func (p *parser) object() (kind string, temporary bool) {
	for range 40 { // a definer and view options stand in between
		if p.tok.kind == tokEnd {
			break
		}
		t := p.advance()
		if t.kind != tokWord {
			continue
		}
		word := strings.ToUpper(t.text)
		if _, ok := objects[word]; ok {
			return word, temporary
		}
		temporary = temporary || word == "TEMPORARY"
	}
	return "", temporary
}

func (p *parser) definition(word string) {
	switch word {
	case "TRUNCATE":
		p.st.kind = stDDL
		p.accept("TABLE")
		p.addTable()
		return
	case "IMPORT":
		return
	}
	kind, temporary := p.object()
	other, known := objects[kind]
	switch {
	case !known:
		return
	case other || temporary:
		p.st.kind = stPass
		return
	}
	p.st.kind = stDDL
	switch kind {
	case "INDEX":
		if p.seek("ON") {
			p.addTable()
			return
		}
		p.st.unsure = true
	case "DATABASE", "SCHEMA":
		p.database(word)
	case "SEQUENCE":
		p.sequenceOf(word)
	default:
		p.tableDefinition(word)
	}
}

func (p *parser) tableDefinition(word string) {
	p.ifExists()
	switch word {
	case "CREATE":
		p.createTable()
	case "ALTER":
		p.alterTable()
	case "DROP":
		p.addTable()
		for p.accept(",") {
			p.addTable()
		}
	case "RENAME":
		p.renameTables()
	}
}

// createTable notes the new table; what it is LIKE or selected from stays as it
// is. The servers log CREATE TABLE … SELECT as one group with the rows, MySQL
// with START TRANSACTION at the end of the statement.
func (p *parser) createTable() {
	if n, ok := p.tableName(); ok {
		p.st.tables = append(p.st.tables, n)
		p.st.created = append(p.st.created, n)
	}
	var before, last token
	for p.tok.kind != tokEnd {
		before, last = last, p.advance()
	}
	p.st.opens = before.is("START") && last.is("TRANSACTION")
}

// alterTable looks for the clauses that name another table.
func (p *parser) alterTable() {
	p.addTable()
	for depth := 0; p.tok.kind != tokEnd; {
		switch {
		case p.tok.is("("):
			depth++
		case p.tok.is(")"):
			depth--
		case depth == 0 && p.accept("RENAME"):
			p.renameClause()
			continue
		case depth == 0 && p.accept("EXCHANGE", "CONVERT"):
			p.exchangeClause()
			continue
		}
		p.advance()
	}
}

func (p *parser) renameClause() {
	if p.isOneOf([]string{"COLUMN", "INDEX", "KEY", "CONSTRAINT"}) {
		return
	}
	p.accept("TO", "AS", "=")
	p.addTable()
}

// exchangeClause reads EXCHANGE PARTITION p WITH TABLE t and MariaDB's CONVERT
// PARTITION p TO TABLE t and CONVERT TABLE t TO PARTITION p. CONVERT TO
// CHARACTER SET names no table.
func (p *parser) exchangeClause() {
	switch {
	case p.accept("PARTITION"):
		p.advance()
		if p.accept("WITH", "TO") && p.accept("TABLE") {
			p.addTable()
			return
		}
		p.st.unsure = true
	case p.accept("TABLE"):
		p.addTable()
	}
}

func (p *parser) renameTables() {
	for {
		p.addTable()
		if p.accept("WAIT") {
			p.advance()
		}
		p.accept("NOWAIT")
		if !p.accept("TO") {
			p.st.unsure = true
			return
		}
		p.addTable()
		if !p.accept(",") {
			return
		}
	}
}

func (p *parser) database(word string) {
	p.ifExists()
	name := p.schema
	switch {
	case p.tok.kind == tokName:
		name = p.tok.text
	case p.tok.kind == tokWord && (word != "ALTER" || !p.isOneOf(databaseOptions)):
		name = p.tok.text
	}
	switch word {
	case "CREATE":
		p.st.kind = stPass // it has no tables yet
	case "ALTER":
		p.st.altered = append(p.st.altered, name)
	case "DROP":
		p.st.dropped = append(p.st.dropped, name)
	}
}

// databaseOptions are what stands in the place of the name where ALTER DATABASE
// has none, which means the default database.
var databaseOptions = []string{"DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ", "COMMENT"}

// sequenceOf passes over MariaDB's sequences, which are no tables to us. The
// name of a new one is kept: row events move it like a table.
func (p *parser) sequenceOf(word string) {
	p.st.kind = stPass
	if word != "CREATE" {
		return
	}
	p.ifExists()
	p.st.sequence, _ = p.tableName()
	p.st.unsure = false
}
