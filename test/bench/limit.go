package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"
)

// loadLimit is how fast the target takes rows that need not be read from a
// source: from files that are in memory already, with nobody to keep account.
type loadLimit struct {
	*bench
	loads, inserts []*rowFile // of each table of the data set
}

// method is a way to write rows.
type method struct {
	name  string
	mib   int  // size of a piece, which is one transaction
	loads bool // LOAD DATA, else INSERT in statements of a MiB
}

var (
	load8   = method{"LOAD DATA 8 MiB", 8, true}
	methods = []method{load8, {"LOAD DATA 16 MiB", 16, true}, {"INSERT 1 MiB", 8, false}}
)

// When the indexes are made.
const (
	atOnce     = "each table's indexes behind its rows"
	afterwards = "indexes behind all rows"
	inPlace    = "indexes with the rows"
)

// plan is one way to load everything.
type plan struct {
	method
	connections int
	indexes     string
}

func (p plan) String() string {
	return fmt.Sprintf("%s, %d connections, %s", p.name, p.connections, p.indexes)
}

// prepareLimit writes the files.
func (b *bench) prepareLimit(ctx context.Context) (_ *loadLimit, err error) {
	l := &loadLimit{bench: b}
	dir := filepath.Join(b.lab.Dir, "rows")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	b.say("writing files for the load limit")
	if l.loads, err = b.writeFiles(ctx, dir, ".tsv", loadFormat); err == nil && !b.quick {
		l.inserts, err = b.writeFiles(ctx, dir, ".sql", insertFormat)
	}
	return l, err
}

func (b *bench) writeFiles(ctx context.Context, dir, ext string, f format) ([]*rowFile, error) {
	var files []*rowFile
	for _, t := range b.data.tables {
		file, err := writeRows(ctx, b.lab.Source.DB(), t, filepath.Join(dir, t.name+ext), f)
		if err != nil {
			return nil, fmt.Errorf("write the rows of %s to a file: %w", t.name, err)
		}
		files = append(files, file)
	}
	return files, nil
}

// likely is a plan that is good without a trial. To build an index takes more
// than to keep it where a table is small.
func (l *loadLimit) likely() plan {
	const small = 4 << 20
	if l.full.bytes/int64(len(l.data.tables)) < small {
		return plan{load8, 4, inPlace}
	}
	return plan{load8, 4, atOnce}
}

// best is the plan that is the fastest when each is tried once: first the
// methods, then the winner with other moments for the indexes.
func (l *loadLimit) best(ctx context.Context) (way, error) {
	var ways []way
	for _, m := range methods {
		for _, n := range []int{2, 4} {
			ways = append(ways, l.way(plan{m, n, atOnce}))
		}
	}
	first, took, err := l.fastest(ctx, ways)
	if err != nil || l.noIndexes() {
		return first, err
	}
	again := []way{}
	for _, indexes := range []string{afterwards, inPlace} {
		p := first.plan
		p.indexes = indexes
		again = append(again, l.way(p))
	}
	second, took2, err := l.fastest(ctx, again)
	if err != nil || took2 > took {
		return first, err
	}
	return second, nil
}

func (l *loadLimit) noIndexes() bool {
	for _, t := range l.data.tables {
		if len(t.shape.indexes) > 0 {
			return false
		}
	}
	return true
}

func (l *loadLimit) way(p plan) way {
	return way{name: limitWay, variant: p.String(), plan: p, run: func(ctx context.Context) (used, error) {
		took, err := l.load(ctx, p)
		return used{seconds: took.Seconds()}, err
	}}
}

func (l *loadLimit) files(p plan) []*rowFile {
	if p.loads {
		return l.loads
	}
	return l.inserts
}

// run of pieces that one connection loads in the order of the key.
type stretch struct {
	table  int
	file   *rowFile
	pieces []piece
	last   func() bool // tells whether its caller is the last of its table
}

