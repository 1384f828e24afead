package table

import (
	"regexp"
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

// WithoutForeignKeys returns the statement that makes the table without its
// foreign keys, and the clauses to add them later ("ADD CONSTRAINT …").
func (c Create) WithoutForeignKeys() (create string, add []string) {
	var keep []string
	for _, it := range c.Items {
		if it.IsForeignKey() {
			add = append(add, "ADD "+strings.TrimSpace(it.Text))
			continue
		}
		keep = append(keep, it.Text)
	}
	if len(c.Items) == 0 {
		return c.Head, nil
	}
	tail := c.Tail
	if !strings.HasPrefix(tail, "\n") && len(add) > 0 && !strings.HasSuffix(keep[len(keep)-1], "\n") {
		tail = "\n" + tail
	}
	return c.Head + strings.Join(keep, ",") + tail, add
}

// SameCreate reports whether two texts of SHOW CREATE TABLE describe the same
// structure: the counter of AUTO_INCREMENT moves with every row.
func SameCreate(a, b string) bool { return a == b || withoutCounter(a) == withoutCounter(b) }

// withoutCounter cuts the table option AUTO_INCREMENT=n off.
func withoutCounter(text string) string {
	c := ParseCreate(text)
	const option = " AUTO_INCREMENT="
	for i := 0; i < len(c.Tail); {
		switch {
		case c.Tail[i] == '\'' || c.Tail[i] == '`' || c.Tail[i] == '"':
			i = skipQuoted(c.Tail, i)
		case strings.HasPrefix(c.Tail[i:], option):
			end := i + len(option)
			for end < len(c.Tail) && c.Tail[end] >= '0' && c.Tail[end] <= '9' {
				end++
			}
			return text[:len(text)-len(c.Tail)] + c.Tail[:i] + c.Tail[end:]
		default:
			i++
		}
	}
	return text
}
