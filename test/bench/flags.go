package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/copydb/copydb/test/servers"
)

// options are the flags.
type options struct {
	copydb       string
	kinds        []servers.Kind
	data         []dataset
	contestants  []string // names as in the tables
	binlogs      []string
	loads        []load
	rounds       int
	transactions int
	impact       time.Duration
	quick        bool // no trials of variants
	replicas     bool
	serverArgs   []string
	settings     []string // of copydb

	results string
	show    bool // nothing but the tables of results
	svg     string
}

// words are flags that are lists of names.
type words struct{ kinds, data, contestants, binlogs, loads, serverArgs, settings string }

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var w words
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.copydb, "copydb", "bin/copydb", "the copydb binary")
	flags.StringVar(&w.kinds, "kinds", string(servers.MySQL)+","+string(servers.MariaDB1011), "kinds of servers, with commas")
	flags.StringVar(&w.data, "data", mainSet, "data sets, with commas: "+strings.Join(slices.Sorted(maps.Keys(datasets)), ", ")+", or TABLESxROWS")
	scale := flags.Float64("scale", 1, "times the rows of each table")
	flags.StringVar(&w.contestants, "contestants", "dump,mydumper,limit,copydb", "who copies, with commas; none: no copy is measured")
	flags.StringVar(&w.binlogs, "binlog", binlogOn, "the target's binary log while copies are measured: on, off, or on,off")
	flags.StringVar(&w.loads, "loads", loads[0].name, "write loads to catch up with, on the data set "+mainSet+" only: uniform, hot, inserts, large, with commas; none")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each is measured")
	flags.IntVar(&o.transactions, "transactions", 20_000, "transactions of a recorded write load")
	flags.BoolVar(&o.replicas, "replicas", true, "let the target's own replica catch up, too")
	flags.DurationVar(&o.impact, "impact", 0, "measure transactions/s of the source beside copydb, on the data set "+mainSet+" only, and alone for so long")
	flags.BoolVar(&o.quick, "quick", false, "one variant of mydumper and of the load limit, without trying which is the fastest")
	flags.StringVar(&w.serverArgs, "server-args", "", "more options of both servers, with spaces")
	flags.StringVar(&w.settings, "settings", "", "more lines of copydb's configuration, with semicolons")
	flags.StringVar(&o.results, "results", "", "file of JSON lines to which measurements are added; the tables are those of all that is in it")
	flags.BoolVar(&o.show, "print", false, "measure nothing, print the tables of -results")
	flags.StringVar(&o.svg, "svg", "", "file for the picture of growth, from data sets named TABLESxROWS")
	smoke := flags.Bool("smoke", false, "a tiny run that only shows that everything works")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *smoke {
		*scale, o.rounds, o.transactions = 0.002, 1, 200
	}
	if *scale <= 0 || o.rounds < 1 || o.transactions < 1 {
		return o, errors.New("-scale, -rounds and -transactions must be more than 0")
	}
	if o.show && o.results == "" {
		return o, errors.New("-print needs -results")
	}
	err := w.into(&o, *scale)
	return o, err
}

func (w words) into(o *options, scale float64) (err error) {
	if o.kinds, err = list("-kinds", w.kinds, servers.ParseKind); err != nil {
		return err
	}
	if o.data, err = list("-data", w.data, func(name string) (dataset, error) { return parseDataset(name, scale) }); err != nil {
		return err
	}
	if o.contestants, err = list("-contestants", w.contestants, oneOf(contestantFlags)); err != nil {
		return err
	}
	if o.binlogs, err = list("-binlog", w.binlogs, oneOf(map[string]string{binlogOn: binlogOn, binlogOff: binlogOff})); err != nil {
		return err
	}
	byName := map[string]load{}
	for _, l := range loads {
		byName[l.name] = l
	}
	o.loads, err = list("-loads", w.loads, oneOf(byName))
	o.serverArgs = strings.Fields(w.serverArgs)
	o.settings = strings.FieldsFunc(w.settings, func(r rune) bool { return r == ';' })
	return err
}

// list parses words with commas; "none" is an empty list.
func list[T any](flag, text string, parse func(string) (T, error)) ([]T, error) {
	if text == "none" {
		return nil, nil
	}
	var out []T
	for _, word := range strings.Split(text, ",") {
		v, err := parse(word)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func oneOf[T any](values map[string]T) func(string) (T, error) {
	return func(word string) (T, error) {
		v, ok := values[word]
		if !ok {
			return v, fmt.Errorf("unknown word %q, want some of %s", word, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
		}
		return v, nil
	}
}
