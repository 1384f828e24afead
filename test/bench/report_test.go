package main

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func made(run, way string, round int, seconds float64) record {
	return record{Run: run, Machine: "a machine", Server: "MySQL 9.7.4", Binlog: binlogOn, Data: "1x1000000", Tables: 1, Rows: 1_000_000, Bytes: 1 << 30,
		Measure: copyMeasure, Way: way, Round: round, Seconds: seconds, CPUSeconds: 4, PeakBytes: 100 << 20}
}

func TestTablesAreOfTheLastRunWithoutTrials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	for _, r := range []record{
		made("first", ourWay, 1, 99), made("first", dumpWay, 1, 99),
		made("second", limitWay, 0, 1),
		made("second", ourWay, 1, 12), made("second", ourWay, 2, 10), made("second", ourWay, 3, 11),
		made("second", limitWay, 1, 10), made("second", mydumperWay, 1, 22),
	} {
		if err := r.appendTo(path); err != nil {
			t.Fatal(err)
		}
	}
	all, err := readRecords(path)
	if err != nil {
		t.Fatal(err)
	}
	got := report(all)
	if want := "| on | 3 | – | 22.0 s | 10.0 s | 11.0 s | 1.10 | 2.00 | – | 4.0 | 100 |"; !strings.Contains(got, want) {
		t.Errorf("the tables lack %q:\n%s", want, got)
	}
	if strings.Contains(got, "does not count") {
		t.Errorf("a run that counts is said not to:\n%s", got)
	}
	slow := made("third", limitWay, 1, 21)
	if got := report([]record{slow, made("third", mydumperWay, 1, 22)}); !strings.Contains(got, "does not count") {
		t.Errorf("a limit that is none goes unnoticed:\n%s", got)
	}
}

func TestPictureIsXML(t *testing.T) {
	d := xml.NewDecoder(strings.NewReader(picture([]record{made("r", ourWay, 1, 10), made("r", limitWay, 1, 9)})))
	circles := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	if circles != 6 { // seconds of both and memory of one, by rows and by tables
		t.Errorf("%d points", circles)
	}
}

func TestAFileIsCutBetweenRows(t *testing.T) {
	f := &rowFile{marks: []int64{10, 20, 30, 34}}
	if got, want := f.cut(3), []piece{{0, 30}, {30, 34}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
