package config

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Input is what a configuration is made from. Flags go before Env, Env before
// File, and File before the defaults; within Flags and within Env a later
// setting goes before an earlier one.
type Input struct {
	Name  string    // of the file, for messages
	File  io.Reader // YAML; may be nil
	Env   []Setting
	Flags []Setting
	// LookupEnv finds the variables that password_env names; nil: none is set.
	LookupEnv func(name string) (string, bool)
}

// Loaded is a configuration and what there is to say about it.
type Loaded struct {
	Config   Config
	Warnings []string
	// EnvNames are the variables that password_env names.
	EnvNames []string
	// SourcePassword and TargetPassword report whether one was given.
	SourcePassword, TargetPassword bool
}

// Load reads, merges and checks a configuration. Everything that is wrong is in
// the error, an *Error.
func Load(in Input) (*Loaded, error) {
	var bad problems
	values := in.readFile(&bad)
	for _, layer := range [][]Setting{in.Env, in.Flags} {
		values = over(values, readSettings(layer, &bad))
	}
	loaded := &Loaded{Config: Default()}
	decoded := decodeAll(&loaded.Config, values, &bad)
	loaded.resolvePasswords(in.LookupEnv, values, decoded, &bad)
	loaded.Config.settle()
	loaded.Config.check(place{values: values, decoded: decoded, file: in.Name}, &bad)
	if err := bad.err(); err != nil {
		return nil, err
	}
	return loaded, nil
}

func (in Input) readFile(bad *problems) map[string]entry {
	w := &walker{values: map[string]entry{}, problems: bad}
	if in.File == nil {
		return w.values
	}
	w.where = func(n *yaml.Node) string { return fmt.Sprintf("%s:%d", in.Name, n.Line) }
	doc, err := parseDocument(in.File)
	switch {
	case err != nil:
		where, msg := yamlProblem(in.Name, err)
		bad.add(where, "%s", msg)
	case doc != nil:
		w.walk("", tree, doc, doc)
		passwordTwice(w.values, bad)
	}
	return w.values
}

func readSettings(layer []Setting, bad *problems) map[string]entry {
	values := map[string]entry{}
	for _, s := range layer {
		at := find(s.key)
		switch {
		case at == nil:
			bad.add(s.origin, "%s", unknownKey(safeName(s.key)))
		case s.err != nil:
			bad.add(s.origin, "%s: %v", s.key, s.err)
		default:
			w := &walker{values: values, problems: bad, public: true, where: func(*yaml.Node) string { return s.origin }}
			w.walk(s.key, at, s.node, s.node)
		}
	}
	passwordTwice(values, bad)
	return values
}

// over lays values over those of a lower layer. Any form of a password hides
// every other form below.
func over(below, values map[string]entry) map[string]entry {
	all := maps.Clone(below)
	for _, side := range sides {
		if len(passwordKeys(values, side)) > 0 {
			for _, path := range passwordKeys(below, side) {
				delete(all, path)
			}
		}
	}
	maps.Copy(all, values)
	return all
}

// decodeAll stores the values in c and returns them by path.
func decodeAll(c *Config, values map[string]entry, bad *problems) map[string]any {
	decoded := map[string]any{}
	for _, path := range slices.Sorted(maps.Keys(values)) {
		e, key := values[path], find(path).key
		v, err := key.decode(e.node)
		if err != nil {
			bad.add(e.where, "%s: %v", path, err)
			continue
		}
		key.assign(c, v)
		decoded[path] = v
	}
	return decoded
}