// load does what a plan says and returns how long it took.
func (l *loadLimit) load(ctx context.Context, p plan) (time.Duration, error) {
	for _, f := range l.files(p) {
		if err := f.warm(); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	if err := l.createTables(ctx, p); err != nil {
		return 0, err
	}
	work := l.stretches(p)
	err := l.each(ctx, p.connections, len(work), func(conn *sql.Conn, i int) error {
		return l.loadStretch(ctx, conn, p, work[i])
	})
	if err == nil && p.indexes == afterwards {
		err = l.each(ctx, p.connections, len(l.data.tables), func(conn *sql.Conn, i int) error {
			return l.index(ctx, conn, i)
		})
	}
	return time.Since(began), err
}

func (l *loadLimit) createTables(ctx context.Context, p plan) error {
	if _, err := l.lab.Target.DB().ExecContext(ctx, createDatabase); err != nil {
		return err
	}
	return l.each(ctx, p.connections, len(l.data.tables), func(conn *sql.Conn, i int) error {
		_, err := conn.ExecContext(ctx, l.data.tables[i].create(p.indexes == inPlace))
		return err
	})
}

// stretches divides the work: whole tables, or runs of pieces of them where
// there are more connections than tables.
func (l *loadLimit) stretches(p plan) []stretch {
	parts := (p.connections + len(l.data.tables) - 1) / len(l.data.tables)
	var work []stretch
	for i, f := range l.files(p) {
		pieces := f.cut(p.mib)
		n := min(parts, len(pieces))
		last := countdown(n)
		for part := range n {
			work = append(work, stretch{i, f, pieces[part*len(pieces)/n : (part+1)*len(pieces)/n], last})
		}
	}
	return work
}

// each calls do for numbers up to n, over so many connections at once.
func (l *loadLimit) each(ctx context.Context, connections, n int, do func(*sql.Conn, int) error) error {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	g, ctx := errgroup.WithContext(ctx)
	for range min(connections, n) {
		g.Go(func() error {
			conn, err := l.lab.Target.DB().Conn(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			if _, err := conn.ExecContext(ctx, "SET SESSION foreign_key_checks = 0, unique_checks = 0"); err != nil {
				return err
			}
			for i := range next {
				if err := do(conn, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (l *loadLimit) loadStretch(ctx context.Context, conn *sql.Conn, p plan, s stretch) error {
	file, err := os.Open(s.file.path)
	if err != nil {
		return err
	}
	defer file.Close()
	t := l.data.tables[s.table]
	for _, piece := range s.pieces {
		if p.loads {
			err = loadPiece(ctx, conn, t, file, piece)
		} else {
			err = insertPiece(ctx, conn, t, file, s.file, piece)
		}
		if err != nil {
			return fmt.Errorf("load %s: %w", t.name, err)
		}
	}
	if p.indexes == atOnce && s.last() {
		return l.index(ctx, conn, s.table)
	}
	return nil
}

func (l *loadLimit) index(ctx context.Context, conn *sql.Conn, table int) error {
	statement := l.data.tables[table].addIndexes()
	if statement == "" {
		return nil
	}
	_, err := conn.ExecContext(ctx, statement)
	return err
}

func loadPiece(ctx context.Context, conn *sql.Conn, t table, file *os.File, p piece) error {
	name := fmt.Sprintf("%s@%d", t.name, p.from)
	mysql.RegisterReaderHandler(name, func() io.Reader { return io.NewSectionReader(file, p.from, p.to-p.from) })
	defer mysql.DeregisterReaderHandler(name)
	_, err := conn.ExecContext(ctx, "LOAD DATA LOCAL INFILE 'Reader::"+name+"' REPLACE INTO TABLE "+t.name+" CHARACTER SET binary")
	return err
}

// insertPiece writes a statement for the rows between two marks, and a
// transaction for the piece.
func insertPiece(ctx context.Context, conn *sql.Conn, t table, file *os.File, f *rowFile, p piece) error {
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	from := p.from
	for _, to := range f.marks {
		if to <= p.from || to > p.to {
			continue
		}
		values := make([]byte, to-from)
		if _, err := file.ReadAt(values, from); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		from = to
		var statement strings.Builder
		statement.Grow(len(values) + 100)
		statement.WriteString("INSERT INTO " + t.name + " VALUES ")
		statement.Write(values[:len(values)-1]) // without the last comma
		if _, err := conn.ExecContext(ctx, statement.String()); err != nil {
			return err
		}
	}
	_, err := conn.ExecContext(ctx, "COMMIT")
	return err
}
