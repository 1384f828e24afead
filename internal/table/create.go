package table

import (
	"regexp"
	"strconv"
	"strings"
)

// Create is SHOW CREATE TABLE's text, cut at the commas of its outer
// parentheses: Head + Items + Tail.
type Create struct {
	Head  string // up to and with the opening parenthesis
	Items []Item
	Tail  string // from the closing parenthesis on
}

// Item is one column, key or constraint of a CREATE TABLE.
type Item struct {
	Text  string
	words []string // what stands outside quotes and parentheses, in upper case
}

// ParseCreate cuts a CREATE TABLE as the servers print it with an empty
// sql_mode: names in backquotes, strings in single quotes with backslash
// escapes. A text without parentheses has no items.
func ParseCreate(text string) Create {
	text = mendForeignKeys(text)
	open := nextOutside(text, 0, "(")
	if open < 0 {
		return Create{Head: text}
	}
	c := Create{Head: text[:open+1]}
	start, depth := open+1, 0
	for i := start; i < len(text); {
		switch text[i] {
		case '\'', '`', '"':
			i = skipQuoted(text, i)
			continue
		case '(':
			depth++
		case ')':
			if depth == 0 {
				c.Items = append(c.Items, newItem(text[start:i]))
				c.Tail = text[i:]
				return c
			}
			depth--
		case ',':
			if depth == 0 {
				c.Items = append(c.Items, newItem(text[start:i]))
				start = i + 1
			}
		}
		i++
	}
	return Create{Head: text}
}

// foreignKeyLine is how the servers print a foreign key: name, columns, parent,
// its columns, the rest.
var foreignKeyLine = regexp.MustCompile("(?m)^  CONSTRAINT `(.*)` FOREIGN KEY \\(`(.*)`\\) REFERENCES (`.*`) \\(`(.*)`\\)(.*)$")

// mendForeignKeys doubles the backquotes inside names of foreign keys and their
// columns, which MariaDB before 11 prints as they are: its own text cannot be
// run there.
func mendForeignKeys(text string) string {
	return foreignKeyLine.ReplaceAllStringFunc(text, func(line string) string {
		f := foreignKeyLine.FindStringSubmatch(line)
		return "  CONSTRAINT " + mendNames(f[1]) + " FOREIGN KEY (" + mendNames(f[2]) + ") REFERENCES " + f[3] + " (" + mendNames(f[4]) + ")" + f[5]
	})
}

// mendNames takes names without their outer backquotes. One in which every run
// of backquotes has an even length is taken to be right.
func mendNames(list string) string {
	names := strings.Split(list, "`, `")
	for i, n := range names {
		if strings.Contains(strings.ReplaceAll(n, "``", ""), "`") {
			n = strings.ReplaceAll(n, "`", "``")
		}
		names[i] = "`" + n + "`"
	}
	return strings.Join(names, ", ")
}

// nextOutside finds the first of chars outside quotes, or -1.
func nextOutside(text string, from int, chars string) int {
	for i := from; i < len(text); {
		switch {
		case text[i] == '\'' || text[i] == '`' || text[i] == '"':
			i = skipQuoted(text, i)
			continue
		case strings.IndexByte(chars, text[i]) >= 0:
			return i
		}
		i++
	}
	return -1
}

// skipQuoted returns the index behind the quoted part that begins at i.
func skipQuoted(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote != '`':
			i++
		case text[i] == quote:
			if i+1 < len(text) && text[i+1] == quote {
				i++
				continue
			}
			return i + 1
		}
	}
	return len(text)
}

func newItem(text string) Item {
	it := Item{Text: text}
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			it.words = append(it.words, strings.ToUpper(word.String()))
			word.Reset()
		}
	}
	for i := 0; i < len(text); {
		switch b := text[i]; {
		case b == '\'' || b == '`' || b == '"':
			flush()
			i = skipQuoted(text, i)
			it.words = append(it.words, string(b))
			continue
		case b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80:
			word.WriteByte(b)
		default:
			flush()
		}
		i++
	}
	flush()
	return it
}

func (it Item) hasWords(words ...string) bool {
	for i := 0; i+len(words) <= len(it.words); i++ {
		match := true
		for j, w := range words {
			match = match && it.words[i+j] == w
		}
		if match {
			return true
		}
	}
	return false
}

// IsForeignKey reports whether the item is a FOREIGN KEY constraint.
func (it Item) IsForeignKey() bool {
	return len(it.words) > 2 && it.words[0] == "CONSTRAINT" && it.words[1] == "`" && it.words[2] == "FOREIGN"
}

// Parts is a CREATE TABLE taken apart, so that keys and constraints can be made
// later than the table.
type Parts struct {
	Create  string   // the table with what cannot wait
	Plain   []string // clauses that add non-unique indexes: "ADD KEY …"
	Unique  []string // clauses that add unique indexes
	Foreign []string // clauses that add foreign keys: "ADD CONSTRAINT …"
}

