package config

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Setting is one value that was given outside the file.
type Setting struct {
	key    string
	node   *yaml.Node
	err    error
	origin string // for messages: --set
}

// Text is a setting whose value is YAML. Origin names the flag or the variable
// that it comes from.
func Text(key, value, origin string) Setting {
	n, err := parseValue(value)
	return Setting{key: key, node: n, err: err, origin: origin}
}

// String is a setting whose value is a string as it stands.
func String(key, value, origin string) Setting {
	return Setting{key: key, node: stringNode(value), origin: origin}
}

// Strings is a setting whose value is a list of strings.
func Strings(key string, values []string, origin string) Setting {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range values {
		n.Content = append(n.Content, stringNode(v))
	}
	return Setting{key: key, node: n, origin: origin}
}

// ParseSet reads KEY=VALUE, where VALUE is YAML.
func ParseSet(text, origin string) (Setting, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		// The text is not shown: it may hold a password.
		return Setting{}, errors.New(origin + " wants KEY=VALUE")
	}
	return Text(strings.TrimSpace(key), value, origin), nil
}

func stringNode(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}
