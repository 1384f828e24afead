package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// What a record is of.
const (
	copyMeasure    = "copy"
	catchUpMeasure = "catch_up"
	impactMeasure  = "impact"
)

// record is one measurement; a line of JSON in the file of results.
type record struct {
	Run      string `json:"run"` // one call of the bench
	Machine  string `json:"machine"`
	Copydb   string `json:"copydb"`
	Server   string `json:"server"`
	Settings string `json:"settings"`
	Binlog   string `json:"target_binlog"` // on or off
	Data     string `json:"data"`
	Tables   int    `json:"tables"`
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"` // of the rows as text
	Measure  string `json:"measure"`
	Load     string `json:"load,omitempty"` // what is written meanwhile or before
	Way      string `json:"way"`
	Variant  string `json:"variant,omitempty"`
	Round    int    `json:"round"` // 0: a trial that chooses a variant

	Seconds      float64 `json:"seconds"`
	CPUSeconds   float64 `json:"cpu_seconds,omitempty"` // of the programs, not of the servers
	PeakBytes    int64   `json:"peak_bytes,omitempty"`
	Transactions int64   `json:"transactions,omitempty"`
	Changes      int64   `json:"changes,omitempty"` // of rows
}

func (b *bench) record(measure, way string, round int, u used) record {
	r := b.base
	r.Measure, r.Way, r.Round = measure, way, round
	r.Seconds, r.CPUSeconds, r.PeakBytes = u.seconds, u.CPU.Seconds(), u.Peak
	return r
}

// appendTo adds the record to a file.
func (r record) appendTo(path string) (err error) {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(line, '\n'))
	return err
}

func readRecords(path string) ([]record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []record
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		all = append(all, r)
	}
	return all, lines.Err()
}

// machine describes where the bench runs.
func machine() string {
	parts := []string{fmt.Sprintf("%d processors", runtime.NumCPU())}
	if m := first("/proc/cpuinfo", `(?m)^model name\s*: (.*)$`); m != "" {
		parts[0] += " (" + m + ")"
	}
	if kib, err := strconv.ParseInt(first("/proc/meminfo", `(?m)^MemTotal:\s*([0-9]+) kB$`), 10, 64); err == nil {
		parts = append(parts, fmt.Sprintf("%d GiB of memory", (kib+1<<19)>>20))
	}
	if system := first("/etc/os-release", `(?m)^PRETTY_NAME="(.*)"$`); system != "" {
		parts = append(parts, system)
	}
	return strings.Join(append(parts, runtime.GOOS+"/"+runtime.GOARCH, runtime.Version()), ", ")
}

// first is what a pattern's group finds in a file; empty if there is no such file.
func first(path, pattern string) string {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if m := regexp.MustCompile(pattern).FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}