// Part takes the table's CREATE TABLE apart. Foreign keys always wait; with
// indexes, secondary indexes do, too, where the table can do without them:
// InnoDB, with a primary key that rows are found by, and an AUTO_INCREMENT
// column that needs no other index. Tables keep the order of their keys, since
// the servers print unique keys before others, in the order of their making.
func (t *Table) Part(indexes bool) Parts {
	c := ParseCreate(string(t.Create))
	indexes = indexes && t.indexesCanWait()
	var p Parts
	var keep []string
	for _, it := range c.Items {
		clause := "ADD " + strings.TrimSpace(it.Text)
		switch {
		case it.IsForeignKey():
			p.Foreign = append(p.Foreign, clause)
		case indexes && it.words[0] == "UNIQUE":
			p.Unique = append(p.Unique, clause)
		case indexes && (it.words[0] == "KEY" || it.words[0] == "FULLTEXT" || it.words[0] == "SPATIAL"):
			p.Plain = append(p.Plain, clause)
		default:
			keep = append(keep, withoutCollation(it.Text))
		}
	}
	if len(c.Items) == 0 {
		p.Create = c.Head
		return p
	}
	tail := c.Tail
	if t.OtherEngine() {
		tail = asInnoDB(tail)
	}
	if !strings.HasSuffix(keep[len(keep)-1], "\n") {
		tail = "\n" + tail
	}
	p.Create = c.Head + strings.Join(keep, ",") + tail
	return p
}

// begins reports whether the item is a key whose first column is the named one.
func (it Item) begins(column string) bool {
	key := len(it.words) > 0 && (it.words[0] == "KEY" || it.words[0] == "UNIQUE" || it.words[0] == "PRIMARY")
	return key && strings.Contains(it.Text, "("+Quote(column))
}

var (
	anyEngine = regexp.MustCompile(`\bENGINE ?= ?\w+`)
	// Options that InnoDB refuses or has no use for.
	otherOptions = regexp.MustCompile(` (ROW_FORMAT|PAGE_CHECKSUM|TRANSACTIONAL|CHECKSUM|DELAY_KEY_WRITE|PACK_KEYS|KEY_BLOCK_SIZE)=\w+`)
)

// asInnoDB rewrites the options of a table of MyISAM or Aria.
func asInnoDB(tail string) string {
	var b strings.Builder
	for len(tail) > 0 {
		end := strings.IndexAny(tail, "'`\"")
		if end < 0 {
			end = len(tail)
		}
		b.WriteString(otherOptions.ReplaceAllString(anyEngine.ReplaceAllString(tail[:end], "ENGINE=InnoDB"), ""))
		tail = tail[end:]
		if tail != "" {
			quoted := skipQuoted(tail, 0)
			b.WriteString(tail[:quoted])
			tail = tail[quoted:]
		}
	}
	return b.String()
}

// indexesCanWait reports whether the primary key is all that the table needs
// while it is filled.
func (t *Table) indexesCanWait() bool {
	if t.Engine != "InnoDB" || len(t.Keys) == 0 || t.Keys[0].Name != "PRIMARY" || t.Versioned || t.Overlaps || t.uniqueKey() != &t.Keys[0] {
		return false
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; c.AutoInc && t.Keys[0].Columns[0].Name != c.Name {
			return false
		}
	}
	return true
}

// withoutCollation cuts COLLATE off a column that has no CHARACTER SET beside it.
// MySQL prints it so for a column that has its table's collation without having
// been given one; run as it is, the text would give it one, which SHOW CREATE
// TABLE then tells by a CHARACTER SET.
func withoutCollation(item string) string {
	const collate, charset = " COLLATE ", " CHARACTER SET "
	if !strings.HasPrefix(strings.TrimSpace(item), "`") {
		return item // a key or constraint
	}
	at, depth := -1, 0
	for i := 0; i < len(item); {
		switch b := item[i]; {
		case b == '\'' || b == '`' || b == '"':
			i = skipQuoted(item, i)
			continue
		case b == '(':
			depth++
		case b == ')':
			depth--
		case depth == 0 && at < 0 && strings.HasPrefix(item[i:], charset):
			return item
		case depth == 0 && at < 0 && strings.HasPrefix(item[i:], collate):
			at = i
		}
		i++
	}
	if at < 0 {
		return item
	}
	end := at + len(collate)
	for end < len(item) && item[end] != ' ' && item[end] != '\n' {
		end++
	}
	return item[:at] + item[end:]
}

// SameCreate reports whether two texts of SHOW CREATE TABLE describe the same
// structure: the counter of AUTO_INCREMENT moves with every row.
func SameCreate(a, b string) bool { return a == b || withoutCounter(a) == withoutCounter(b) }

// withoutCounter cuts the table option AUTO_INCREMENT=n off.
func withoutCounter(text string) string {
	from, to := findCounter(text)
	return text[:from] + text[to:]
}

// Counter returns the table option AUTO_INCREMENT=n of a CREATE TABLE, or 0.
func Counter(text string) uint64 {
	from, to := findCounter(text)
	if from == to {
		return 0
	}
	n, _ := strconv.ParseUint(text[from+len(counterOption):to], 10, 64)
	return n
}

const counterOption = " AUTO_INCREMENT="

// findCounter returns where the table option AUTO_INCREMENT=n stands; both ends
// are the same where there is none.
func findCounter(text string) (from, to int) {
	c := ParseCreate(text)
	start := len(text) - len(c.Tail)
	for i := start; i < len(text); {
		switch {
		case text[i] == '\'' || text[i] == '`' || text[i] == '"':
			i = skipQuoted(text, i)
		case strings.HasPrefix(text[i:], counterOption):
			end := i + len(counterOption)
			for end < len(text) && text[end] >= '0' && text[end] <= '9' {
				end++
			}
			return i, end
		default:
			i++
		}
	}
	return len(text), len(text)
}
