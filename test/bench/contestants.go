package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/copydb/copydb/test/servers"
)

// Names of the contestants, as in the flag and in the tables of results.
const (
	dumpWay     = "dump pipe"
	mydumperWay = "mydumper + myloader"
	limitWay    = "load limit"
	ourWay      = "copydb"
)

var contestantFlags = map[string]string{"dump": dumpWay, "mydumper": mydumperWay, "limit": limitWay, "copydb": ourWay}

// ways are the contestants that were asked for. Of those that come in several
// variants, it is the one that is the fastest in a trial of each.
func (b *bench) ways(ctx context.Context) ([]way, error) {
	var ways []way
	if b.wants(dumpWay) {
		ways = append(ways, way{name: dumpWay, variant: "--single-transaction", run: b.dumpPipe})
	}
	if b.wants(mydumperWay) {
		w, err := b.bestMyDumper(ctx)
		if err != nil {
			return nil, err
		}
		ways = append(ways, w)
	}
	if b.wants(limitWay) {
		w, err := b.bestLimit(ctx)
		if err != nil {
			return nil, err
		}
		ways = append(ways, w)
	}
	if b.wants(ourWay) {
		ways = append(ways, way{name: ourWay, run: b.copydbRun})
	}
	return ways, nil
}

func (b *bench) bestLimit(ctx context.Context) (way, error) {
	l, err := b.prepareLimit(ctx)
	if err != nil {
		return way{}, err
	}
	if b.quick {
		return l.way(l.likely()), nil
	}
	return l.best(ctx)
}

func (b *bench) copydbRun(ctx context.Context) (used, error) {
	return b.copydbCall(ctx, "--config", "copydb.yaml")
}

func (b *bench) copydbCall(ctx context.Context, args ...string) (used, error) {
	var out bytes.Buffer
	p, err := b.lab.Start(ctx, &out, &out, args...)
	if err != nil {
		return used{}, err
	}
	code, took, err := p.Wait()
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d:\n%s", code, out.String())
	}
	return used{took.Seconds(), p.Usage()}, err
}

// dumpPipe runs the servers' own client tools, as one does by hand.
func (b *bench) dumpPipe(ctx context.Context) (used, error) {
	source, target := b.lab.Source, b.lab.Target
	dumpArgs := []string{"--single-transaction", "--databases", database}
	if !b.kind.IsMariaDB() {
		dumpArgs = append([]string{"--set-gtid-purged=OFF"}, dumpArgs...)
	}
	dump := command(ctx, source, "mysqldump", dumpArgs...)
	load := command(ctx, target, "mysql")
	r, w, err := os.Pipe()
	if err != nil {
		return used{}, err
	}
	var said bytes.Buffer
	dump.Stdout, dump.Stderr, load.Stdin, load.Stderr = w, &said, r, &said
	began := time.Now()
	err = load.Start()
	if err == nil {
		err = dump.Run()
		err = errors.Join(err, w.Close(), r.Close(), load.Wait())
	}
	if err != nil {
		return used{}, fmt.Errorf("%w\n%s", err, said.String())
	}
	return since(began, dump, load), nil
}

func command(ctx context.Context, srv *servers.Server, tool string, args ...string) *exec.Cmd {
	argv := append(append(srv.Tool(tool), srv.ConnArgs()...), args...)
	return exec.CommandContext(ctx, argv[0], argv[1:]...)
}

// since sums up what ended programs took.
func since(began time.Time, programs ...*exec.Cmd) used {
	u := used{seconds: time.Since(began).Seconds()}
	for _, p := range programs {
		u.CPU += p.ProcessState.UserTime() + p.ProcessState.SystemTime()
	}
	return u
}

func (b *bench) bestMyDumper(ctx context.Context) (way, error) {
	m, err := servers.LocateMyDumper(ctx)
	if err != nil {
		return way{}, err
	}
	pieces := b.data.tables[0].shape.pieces
	var ways []way
	for _, threads := range []int{2, 4} {
		ways = append(ways, way{name: mydumperWay, variant: fmt.Sprintf("%s --threads=%d --rows=%d", m.Version, threads, pieces),
			run: func(ctx context.Context) (used, error) { return b.myDumper(ctx, m, threads, pieces) }})
	}
	if b.quick {
		return ways[len(ways)-1], nil
	}
	w, _, err := b.fastest(ctx, ways)
	return w, err
}

// myDumper dumps to files and loads them. myloader keeps what it loads out of
// the binary log unless it is told not to.
func (b *bench) myDumper(ctx context.Context, m *servers.MyDumper, threads, pieces int) (used, error) {
	dir, err := os.MkdirTemp(b.lab.Dir, "mydumper-")
	if err != nil {
		return used{}, err
	}
	defer os.RemoveAll(dir)
	parallel := fmt.Sprintf("--threads=%d", threads)
	dump := m.Command(ctx, "mydumper", b.lab.Source, "--database="+database, "--outputdir="+dir, parallel, fmt.Sprintf("--rows=%d", pieces))
	loadArgs := []string{"--directory=" + dir, parallel}
	if b.base.Binlog == binlogOn {
		loadArgs = append(loadArgs, "--enable-binlog")
	}
	load := m.Command(ctx, "myloader", b.lab.Target, loadArgs...)
	began := time.Now()
	for _, program := range []*exec.Cmd{dump, load} {
		program.Dir = b.lab.Dir
		if said, err := program.CombinedOutput(); err != nil {
			return used{}, fmt.Errorf("%s: %w\n%s", strings.Join(program.Args, " "), err, said)
		}
	}
	return since(began, dump, load), nil
}
