package state

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// plainFormat is the version of files that have each table whole, as the types
// do: what people and scripts read. Beyond plainTables tables the file would
// grow too large to be saved every few seconds, so what many of them share is
// written once there, which is format 2.
const (
	plainFormat = 1
	plainTables = 500
)

// formatFor is the format that a state is saved in.
func formatFor(s *State) int {
	if len(s.Tables) <= plainTables && len(s.ObjectsCreated) <= 2*plainTables {
		return plainFormat
	}
	return FormatVersion
}

// content is a State as files of both formats have it.
type content struct {
	State
	// Positions are those that the tables name by their number.
	Positions      []Position  `json:"positions"`
	Tables         []tableLine `json:"tables"`
	ObjectsCreated []objects   `json:"objects_created"`
}

// tableLine is a Table. Class is left out where it is converging.
type tableLine struct {
	Database  Text        `json:"database"`
	Table     Text        `json:"table"`
	Status    TableStatus `json:"status"`
	Rows      int64       `json:"rows"`
	Bytes     int64       `json:"bytes"`
	Class     TableClass  `json:"class,omitempty"`
	Component int         `json:"component,omitempty"`
	// At are the numbers of start, first_chunk and last_chunk; -1 is none. Left
	// out, they are those of the table before, or none.
	At         []int       `json:"at,omitempty"`
	Start      *Position   `json:"start,omitempty"`       // format 1
	FirstChunk *Position   `json:"first_chunk,omitempty"` // format 1
	LastChunk  *Position   `json:"last_chunk,omitempty"`  // format 1
	TableID    string      `json:"table_id,omitempty"`
	Done       ranges      `json:"done"`
	Structures []structure `json:"structures"`
}

// ranges are written without a call for each, which takes half of the time.
type ranges []Range

// MarshalJSON implements json.Marshaler.
func (r ranges) MarshalJSON() ([]byte, error) { return appendRanges(nil, r) }

// structure is a StructureSince. One from the table's start on is only its
// digest.
type structure struct {
	At     *int      `json:"at,omitempty"`
	From   *Position `json:"from,omitempty"` // format 1
	Digest string    `json:"digest"`
}

const digestPrefix = "sha256:"

// MarshalJSON implements json.Marshaler.
func (s structure) MarshalJSON() ([]byte, error) {
	if sum, err := hex.DecodeString(strings.TrimPrefix(s.Digest, digestPrefix)); s.At == nil && err == nil {
		return json.Marshal(base64.RawURLEncoding.EncodeToString(sum))
	}
	type plain structure
	return json.Marshal(plain(s))
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *structure) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' {
		type plain structure
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		return dec.Decode((*plain)(s))
	}
	var short string
	if err := json.Unmarshal(raw, &short); err != nil {
		return err
	}
	sum, err := base64.RawURLEncoding.DecodeString(short)
	if err != nil {
		return errors.New("a structure's digest is malformed")
	}
	s.Digest = digestPrefix + hex.EncodeToString(sum)
	return nil
}

// objects are Objects of one type in one database, one behind the other.
type objects struct {
	Type     string `json:"type"`
	Database Text   `json:"database"`
	Name     Text   `json:"name,omitempty"`
	Names    []Text `json:"names,omitempty"` // in place of Name, where there are more
	// AllTables stands for the names of all tables of the database that the state
	// has, in their order.
	AllTables bool `json:"all_tables,omitempty"`
}

// toContent returns s as a file has it.
func toContent(s *State) content {
	c := content{State: *s, Positions: []Position{}, Tables: make([]tableLine, len(s.Tables)), ObjectsCreated: []objects{}}
	numbers := map[Position]int{}
	number := func(p *Position) int {
		if p == nil {
			return -1
		}
		n, ok := numbers[*p]
		if !ok {
			n = len(c.Positions)
			numbers[*p] = n
			c.Positions = append(c.Positions, *p)
		}
		return n
	}
	before := []int{-1, -1, -1}
	for i := range s.Tables {
		l := s.Tables[i].line(number)
		at := l.At
		if slices.Equal(at, before) {
			l.At = nil
		}
		c.Tables[i], before = l, at
	}
	for _, o := range s.ObjectsCreated {
		if n := len(c.ObjectsCreated); n > 0 && c.ObjectsCreated[n-1].Type == o.Type && c.ObjectsCreated[n-1].Database == o.Database {
			c.ObjectsCreated[n-1].add(o.Name)
			continue
		}
		c.ObjectsCreated = append(c.ObjectsCreated, objects{Type: o.Type, Database: o.Database, Name: o.Name})
	}
	for i := range c.ObjectsCreated {
		o := &c.ObjectsCreated[i]
		if len(o.Names) > 0 && slices.Equal(o.Names, c.names(o.Database)) {
			o.Names, o.AllTables = nil, true
		}
	}
	return c
}

