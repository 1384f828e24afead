package table

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Difference is one way in which a table that exists is not as it should be.
type Difference struct {
	What  string // for a message, as in "column v is int, it should be bigint"
	Alter string // the clause of ALTER TABLE that mends it; "" where there is none
	// Minor differences leave what rows the table takes as it is: engine, options,
	// defaults, comments, the order of columns.
	Minor bool

	rank int // clauses are run in this order
}

// The order of clauses in one ALTER TABLE: what depends on something goes first.
const (
	rankDropKey = iota
	rankDropColumn
	rankColumn
	rankKey
	rankConstraint
)

// Compare tells how have, a table of the target, differs from want, the
// source's. Character sets and collations are compared column by column, keys
// and constraints by their names and columns.
func Compare(want, have *Table) []Difference {
	c := comparison{want: want, have: have, create: ParseCreate(string(want.Create)), there: ParseCreate(string(have.Create))}
	c.explicit = charsetOf(c.create.Tail) != charsetOf(c.there.Tail)
	c.columns()
	c.keys()
	c.options()
	slices.SortStableFunc(c.found, func(a, b Difference) int { return a.rank - b.rank })
	return c.found
}

// AlterStatement writes the statement that mends all differences that are not
// minor, on one line; "" where one of them has no clause.
func AlterStatement(n Name, all []Difference) string {
	var clauses []string
	for _, d := range all {
		switch {
		case d.Minor:
		case d.Alter == "":
			return ""
		default:
			clauses = append(clauses, d.Alter)
		}
	}
	if len(clauses) == 0 {
		return ""
	}
	// The servers write line ends inside strings as \n.
	return "ALTER TABLE " + n.Quoted() + " " + strings.ReplaceAll(strings.Join(clauses, ", "), "\n", " ")
}

// oneLine is for messages and comparisons only: it changes strings, too.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Major returns the differences that are not minor.
func Major(all []Difference) []Difference {
	return slices.DeleteFunc(slices.Clone(all), func(d Difference) bool { return d.Minor })
}

type comparison struct {
	want, have    *Table
	create, there Create
	explicit      bool // the tables' default character sets differ, so columns must name theirs
	found         []Difference
}

func (c *comparison) add(rank int, alter, format string, args ...any) {
	c.found = append(c.found, Difference{What: fmt.Sprintf(format, args...), Alter: alter, rank: rank})
}

func (c *comparison) minor(format string, args ...any) {
	c.found = append(c.found, Difference{What: fmt.Sprintf(format, args...), Minor: true, rank: rankConstraint + 1})
}

func (c *comparison) columns() {
	wanted, there := columnTexts(c.create), columnTexts(c.there)
	after := " FIRST"
	var order []string
	for i := range c.want.Columns {
		w := &c.want.Columns[i]
		if w.RowTime() && wanted[w.Name] == "" {
			continue // comes with the versioning
		}
		text := c.definition(w, wanted[w.Name])
		if h := c.have.Column(w.Name); h == nil {
			c.add(rankColumn, "ADD COLUMN "+text+after, "column %s is missing", w.Name)
		} else {
			order = append(order, w.Name)
			c.column(w, h, text, wanted[w.Name], there[w.Name])
		}
		after = " AFTER " + Quote(w.Name)
	}
	var have []string
	for i := range c.have.Columns {
		h := &c.have.Columns[i]
		if h.RowTime() && there[h.Name] == "" {
			continue
		}
		if c.want.Column(h.Name) == nil {
			c.add(rankDropColumn, "DROP COLUMN "+Quote(h.Name), "column %s should not be there", h.Name)
			continue
		}
		have = append(have, h.Name)
	}
	if !slices.Equal(order, have) {
		c.minor("the columns stand in another order")
	}
}

// column compares one column. The texts are those of CREATE TABLE.
func (c *comparison) column(w, h *Column, definition, wanted, there string) {
	var what []string
	differ := func(name, want, have string) {
		if want != have {
			what = append(what, fmt.Sprintf("column %s has %s %s, it should be %s", w.Name, name, shown(have), shown(want)))
		}
	}
	differ("type", bareType(w.FullType), bareType(h.FullType))
	differ("collation", modern(w.Collation), modern(h.Collation))
	differ("nullability", nullText(w), nullText(h))
	differ("generation", generation(w, wanted), generation(h, there))
	differ("auto-increment", onOff(w.AutoInc), onOff(h.AutoInc))
	if len(what) > 0 {
		c.add(rankColumn, "MODIFY COLUMN "+definition, "%s", strings.Join(what, "; "))
		return
	}
	if attributes(wanted) != attributes(there) {
		c.minor("column %s has another default, comment or other attribute", w.Name)
	}
}

