package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCounts(t *testing.T) {
	lines := `{"Action":"run","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"A","Output":"=== RUN   A\n"}
{"Action":"output","Package":"p","Test":"A","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"A/b","Elapsed":2}
{"Action":"pass","Package":"p","Test":"A","Elapsed":2.04}
{"Action":"pass","Package":"p","Test":"E","Elapsed":0.5}
{"Action":"output","Package":"p","Test":"B","Output":"=== RUN   B\n"}
{"Action":"output","Package":"p","Test":"B","Output":"what is wrong\n"}
{"Action":"fail","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"C","Output":"why not\n"}
{"Action":"skip","Package":"p","Test":"C"}
{"Action":"output","Package":"q","Test":"D","Output":"=== RUN   D\n"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}
said by a compiler
`
	var out bytes.Buffer
	c := &counter{out: &out, held: map[string][]string{}}
	if err := c.read(strings.NewReader(lines)); err != nil {
		t.Fatal(err)
	}
	if got, want := c.summary(false), "   2.0 s p A\nFAILED p B\nFAILED q D (did not end)\n3 passed, 2 failed, 1 skipped"; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got, want := out.String(), "what is wrong\nwhy not\nFAIL\nsaid by a compiler\n"; got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
	if got := (&counter{out: &out}).summary(false); got != "0 passed, 1 failed" {
		t.Errorf("a package that does not build: %s", got)
	}
}
