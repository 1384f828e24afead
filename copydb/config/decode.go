package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decode reads and checks the value of k. Its error never holds a secret.
func (k *Key) decode(n *yaml.Node) (any, error) {
	n = resolve(n)
	if k.Later && !sameYAML(n, k.defaultNode()) {
		return nil, errLater
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil, errors.New("has no value")
	}
	v, err := k.parse(n)
	if err != nil {
		return nil, err
	}
	return v, k.exists(v)
}

// parse reads the value by the key's kind.
func (k *Key) parse(n *yaml.Node) (any, error) {
	switch k.Kind {
	case KindString:
		return decodeString(n)
	case KindSecret:
		s, err := decodeString(n)
		return Secret(s), err
	case KindBool:
		return decodeBool(n)
	case KindInt:
		return k.decodeInt(n)
	case KindThreads:
		if n.Kind == yaml.ScalarNode && n.Value == "auto" {
			return int64(0), nil
		}
		v, err := k.decodeInt(n)
		if err != nil {
			return nil, fmt.Errorf("%w, or auto", err)
		}
		return v, nil
	case KindWord:
		return k.decodeWord(n)
	case KindSize:
		return k.decodeSize(n)
	case KindDuration:
		return k.decodeDuration(n)
	case KindStrings:
		return k.decodeStrings(n)
	case KindUntil:
		return decodeUntil(n)
	}
	return nil, nil // a KindList that has its default
}

// exists refuses a value that a later release brings.
func (k *Key) exists(v any) error {
	if k.Only == nil || k.Kind == KindUntil {
		return nil
	}
	var values []string
	switch v := v.(type) {
	case []string:
		if len(v) == 0 {
			return fmt.Errorf("must be [%s]", strings.Join(k.Only, ", "))
		}
		values = v
	case int64:
		values = []string{"auto"}
		if v != 0 {
			values[0] = strconv.FormatInt(v, 10)
		}
	default:
		values = []string{fmt.Sprint(v)}
	}
	for _, value := range values {
		if !slices.Contains(k.Only, value) {
			return fmt.Errorf("%s: %w", value, errLater)
		}
	}
	return nil
}

// assign stores a decoded value in its field.
func (k *Key) assign(c *Config, v any) {
	if k.field == nil {
		return
	}
	switch to := k.field(c).(type) {
	case *int:
		*to = int(v.(int64))
	case *int64:
		*to = v.(int64)
	case *uint32:
		*to = uint32(v.(int64))
	default:
		reflect.ValueOf(to).Elem().Set(reflect.ValueOf(v))
	}
}

// resolve follows an alias to the node that it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// sameYAML reports whether two nodes hold the same value.
func sameYAML(a, b *yaml.Node) bool {
	var va, vb any
	if a.Decode(&va) != nil || b.Decode(&vb) != nil {
		return false
	}
	return reflect.DeepEqual(va, vb)
}

// decodeString does not show what it refuses: it may be a password.
func decodeString(n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode {
		switch n.ShortTag() {
		case "!!str", "!!timestamp": // a GTID may look like a date
			return n.Value, nil
		}
		return "", errors.New("must be a string; put it in quotes")
	}
	return "", errors.New("must be a string")
}

func decodeBool(n *yaml.Node) (bool, error) {
	var v bool
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(&v) != nil {
		return false, fmt.Errorf("must be true or false%s", notThis(n))
	}
	return v, nil
}

func (k *Key) decodeInt(n *yaml.Node) (int64, error) {
	var v int64
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&v) != nil {
		return 0, fmt.Errorf("must be a whole number%s", notThis(n))
	}
	return v, k.inRange(v)
}

func (k *Key) decodeWord(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(k.Words, n.Value) {
		return "", fmt.Errorf("must be one of %s%s", strings.Join(k.Words, ", "), notThis(n))
	}
	return n.Value, nil
}

func (k *Key) decodeStrings(n *yaml.Node) ([]string, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, errors.New(`must be a list: ["a", "b"]`)
	}
	list := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		s, err := decodeString(resolve(item))
		switch {
		case err != nil:
			return nil, fmt.Errorf("element %d %w", len(list)+1, err)
		case k.Words != nil && !slices.Contains(k.Words, s):
			return nil, fmt.Errorf("element %d must be one of %s, not %q", len(list)+1, strings.Join(k.Words, ", "), s)
		}
		list = append(list, s)
	}
	return list, nil
}

func (k *Key) decodeDuration(n *yaml.Node) (time.Duration, error) {
	v, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return 0, fmt.Errorf("must be a duration such as 500ms, 10s or 5m%s", notThis(n))
	}
	return v, k.inRange(int64(v))
}

var sizeUnits = []struct {
	name   string
	factor int64
}{{"KiB", kib}, {"MiB", kib * kib}, {"GiB", gib}, {"", 1}}

func (k *Key) decodeSize(n *yaml.Node) (int64, error) {
	bad := fmt.Errorf("must be a size such as 64KiB, 16MiB or 1GiB, or a number of bytes%s", notThis(n))
	if n.Kind != yaml.ScalarNode {
		return 0, bad
	}
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(n.Value, unit.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || v < 0 || v > math.MaxInt64/unit.factor {
			return 0, bad
		}
		v *= unit.factor
		return v, k.inRange(v)
	}
	return 0, bad
}

func sizeText(v int64) string {
	for _, unit := range []int{2, 1, 0} {
		if u := sizeUnits[unit]; v > 0 && v%u.factor == 0 {
			return fmt.Sprintf("%d%s", v/u.factor, u.name)
		}
	}
	return strconv.FormatInt(v, 10)
}

// shortDuration prints 5m, not 5m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// text prints a number of the key's kind.
func (k *Key) text(v int64) string {
	switch k.Kind {
	case KindSize:
		return sizeText(v)
	case KindDuration:
		return shortDuration(time.Duration(v))
	}
	return strconv.FormatInt(v, 10)
}

func (k *Key) inRange(v int64) error {
	switch {
	case v == 0 && k.ZeroToo:
		return nil
	case v < k.Min && k.ZeroToo:
		return fmt.Errorf("must be 0 or at least %s", k.text(k.Min))
	case v < k.Min:
		return fmt.Errorf("must be at least %s", k.text(k.Min))
	case k.Max > 0 && v > k.Max:
		return fmt.Errorf("must be at most %s", k.text(k.Max))
	}
	return nil
}

// notThis shows what was given in place of what is wanted.
func notThis(n *yaml.Node) string {
	const limit = 40
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	if len(n.Value) > limit {
		return fmt.Sprintf(", not %q…", n.Value[:limit])
	}
	return fmt.Sprintf(", not %q", n.Value)
}
