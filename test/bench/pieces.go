package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
)

// markEvery is the least number of bytes between two marks of a rowFile.
const markEvery = 1 << 20

// rowFile has a table's rows in the order of its key, as LOAD DATA reads them
// or as the values of an INSERT.
type rowFile struct {
	path  string
	marks []int64 // where a row ends, about every MiB, and the end of the file
}

// piece is some rows of a rowFile.
type piece struct {
	from, to int64
}

// format is how rows are written into a rowFile.
type format struct{ open, quote, comma, end string }

var (
	loadFormat   = format{"", "", "\t", "\n"}
	insertFormat = format{"(", "'", ",", "),"}
)

// writeRows writes a table's rows to a new file.
func writeRows(ctx context.Context, db *sql.DB, t table, path string, f format) (_ *rowFile, err error) {
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+t.name+" FORCE INDEX (PRIMARY) ORDER BY "+t.shape.key[len("PRIMARY KEY ("):len(t.shape.key)-1])
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := &markWriter{w: bufio.NewWriterSize(file, markEvery)}
	cells := make([]sql.RawBytes, len(t.shape.columns))
	into := make([]any, len(cells))
	for i := range cells {
		into[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		w.row(f, cells)
	}
	w.mark(1)
	return &rowFile{path, w.marks}, errors.Join(rows.Err(), w.w.Flush())
}

type markWriter struct {
	w     *bufio.Writer // keeps its first error for Flush
	at    int64
	marks []int64
}

func (w *markWriter) row(f format, cells []sql.RawBytes) {
	w.put(f.open)
	for i, c := range cells {
		if i > 0 {
			w.put(f.comma)
		}
		w.put(f.quote)
		n, _ := w.w.Write(c)
		w.at += int64(n)
		w.put(f.quote)
	}
	w.put(f.end)
	w.mark(markEvery)
}

func (w *markWriter) put(s string) {
	n, _ := w.w.WriteString(s)
	w.at += int64(n)
}

// mark notes the end of a row if it is so many bytes behind the last mark.
func (w *markWriter) mark(least int64) {
	var last int64
	if n := len(w.marks); n > 0 {
		last = w.marks[n-1]
	}
	if w.at-last >= least {
		w.marks = append(w.marks, w.at)
	}
}

// cut divides the file into pieces of about so many MiB.
func (f *rowFile) cut(mib int) []piece {
	var pieces []piece
	var from int64
	for i, to := range f.marks {
		if (i+1)%mib == 0 || i == len(f.marks)-1 {
			pieces = append(pieces, piece{from, to})
			from = to
		}
	}
	return pieces
}

// warm reads the file, so that the system has it in memory.
func (f *rowFile) warm() error {
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	n, err := io.Copy(io.Discard, file)
	if err == nil && len(f.marks) > 0 && n != f.marks[len(f.marks)-1] {
		err = fmt.Errorf("%s has %d bytes, want %d", f.path, n, f.marks[len(f.marks)-1])
	}
	return err
}
