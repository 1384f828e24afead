package config

import (
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"
)

// errLater refuses what a later release brings.
var errLater = errors.New("not supported yet")

// Kind is the type of a key's value.
type Kind string

// The kinds of values. A Threads is a number or "auto", an Until a stop point, a
// List one of mappings.
const (
	KindString   Kind = "string"
	KindSecret   Kind = "secret"
	KindInt      Kind = "number"
	KindBool     Kind = "true or false"
	KindWord     Kind = "word"
	KindSize     Kind = "size"
	KindDuration Kind = "duration"
	KindStrings  Kind = "list of strings"
	KindThreads  Kind = "number or auto"
	KindUntil    Kind = "stop point"
	KindList     Kind = "list"
)

// Key is one key of the configuration.
type Key struct {
	Path     string   // with dots: source.tls.mode
	Kind     Kind     //
	Default  string   // as YAML
	Example  string   // as YAML; stands in the sample in place of the default; may be empty
	Unit     string   // what a plain number counts; may be empty
	Words    []string // the words allowed, if the kind takes words
	Only     []string // the values that exist in this release; nil: all
	Later    bool     // refused unless it has its default
	Required bool     //
	Min, Max int64    // in base units (nanoseconds for a duration); Max 0: no bound
	ZeroToo  bool     // 0 is allowed below Min
	Doc      string   // one line

	field func(*Config) any // a pointer to the field; nil if it has none of its own
}

// Keys returns every key, in the order of the sample.
func Keys() []Key { return slices.Clone(table) }

// group is a key that holds other keys.
type group struct{ path, doc string }

// node is one element of the tree that the keys' paths make.
type treeNode struct {
	key      *Key // nil for a group
	children map[string]*treeNode
}

var tree = buildTree()

func buildTree() *treeNode {
	root := &treeNode{children: map[string]*treeNode{}}
	for i := range table {
		at := root
		for _, name := range splitPath(table[i].Path) {
			child := at.children[name]
			if child == nil {
				child = &treeNode{children: map[string]*treeNode{}}
				at.children[name] = child
			}
			at = child
		}
		at.key = &table[i]
	}
	return root
}

// find returns the element at path, or nil.
func find(path string) *treeNode {
	at := tree
	for _, name := range splitPath(path) {
		if at = at.children[name]; at == nil {
			return nil
		}
	}
	return at
}

func (k *Key) defaultNode() *yaml.Node {
	n, err := parseValue(k.Default)
	if err != nil {
		panic("config: default of " + k.Path + ": " + err.Error())
	}
	return n
}
