package table

import (
	"strconv"
	"strings"
)

// parseForeignKey reads a foreign key as CREATE TABLE has it. The catalogue will
// not do: MariaDB shows its foreign keys only to those who may do more than read
// the table.
func parseForeignKey(item, database string) ForeignKey {
	fk := ForeignKey{ParentDatabase: database, OnDelete: ruleOf(item, "DELETE"), OnUpdate: ruleOf(item, "UPDATE")}
	rest := item
	fk.Name, rest = takeName(rest)
	fk.Columns, rest = takeNames(rest)
	fk.ParentTable, rest = takeName(rest)
	if strings.HasPrefix(rest, ".") {
		fk.ParentDatabase = fk.ParentTable
		fk.ParentTable, rest = takeName(rest)
	}
	fk.ParentColumns, _ = takeNames(rest)
	return fk
}

// ruleOf returns what the foreign key does on DELETE or UPDATE of a parent. The
// servers leave out what they do by default.
func ruleOf(item, event string) string {
	for _, rule := range []string{"CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT"} {
		if newItem(item).hasWords(append([]string{"ON", event}, strings.Fields(rule)...)...) {
			return rule
		}
	}
	return "NO ACTION"
}

// takeName returns the first quoted name, and what stands behind it.
func takeName(text string) (name, rest string) {
	from := strings.IndexByte(text, '`')
	if from < 0 {
		return "", ""
	}
	return nameIn(text), text[skipQuoted(text, from):]
}

// takeNames returns the quoted names of a list in parentheses, and what stands
// behind the first of them that no comma follows.
func takeNames(text string) (names []string, rest string) {
	for rest = text; ; {
		var n string
		n, rest = takeName(rest)
		names = append(names, n)
		if !strings.HasPrefix(rest, ",") {
			return names, rest
		}
	}
}

// orphans is FROM and WHERE of the rows of t that fk points from at no row: by
// MATCH SIMPLE, a row with a NULL among the columns points at nothing and needs
// no parent.
func (t *Table) orphans(fk *ForeignKey) string {
	var given, match []string
	for i, c := range fk.Columns {
		given = append(given, "c."+Quote(c)+" IS NOT NULL")
		match = append(match, "p."+Quote(fk.ParentColumns[i])+" = c."+Quote(c))
	}
	return " FROM " + t.Quoted() + " AS c WHERE " + strings.Join(given, " AND ") +
		" AND NOT EXISTS (SELECT 1 FROM " + fk.Parent().Quoted() + " AS p WHERE " + strings.Join(match, " AND ") + ")"
}

// Orphans is the query for the values of fk that have rows in t and no parent,
// with the number of these rows behind them.
func (t *Table) Orphans(fk *ForeignKey) string {
	var list, group []string
	for _, name := range fk.Columns {
		list = append(list, t.ColumnFold(name).SelectExpression())
		group = append(group, "c."+Quote(name))
	}
	return "SELECT " + strings.Join(list, ", ") + ", COUNT(*)" + t.orphans(fk) + " GROUP BY " + strings.Join(group, ", ")
}

// ListOrphans is the statement for a user who wants to see those rows.
func (t *Table) ListOrphans(fk *ForeignKey) string { return "SELECT c.*" + t.orphans(fk) }

// OrphanTest is the condition that values, as Orphans read them, have rows in t
// and none in parent. It looks into indexes only: both servers demand them.
func (t *Table) OrphanTest(fk *ForeignKey, parent *Table, values [][]byte) string {
	return "(EXISTS (SELECT 1 FROM " + t.Quoted() + " WHERE " + t.matches(fk.Columns, values) +
		") AND NOT EXISTS (SELECT 1 FROM " + parent.Quoted() + " WHERE " + parent.matches(fk.ParentColumns, values) + "))"
}

func (t *Table) matches(columns []string, values [][]byte) string {
	var all []string
	for i, name := range columns {
		c := t.ColumnFold(name)
		all = append(all, c.BoundExpression()+" = "+string(c.AppendBound(nil, values[i])))
	}
	return strings.Join(all, " AND ")
}

// ListDuplicates is the query for the values that a unique key would find more
// than once; "" where it is over an expression. By the standard, NULLs differ.
func (t *Table) ListDuplicates(k *Key) string {
	var list, given []string
	for _, kc := range k.Columns {
		switch {
		case kc.Name == "":
			return ""
		case kc.Prefix > 0:
			list = append(list, "LEFT("+Quote(kc.Name)+", "+strconv.Itoa(kc.Prefix)+")")
		default:
			list = append(list, Quote(kc.Name))
		}
		given = append(given, Quote(kc.Name)+" IS NOT NULL")
	}
	columns := strings.Join(list, ", ")
	return "SELECT " + columns + ", COUNT(*) FROM " + t.Quoted() + " WHERE " + strings.Join(given, " AND ") +
		" GROUP BY " + columns + " HAVING COUNT(*) > 1"
}

// Check is a CHECK constraint.
type Check struct {
	Name      string // the column's, where it belongs to one
	Condition string // in parentheses
}

// Checks returns the CHECK constraints of the table and of its columns, as
// CREATE TABLE has them.
func (t *Table) Checks() []Check {
	var out []Check
	for _, it := range ParseCreate(string(t.Create)).Items {
		if !it.hasWords("CHECK") {
			continue
		}
		if from, to := findCheck(it.Text); from < to {
			out = append(out, Check{nameIn(it.Text), it.Text[from:to]})
		}
	}
	return out
}

// findCheck returns where the condition behind the word CHECK stands, which is
// outside quotes and parentheses; both ends are the same where it does not.
func findCheck(item string) (from, to int) {
	const word = " CHECK ("
	depth, start := 0, -1
	for i := 0; i < len(item); i++ {
		switch b := item[i]; {
		case b == '\'' || b == '`' || b == '"':
			i = skipQuoted(item, i) - 1
		case depth == 0 && strings.HasPrefix(item[i:], word):
			start = i + len(word) - 1
		case b == '(':
			depth++
		case b == ')':
			if depth--; depth == 0 && start >= 0 {
				return start, i + 1
			}
		}
	}
	return 0, 0
}
