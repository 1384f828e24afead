package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
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
// of the types, indented by two blanks, lists of finished ranges on one line, a
// newline at the end.
func encode(s *State) ([]byte, error) {
	full := s.withoutNil()
	done := make([][]Range, len(full.Tables))
	for i := range full.Tables {
		done[i], full.Tables[i].Done = full.Tables[i].Done, []Range{}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // names are read by people
	if err := enc.Encode(&full); err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	out, err := indent(bytes.TrimSpace(buf.Bytes()), done)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	return append(out, '\n'), nil
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

// indent returns compact JSON as json.Indent would, with the n-th list of ranges
// on one line for the n-th empty list under a key "done": a hundred thousand
// ranges on eight lines each help nobody.
func indent(src []byte, done [][]Range) ([]byte, error) {
	dst := make([]byte, 0, 2*len(src))
	depth := 0
	for i := 0; i < len(src); i++ {
		switch c := src[i]; c {
		case '"':
			end := stringEnd(src, i)
			dst = append(dst, src[i:end]...)
			if emptyDone := []byte(`"done":[]`); bytes.HasPrefix(src[i:], emptyDone) {
				var err error
				if dst, err = appendRanges(append(dst, ": "...), done[0]); err != nil {
					return nil, err
				}
				done = done[1:]
				end = i + len(emptyDone)
			}
			i = end - 1
		case ':':
			dst = append(dst, ": "...)
		case '{', '[':
			dst = append(dst, c)
			if closing := src[i+1]; closing == '}' || closing == ']' {
				dst = append(dst, closing)
				i++
			} else {
				depth++
				dst = newLine(dst, depth)
			}
		case '}', ']':
			depth--
			dst = append(newLine(dst, depth), c)
		case ',':
			dst = newLine(append(dst, c), depth)
		default:
			dst = append(dst, c)
		}
	}
	return dst, nil
}

func newLine(dst []byte, depth int) []byte {
	dst = append(slices.Grow(dst, 1+2*depth), '\n')
	for range depth {
		dst = append(dst, ' ', ' ')
	}
	return dst
}

// stringEnd returns the index behind the JSON string that begins at i.
func stringEnd(src []byte, i int) int {
	for i++; src[i] != '"'; i++ {
		if src[i] == '\\' {
			i++
		}
	}
	return i + 1
}
