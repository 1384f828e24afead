package state

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

const base64Prefix = "b64:"

// Text is a string of any bytes. In JSON it is itself where it is valid UTF-8,
// else base64 behind "b64:", since encoding/json replaces invalid UTF-8 without
// an error (dbtrail/dbtrail#865).
type Text string

// MarshalJSON writes t as the type's comment says.
func (t Text) MarshalJSON() ([]byte, error) {
	s := string(t)
	if !utf8.ValidString(s) || strings.HasPrefix(s, base64Prefix) {
		s = base64Prefix + base64.StdEncoding.EncodeToString([]byte(s))
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if enc, ok := strings.CutPrefix(s, base64Prefix); ok {
		raw, err := base64.StdEncoding.DecodeString(enc)
		if err != nil {
			return fmt.Errorf("decode %q: %w", s, err)
		}
		s = string(raw)
	}
	*t = Text(s)
	return nil
}
