package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The values of catch_up.until that are words.
const (
	UntilCaughtUp = "caught_up"
	UntilNever    = "never"

	untilCutover = "cutover"
)

// Until is where catch-up ends: a word, or a position on the source (either
// GTID, or File and Pos).
type Until struct {
	Word string // UntilCaughtUp, UntilNever, or "" where a position is given
	GTID string
	File string
	Pos  uint64
}

var errUntil = errors.New("must be caught_up, never, {gtid: SET}, {file: NAME, pos: N}, gtid:SET or file:NAME:POS")

func untilWord(text string) (Until, error) {
	switch text {
	case UntilCaughtUp, UntilNever:
		return Until{Word: text}, nil
	case untilCutover:
		return Until{}, fmt.Errorf("%s: %w", text, errLater)
	}
	if set, ok := strings.CutPrefix(text, "gtid:"); ok {
		return untilGTID(set)
	}
	if rest, ok := strings.CutPrefix(text, "file:"); ok {
		i := strings.LastIndexByte(rest, ':')
		if i < 0 {
			return Until{}, errUntil
		}
		return untilFile(rest[:i], rest[i+1:])
	}
	return Until{}, errUntil
}

func untilGTID(set string) (Until, error) {
	if set = strings.TrimSpace(set); set == "" {
		return Until{}, errors.New("the GTID set is empty")
	}
	return Until{GTID: set}, nil
}

func untilFile(file, pos string) (Until, error) {
	n, err := strconv.ParseUint(pos, 10, 64)
	if file == "" || err != nil || n < 4 {
		return Until{}, errors.New("a position is the name of a binary log file and a number of at least 4")
	}
	return Until{File: file, Pos: n}, nil
}

func decodeUntil(n *yaml.Node) (Until, error) {
	if n.Kind == yaml.ScalarNode {
		text, err := decodeString(n)
		if err != nil {
			return Until{}, errUntil
		}
		return untilWord(text)
	}
	fields, err := untilFields(n)
	if err != nil {
		return Until{}, err
	}
	gtid, hasGTID := fields["gtid"]
	file, hasFile := fields["file"]
	pos, hasPos := fields["pos"]
	switch {
	case hasGTID && len(fields) == 1:
		return untilGTID(gtid)
	case hasFile && hasPos && len(fields) == 2:
		return untilFile(file, pos)
	}
	return Until{}, errUntil
}

// untilFields reads the mapping's scalars. The wrong kind of scalar ends in a
// position that does not parse.
func untilFields(n *yaml.Node) (map[string]string, error) {
	if n.Kind != yaml.MappingNode {
		return nil, errUntil
	}
	fields := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if _, twice := fields[key.Value]; twice || value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null" {
			return nil, errUntil
		}
		fields[key.Value] = value.Value
	}
	return fields, nil
}
