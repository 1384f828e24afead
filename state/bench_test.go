package state

import (
	"fmt"
	"path/filepath"
	"testing"
)

func benchmarkSave(b *testing.B, st *State) {
	s, err := Open(filepath.Join(b.TempDir(), "STATE"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if err := s.Save(st); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSave5000Tables(b *testing.B) { benchmarkSave(b, sample(5000)) }

func manyRanges() *State {
	st := sample(1)
	for i := range 100_000 {
		st.Tables[0].Done = append(st.Tables[0].Done, Range{
			After: []Text{Text(fmt.Sprint(i * 1000)), "x\xff"}, To: []Text{Text(fmt.Sprint(i*1000 + 500)), "x\xfe"},
		})
	}
	st.Tables[0].Done = st.Tables[0].Done[2:]
	return st
}

func BenchmarkSave100000Ranges(b *testing.B) { benchmarkSave(b, manyRanges()) }

func BenchmarkLoad5000Tables(b *testing.B) {
	path := filepath.Join(b.TempDir(), "STATE")
	s, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.Save(sample(5000)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Load(path); err != nil {
			b.Fatal(err)
		}
	}
}
