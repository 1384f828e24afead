package config

import (
	"fmt"
	"slices"
	"strings"
)

const (
	sampleHead = `# Configuration of copydb. What is commented out has the default shown, or is an
# example. Unknown keys are errors. Sizes take KiB, MiB and GiB, durations Go's
# form (500ms, 10s, 5m). Run "copydb check --config FILE" to try it.
`
	markdownHead = `# Configuration

<!-- Generated from the table of keys: go test ./copydb/config -update -->

A configuration is YAML; ` + "`copydb config`" + ` prints a sample. Unknown and duplicate keys are errors, ` + "`${NAME}`" + ` is not expanded.
Sizes take KiB, MiB and GiB, durations Go's form (` + "`500ms`, `10s`, `5m`" + `). On the command line every key can be given as ` + "`--set KEY=VALUE`" + `,
with the value in YAML; a flag goes before the environment, the environment before the file, the file before the default.
A key or value that is *not supported yet* is refused, unless it is the default.
`
	docColumn = 44
)

// Sample returns a commented configuration.
func Sample() string {
	var b strings.Builder
	b.WriteString(sampleHead)
	open := []string{}
	for _, k := range table {
		path := splitPath(k.Path)
		names, leaf := path[:len(path)-1], path[len(path)-1]
		for i := range names {
			if i < len(open) && open[i] == names[i] {
				continue
			}
			open = append(open[:i:i], names[i])
			writeGroup(&b, i, strings.Join(names[:i+1], "."), names[i])
		}
		if len(names) == 0 && len(open) > 0 {
			b.WriteString("\n")
		}
		open = open[:len(names)]
		writeKey(&b, k, len(names), leaf)
	}
	return b.String()
}

func writeGroup(b *strings.Builder, depth int, path, name string) {
	if depth == 0 {
		fmt.Fprintf(b, "\n# %s\n", groupDoc(path))
	}
	fmt.Fprintf(b, "%s%s:\n", indent(depth), name)
}

func writeKey(b *strings.Builder, k Key, depth int, leaf string) {
	value, off := k.Default, "# "
	if k.Example != "" {
		value = k.Example
	}
	if k.inSample() {
		off = ""
	}
	line := fmt.Sprintf("%s%s%s: %s", indent(depth), off, leaf, value)
	fmt.Fprintf(b, "%-*s  # %s\n", docColumn, line, k.sampleDoc())
}

// inSample reports whether the sample sets the key: those that have to be set.
func (k Key) inSample() bool {
	name := leaf(k.Path)
	return k.Required || name == "host" || name == "password_env"
}

func (k Key) sampleDoc() string {
	doc := k.Doc
	if k.Later {
		return doc + "; not supported yet"
	}
	if words := k.words(", "); words != "" {
		doc += " (" + words + ")"
	}
	return doc
}

// words lists the values to choose from, those that do not exist yet apart.
func (k Key) words(sep string) string {
	now, later := k.Words, []string(nil)
	if k.Only != nil {
		now = k.Only
		for _, w := range k.Words {
			if !slices.Contains(k.Only, w) {
				later = append(later, w)
			}
		}
	}
	text := strings.Join(now, sep)
	if len(later) > 0 {
		text += "; not supported yet: " + strings.Join(later, sep)
	}
	return text
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

func groupDoc(path string) string {
	for _, g := range groups {
		if g.path == path {
			return g.doc
		}
	}
	return ""
}

// Markdown returns docs/configuration.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(markdownHead)
	for _, g := range groups {
		if !strings.Contains(g.path, ".") {
			writeSection(&b, "`"+g.path+"`", g.doc, g.path)
		}
	}
	writeSection(&b, "Other keys", "", "")
	return b.String()
}

// writeSection writes the keys below top; "" stands for those below nothing.
func writeSection(b *strings.Builder, title, doc, top string) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	if doc != "" {
		fmt.Fprintf(b, "%s\n\n", escapeCell(doc))
	}
	b.WriteString("| key | type | default | meaning |\n|---|---|---|---|\n")
	for _, k := range table {
		first, _, nested := strings.Cut(k.Path, ".")
		if nested && first == top || !nested && top == "" {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", k.Path, k.markdownType(), k.markdownDefault(), k.markdownDoc())
		}
	}
}

func (k Key) markdownType() string {
	text := string(k.Kind)
	if k.Unit != "" {
		text += " in " + k.Unit
	}
	if limits := k.limits(); limits != "" {
		text += ", " + limits
	}
	return text
}

// limits names the range of the value.
func (k Key) limits() string {
	low, high := k.inRange(k.Min-1), error(nil)
	if k.Max > 0 {
		high = k.inRange(k.Max + 1)
	}
	var parts []string
	if k.Min != 0 && low != nil {
		parts = append(parts, strings.TrimPrefix(low.Error(), "must be "))
	}
	if high != nil {
		parts = append(parts, strings.TrimPrefix(high.Error(), "must be "))
	}
	return strings.Join(parts, ", ")
}

func (k Key) markdownDefault() string {
	if k.Required && (k.Default == `""` || k.Default == "[]") {
		return "(required)"
	}
	return "`" + k.Default + "`"
}

func (k Key) markdownDoc() string {
	doc := escapeCell(k.Doc)
	if k.Later {
		return "*Not supported yet:* " + doc
	}
	if words := k.words("`, `"); words != "" {
		words = strings.ReplaceAll("`"+words+"`", "; not supported yet: ", "`; *not supported yet:* `")
		doc += ". Values: " + words
	}
	return doc
}

func escapeCell(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", `\<`).Replace(s)
}