// names are those of a database's tables.
func (c *content) names(database Text) []Text {
	var out []Text
	for i := range c.Tables {
		if c.Tables[i].Database == database {
			out = append(out, c.Tables[i].Table)
		}
	}
	return out
}

func (o *objects) add(name Text) {
	if len(o.Names) == 0 {
		o.Name, o.Names = "", []Text{o.Name}
	}
	o.Names = append(o.Names, name)
}

func (t *Table) line(number func(*Position) int) tableLine {
	l := tableLine{Database: t.Database, Table: t.Table, Status: t.Status, Rows: t.Rows, Bytes: t.Bytes, Component: t.Component,
		TableID: t.TableID, Done: t.Done, Structures: make([]structure, len(t.Structures))}
	if t.Class != ClassConverging {
		l.Class = t.Class
	}
	start := &t.Start
	if start.IsZero() {
		start = nil
	}
	l.At = []int{number(start), number(t.FirstChunk), number(t.LastChunk)}
	for i, since := range t.Structures {
		l.Structures[i].Digest = since.Digest
		if since.From != t.Start {
			at := number(&since.From)
			l.Structures[i].At = &at
		}
	}
	return l
}

// state is what toContent was given.
func (c *content) state() (*State, error) {
	s := c.State
	if c.Tables != nil {
		s.Tables = make([]Table, len(c.Tables))
	}
	var before []int
	for i := range c.Tables {
		if c.Tables[i].At == nil {
			c.Tables[i].At = before
		}
		before = c.Tables[i].At
		if err := c.table(&c.Tables[i], &s.Tables[i]); err != nil {
			return nil, fmt.Errorf("table %q.%q: %w", c.Tables[i].Database, c.Tables[i].Table, err)
		}
	}
	if c.ObjectsCreated != nil {
		s.ObjectsCreated = []Object{}
	}
	for _, o := range c.ObjectsCreated {
		names := o.Names
		switch {
		case o.AllTables:
			names = c.names(o.Database)
		case len(names) == 0:
			names = []Text{o.Name}
		}
		for _, n := range names {
			s.ObjectsCreated = append(s.ObjectsCreated, Object{Type: o.Type, Database: o.Database, Name: n})
		}
	}
	return &s, nil
}

func (c *content) table(l *tableLine, t *Table) error {
	*t = Table{Database: l.Database, Table: l.Table, Status: l.Status, Rows: l.Rows, Bytes: l.Bytes, Class: l.Class,
		Component: l.Component, FirstChunk: l.FirstChunk, LastChunk: l.LastChunk, TableID: l.TableID, Done: l.Done}
	if t.Class == "" {
		t.Class = ClassConverging
	}
	if l.Start != nil {
		t.Start = *l.Start
	}
	if l.At != nil {
		if err := c.places(l.At, t); err != nil {
			return err
		}
	}
	if l.Structures != nil {
		t.Structures = make([]StructureSince, len(l.Structures))
	}
	for i, since := range l.Structures {
		from := &t.Start
		switch {
		case since.From != nil:
			from = since.From
		case since.At != nil:
			var err error
			if from, err = c.position(*since.At); err != nil || from == nil {
				return errors.New("a structure's position is not there")
			}
		}
		t.Structures[i] = StructureSince{From: *from, Digest: since.Digest}
	}
	return nil
}

func (c *content) places(at []int, t *Table) error {
	if len(at) != 3 {
		return fmt.Errorf("at has %d numbers", len(at))
	}
	var found [3]*Position
	for i, n := range at {
		var err error
		if found[i], err = c.position(n); err != nil {
			return err
		}
	}
	if found[0] != nil {
		t.Start = *found[0]
	}
	t.FirstChunk, t.LastChunk = found[1], found[2]
	return nil
}

// position returns a copy of a numbered position, nil for -1.
func (c *content) position(n int) (*Position, error) {
	if n == -1 {
		return nil, nil
	}
	if n < 0 || n >= len(c.Positions) {
		return nil, fmt.Errorf("position number %d is not there", n)
	}
	p := c.Positions[n]
	return &p, nil
}
