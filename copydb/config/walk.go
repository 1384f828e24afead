package config

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entry is the value of one key and where it was given.
type entry struct {
	node  *yaml.Node
	where string
}

// walker takes a YAML document apart into the values of the known keys.
type walker struct {
	values   map[string]entry // by path
	problems *problems
	where    func(*yaml.Node) string
	public   bool // what is walked can be read by others: no secrets
}

// walk visits what stands at path, which the element at belongs to.
func (w *walker) walk(path string, at *treeNode, n, pos *yaml.Node) {
	n = resolve(n)
	where := w.where(pos)
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		w.problems.add(where, "%s: tags (!) are not supported; put the value in quotes", path)
	case at.key != nil && w.public && at.key.Kind == KindSecret:
		w.problems.add(where, "%s: a password on the command line can be read by every user of the machine; use %s_env or %s_file", path, path, path)
	case at.key != nil:
		w.values[path] = entry{node: n, where: where}
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null": // a group of which nothing is set
	case n.Kind != yaml.MappingNode:
		w.problems.add(where, "%s must hold keys", orWhole(path))
	default:
		w.walkMapping(path, at, n)
	}
}

func (w *walker) walkMapping(path string, at *treeNode, n *yaml.Node) {
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		child := safeName(name.Value)
		if path != "" {
			child = path + "." + child
		}
		if before := first[name.Value]; before != nil {
			w.problems.add(w.where(name), "%q is given twice; the first is in line %d", child, before.Line)
			continue
		}
		first[name.Value] = name
		next := at.children[name.Value]
		if next == nil {
			w.problems.add(w.where(name), "%s", unknownKey(child))
			continue
		}
		w.walk(child, next, n.Content[i+1], name)
	}
}

func unknownKey(path string) string {
	if near := nearest(path); near != "" {
		return fmt.Sprintf("unknown key %q; did you mean %q?", path, near)
	}
	return fmt.Sprintf("unknown key %q", path)
}

func orWhole(path string) string {
	if path == "" {
		return "the configuration"
	}
	return path
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// safeName cuts what cannot be a key's name: "password:hunter2", without the
// blank, is a name to YAML, and must not be printed.
func safeName(name string) string {
	if i := notInName.FindStringIndex(name); i != nil {
		return name[:i[0]] + "…"
	}
	return name
}

// parseDocument reads one YAML document; nil if there is nothing in it.
func parseDocument(r io.Reader) (*yaml.Node, error) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(r)
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("yaml: more than one document (---)")
		}
		return nil, err
	}
	return doc.Content[0], nil
}

// parseValue reads a scalar or a flow collection.
func parseValue(text string) (*yaml.Node, error) {
	n, err := parseDocument(strings.NewReader(text))
	if err != nil {
		_, msg := yamlProblem("", err)
		return nil, errors.New(msg)
	}
	if n == nil {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	}
	return n, nil
}

var yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// yamlProblem turns an error of the YAML library into place and message. What
// the library quotes from the file may be a password, and is left out.
func yamlProblem(file string, err error) (where, msg string) {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return file, "not valid YAML"
	}
	if m[1] != "" {
		file += ":" + m[1]
	}
	if strings.HasPrefix(m[2], "unknown anchor") {
		return file, "not valid YAML: a value that begins with * has to stand in quotes"
	}
	return file, "not valid YAML: " + m[2]
}
