package state

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzText(f *testing.F) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, seed := range []string{
		"", "1000", "b64:", "b64:YQ==", "b64", string(all), "\xff", "caf\xe9", "naïve 😀", "\u2028<&>\"\\\x00\x7f",
		"\xed\xa0\x80", "\ufffd", "a\n", string(all[0x20:0x7f]),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		want := Range{After: []Text{Text(raw), ""}, To: []Text{}}
		b, err := json.Marshal([]Range{want})
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(b) || !json.Valid(b) {
			t.Fatalf("%q is written as %q", raw, b)
		}
		var got []Range
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%q is written as %s: %v", raw, b, err)
		}
		if len(got) != 1 || string(got[0].After[0]) != string(raw) || got[0].After[1] != "" || got[0].To == nil {
			t.Fatalf("%q is written as %s and read as %q", raw, b, got)
		}
		dst, _ := appendText(nil, Text(raw))
		var plain string
		if utf8.Valid(raw) && !strings.HasPrefix(string(raw), "b64:") &&
			(json.Unmarshal(dst, &plain) != nil || plain != string(raw)) {
			t.Fatalf("readable text %q is written as %s", raw, dst)
		}
	})
}
