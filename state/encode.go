package state

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MarshalJSON writes an open end as an empty list, nil or not.
func (r Range) MarshalJSON() ([]byte, error) { return r.append(nil) }

func (r Range) append(dst []byte) ([]byte, error) {
	dst, err := appendBound(append(dst, `{"after":`...), r.After)
	if err != nil {
		return nil, err
	}
	if dst, err = appendBound(append(dst, `,"to":`...), r.To); err != nil {
		return nil, err
	}
	return append(dst, '}'), nil
}

func appendBound(dst []byte, bound []Text) ([]byte, error) {
	dst = append(dst, '[')
	for i, t := range bound {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendText(dst, t); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// appendRanges writes what encoding/json would, which calls MarshalJSON for each
// range and checks the result: a save of 100,000 took twice as long that way.
func appendRanges(dst []byte, ranges []Range) ([]byte, error) {
	dst = append(dst, '[')
	for i, r := range ranges {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = r.append(dst); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// encode returns s in the one form that state files have: fields in the order
// of the types, indented by two blanks, behind them the long lists, an item on
// each line, a newline at the end.
func encode(s *State) ([]byte, error) {
	full := s.withoutNil()
	head := struct {
		*State
		Tables         *int `json:"tables,omitempty"`
		ObjectsCreated *int `json:"objects_created,omitempty"`
	}{State: &full}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // names are read by people
	enc.SetIndent("", "  ")
	if err := enc.Encode(head); err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	buf.Truncate(buf.Len() - len("\n}\n"))
	enc.SetIndent("", "")
	lists := appendShared
	if s.FormatVersion == plainFormat {
		lists = appendPlain
	}
	if err := lists(&buf, enc, &full); err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	return append(buf.Bytes(), "\n}\n"...), nil
}

// plainTable is a Table as the type has it.
type plainTable struct {
	*Table
	Done ranges `json:"done"`
}

// appendPlain appends the lists of a state as the types have them.
func appendPlain(buf *bytes.Buffer, enc *json.Encoder, s *State) error {
	tables := make([]plainTable, len(s.Tables))
	for i := range s.Tables {
		tables[i] = plainTable{&s.Tables[i], s.Tables[i].Done}
	}
	if err := appendLines(buf, enc, "tables", tables); err != nil {
		return err
	}
	return appendLines(buf, enc, "objects_created", s.ObjectsCreated)
}

// appendShared appends them with what many items share written once.
func appendShared(buf *bytes.Buffer, enc *json.Encoder, s *State) error {
	c := toContent(s)
	if err := appendLines(buf, enc, "positions", c.Positions); err != nil {
		return err
	}
	if err := appendLines(buf, enc, "tables", c.Tables); err != nil {
		return err
	}
	return appendLines(buf, enc, "objects_created", c.ObjectsCreated)
}

// appendLines appends a field that is a list with an item on each line.
func appendLines[T any](buf *bytes.Buffer, enc *json.Encoder, name string, items []T) error {
	fmt.Fprintf(buf, ",\n  %q: [", name)
	for i := range items {
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.WriteString("\n    ")
		if err := enc.Encode(&items[i]); err != nil {
			return err
		}
		buf.Truncate(buf.Len() - len("\n"))
	}
	if len(items) > 0 {
		buf.WriteString("\n  ")
	}
	buf.WriteByte(']')
	return nil
}

// withoutNil returns a copy in which every list is there, so that a missing one
// in a file is known for damage. It shares all else with s.
func (s *State) withoutNil() State {
	c := *s
	c.Sources = append([]Source{}, s.Sources...)
	for i := range c.Sources {
		fill(&c.Sources[i].Sessions)
	}
	fill(&c.Selection.Include)
	fill(&c.Selection.Exclude)
	fill(&c.Selection.Routes)
	c.Tables = append([]Table{}, s.Tables...)
	for i := range c.Tables {
		fill(&c.Tables[i].Done)
		fill(&c.Tables[i].Structures)
	}
	fill(&c.ObjectsCreated)
	fill(&c.SwitchedOnTarget)
	fill(&c.SpillFiles)
	return c
}

func fill[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}