func shown(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func nullText(c *Column) string {
	if c.Nullable {
		return "NULL"
	}
	return "NOT NULL"
}

var displayWidth = regexp.MustCompile(`^(tinyint|smallint|mediumint|int|bigint|year)\(\d+\)`)

// bareType is a type without the display width, which newer servers do not keep.
func bareType(full string) string { return displayWidth.ReplaceAllString(full, "$1") }

// modern writes a collation of utf8 as newer servers call it.
func modern(name string) string {
	if rest, ok := strings.CutPrefix(name, "utf8_"); ok {
		return "utf8mb3_" + rest
	}
	return name
}

func generation(c *Column, text string) string {
	if !c.Generated {
		return ""
	}
	it := newItem(text)
	kind := "VIRTUAL"
	if it.hasWords("STORED") || it.hasWords("PERSISTENT") {
		kind = "STORED"
	}
	return kind + " " + oneLine(c.Expression)
}

var charsetAttribute = regexp.MustCompile(` (CHARACTER SET|COLLATE) \w+`)

// attributes is a column's text without what is compared by itself.
func attributes(text string) string {
	text = charsetAttribute.ReplaceAllString(strings.TrimSpace(text), "")
	if i := skipQuoted(text, 0); i+1 < len(text) {
		return bareType(text[i+1:])
	}
	return text
}

// columnTexts returns the lines of columns by name.
func columnTexts(c Create) map[string]string {
	out := map[string]string{}
	for _, it := range c.Items {
		text := strings.TrimSpace(it.Text)
		if strings.HasPrefix(text, "`") {
			out[nameIn(text)] = text
		}
	}
	return out
}

// nameIn returns the first quoted name of text.
func nameIn(text string) string {
	from := strings.IndexByte(text, '`')
	if from < 0 {
		return ""
	}
	return strings.ReplaceAll(text[from+1:skipQuoted(text, from)-1], "``", "`")
}

// definition is the column's text for ALTER TABLE, with its character set where
// the target's table has another default.
func (c *comparison) definition(w *Column, text string) string {
	start := Quote(w.Name) + " " + w.FullType
	if !c.explicit || w.Collation == "" || !strings.HasPrefix(text, start) || strings.HasPrefix(text[len(start):], " CHARACTER SET ") {
		return text
	}
	return start + " CHARACTER SET " + w.Charset + " COLLATE " + w.Collation + withoutCollation(text)[len(start):]
}

var tableCharset = regexp.MustCompile(`CHARSET=\w+( COLLATE=\w+)?`)

func charsetOf(tail string) string { return tableCharset.FindString(tail) }

// keyPart is a key or constraint of a CREATE TABLE.
type keyPart struct {
	name, text string
	signature  string // what makes it this key: kind, name, columns
	drop       string
	rank       int
}

// keyParts returns keys and constraints in the order of the text.
func keyParts(c Create) []keyPart {
	var out []keyPart
	for _, it := range c.Items {
		if len(it.words) == 0 || it.words[0] == "`" {
			continue
		}
		text := strings.TrimSpace(it.Text)
		p := keyPart{name: nameIn(text), text: text, signature: oneLine(text), rank: rankKey}
		switch {
		case it.words[0] == "PRIMARY":
			p.name, p.signature, p.drop = "PRIMARY", Signature(text), "DROP PRIMARY KEY"
		case it.IsForeignKey():
			p.drop, p.rank = "DROP FOREIGN KEY "+Quote(p.name), rankConstraint
		case it.words[0] == "CONSTRAINT":
			p.drop, p.rank = "DROP CONSTRAINT "+Quote(p.name), rankConstraint
		case it.words[0] == "PERIOD":
			p.name, p.drop = text, ""
		default:
			p.signature, p.drop = Signature(text), "DROP INDEX "+Quote(p.name)
		}
		out = append(out, p)
	}
	return out
}

// Signature cuts the options off an index or constraint as CREATE TABLE has it:
// its kind, name and columns are left. A foreign key keeps everything.
func Signature(text string) string {
	text = strings.TrimSpace(text)
	if newItem(text).hasWords("FOREIGN", "KEY") {
		return oneLine(text)
	}
	open := nextOutside(text, 0, "(")
	if open < 0 {
		return oneLine(text)
	}
	for i, depth := open, 0; i < len(text); {
		switch text[i] {
		case '\'', '`', '"':
			i = skipQuoted(text, i)
			continue
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return oneLine(text[:i+1])
			}
		}
		i++
	}
	return oneLine(text)
}

func (c *comparison) keys() {
	wanted, there := keyParts(c.create), keyParts(c.there)
	for _, h := range there {
		i := slices.IndexFunc(wanted, func(w keyPart) bool { return w.signature == h.signature })
		switch {
		case i < 0:
			c.add(rankDropKey, h.drop, "%s should not be there", clause(h.text))
		case wanted[i].text != h.text:
			c.minor("%s has other options", clause(wanted[i].signature))
		}
	}
	for _, w := range wanted {
		if !slices.ContainsFunc(there, func(h keyPart) bool { return h.signature == w.signature }) {
			c.add(w.rank, "ADD "+w.text, "%s is missing", clause(w.text))
		}
	}
	if c.want.Versioned && !c.have.Versioned {
		c.add(rankConstraint, "ADD SYSTEM VERSIONING", "it is not system-versioned")
	}
	if !c.want.Versioned && c.have.Versioned {
		c.add(rankConstraint, "DROP SYSTEM VERSIONING", "it is system-versioned")
	}
}

// clause shortens a long text for a message.
func clause(text string) string {
	text = oneLine(text)
	if r := []rune(text); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return text
}

var engineOption = regexp.MustCompile(`\) ENGINE=\w+`)

func (c *comparison) options() {
	if c.want.OtherEngine() && !c.have.Transactional() {
		c.add(rankConstraint, "ENGINE = InnoDB", "it has engine %s, which does not roll back, and no usable key", c.have.Engine)
	} else if c.want.Engine != c.have.Engine && !c.want.OtherEngine() {
		c.minor("it has engine %s, the source's %s", c.have.Engine, c.want.Engine)
	}
	bare := func(create Create) string {
		return oneLine(engineOption.ReplaceAllString(withoutCounter(create.Head + create.Tail)[len(create.Head):], ")"))
	}
	if bare(c.create) != bare(c.there) {
		c.minor("it has other table options or partitions than the source's")
	}
}
