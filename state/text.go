package state

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const base64Prefix = "b64:"

var errNotText = errors.New("a text must be a JSON string")

// Text is a string of any bytes. In JSON it is itself where it is valid UTF-8,
// else base64 behind "b64:", since encoding/json replaces invalid UTF-8 without
// an error.
type Text string

// MarshalJSON writes t as the type's comment says.
func (t Text) MarshalJSON() ([]byte, error) { return appendText(nil, t) }

func appendText(dst []byte, t Text) ([]byte, error) {
	s := string(t)
	switch {
	case !utf8.ValidString(s) || strings.HasPrefix(s, base64Prefix):
		dst = append(dst, '"')
		dst = append(dst, base64Prefix...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(s))
		return append(dst, '"'), nil
	case isPlain(s):
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"'), nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}

// isPlain reports whether s stands in JSON as it is. A state may hold a hundred
// thousand bounds, so that a call of encoding/json for each would be felt.
func isPlain[S string | []byte](s S) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// UnmarshalJSON reads what MarshalJSON writes. Errors do not show the value,
// which may be a row's.
func (t *Text) UnmarshalJSON(b []byte) error {
	s, err := unquote(b)
	if err != nil {
		return err
	}
	if enc, ok := strings.CutPrefix(s, base64Prefix); ok {
		raw, err := base64.StdEncoding.Strict().DecodeString(enc)
		if err != nil {
			return fmt.Errorf("decode text behind %s: %w", base64Prefix, err)
		}
		s = string(raw)
	}
	*t = Text(s)
	return nil
}

func unquote(b []byte) (string, error) {
	if len(b) < 2 || b[0] != '"' {
		return "", errNotText
	}
	if inner := b[1 : len(b)-1]; isPlain(inner) {
		return string(inner), nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return "", errNotText
	}
	return s, nil
}
