package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

// Load reads the state file at path and checks it. It takes no lock and writes
// nothing, so it serves while a run goes on, too. Every error is a *FileError.
func Load(path string) (*State, error) {
	s, fail := load(path)
	if fail == nil {
		return s, nil
	}
	offerBackup(path, fail)
	return nil, fail
}

// offerBackup adds what the backup of a lost or broken state is good for.
func offerBackup(path string, fail *FileError) {
	if errors.Is(fail, ErrUnreadable) || errors.Is(fail, ErrNotAFile) || errors.Is(fail, ErrNewer) {
		return
	}
	resolved, err := resolve(path)
	if err != nil {
		return
	}
	bak := resolved + backupSuffix
	_, bakFail := load(bak)
	missing := errors.Is(fail, ErrMissing) && (bakFail == nil || !errors.Is(bakFail, ErrMissing))
	switch {
	case missing && bakFail != nil:
		fail.Kind = ErrOnlyBackup
		fail.Detail = fmt.Sprintf("is missing, and %s cannot replace it: it %s", bak, bakFail.Detail)
	case missing:
		fail.Kind = ErrOnlyBackup
		fail.Detail = fmt.Sprintf("is missing, but %s is there", bak)
		fallthrough
	case bakFail == nil:
		fail.Next = fmt.Sprintf("cp -p %s %s", ShellQuote(bak), ShellQuote(resolved))
	}
}

func load(path string) (*State, *FileError) {
	data, fail := readWhole(path)
	if fail == nil {
		var s *State
		if s, fail = decode(data); fail == nil {
			return s, nil
		}
	}
	fail.Path = path
	return nil, fail
}

func readWhole(path string) ([]byte, *FileError) {
	info, err := os.Stat(path)
	var data []byte
	switch {
	case err != nil:
	case info.IsDir():
		return nil, &FileError{Kind: ErrNotAFile, Detail: "is a directory"}
	case !info.Mode().IsRegular(): // reading a pipe would wait for ever
		return nil, &FileError{Kind: ErrNotAFile, Detail: "is not a regular file"}
	default:
		data, err = os.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &FileError{Kind: ErrMissing, Detail: "does not exist", Err: err}
	}
	if err != nil {
		return nil, &FileError{Kind: ErrUnreadable, Detail: "cannot be read: " + cause(err), Err: err}
	}
	return data, nil
}

// cause returns the words of err without the path, which the message names
// already.
func cause(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

func decode(data []byte) (*State, *FileError) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &FileError{Kind: ErrEmpty, Detail: "is empty"}
	}
	if fail := checkSyntax(data); fail != nil {
		return nil, fail
	}
	if fail := checkFormat(data); fail != nil {
		return nil, fail
	}
	var c content
	dec := json.NewDecoder(bytes.NewReader(data))
	// A field that this program does not know would be lost by the next Save;
	// whoever adds one raises the format version.
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return nil, contentError(err)
	}
	s, err := c.state()
	if err != nil {
		return nil, &FileError{Kind: ErrInconsistent, Detail: "contradicts itself: " + err.Error(), Err: err}
	}
	for _, err := range []error{s.checkLists(), s.check()} {
		if err != nil {
			return nil, &FileError{Kind: ErrInconsistent, Detail: "contradicts itself: " + err.Error(), Err: err}
		}
	}
	return s, nil
}

// checkSyntax reports what keeps data from being one JSON object.
func checkSyntax(data []byte) *FileError {
	dec := json.NewDecoder(bytes.NewReader(data))
	var whole json.RawMessage
	err := dec.Decode(&whole)
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &FileError{Kind: ErrCut, Detail: fmt.Sprintf("is cut off after byte %d", len(data)), Err: err}
	case errors.As(err, &syntax):
		return &FileError{Kind: ErrCorrupt, Detail: fmt.Sprintf("is not JSON at byte %d", syntax.Offset), Err: err}
	case err != nil:
		return &FileError{Kind: ErrCorrupt, Detail: "is not JSON: " + err.Error(), Err: err}
	case !utf8.Valid(data): // encoding/json would change such bytes without a word
		return &FileError{Kind: ErrCorrupt, Detail: fmt.Sprintf("is not UTF-8 at byte %d", invalidAt(data))}
	case whole[0] != '{':
		return &FileError{Kind: ErrType, Detail: "is not a JSON object"}
	}
	end := dec.InputOffset()
	if len(bytes.TrimSpace(data[end:])) > 0 {
		return &FileError{Kind: ErrTrailing, Detail: fmt.Sprintf("has trailing garbage after byte %d", end)}
	}
	return nil
}

func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i + 1
		}
		i += n
	}
	return 0
}

// checkFormat looks at the version before anything else of the content, which
// may have any form in a newer one.
func checkFormat(data []byte) *FileError {
	var head struct {
		FormatVersion json.RawMessage `json:"format_version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return contentError(err)
	}
	if head.FormatVersion == nil {
		return &FileError{Kind: ErrNoFormat, Detail: "has no format_version: it is not a state file of copydb"}
	}
	var version int
	if err := json.Unmarshal(head.FormatVersion, &version); err != nil {
		return &FileError{Kind: ErrType, Detail: "has a format_version that is not an integer", Err: err}
	}
	switch {
	case version < 1:
		return &FileError{Kind: ErrNoFormat, Detail: fmt.Sprintf("has format_version %d: it is not a state file of copydb", version)}
	case version > FormatVersion:
		return &FileError{Kind: ErrNewer, Detail: fmt.Sprintf(
			"was written by a newer copydb (format %d; this one reads up to %d)", version, FormatVersion)}
	}
	return nil
}

// contentError puts an error of encoding/json in words, without any value.
func contentError(err error) *FileError {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		value, _, _ := strings.Cut(wrongType.Value, " ")
		return &FileError{Kind: ErrType, Err: err, Detail: fmt.Sprintf(
			"has a value of the wrong type (%s) in %s at byte %d", value, strings.TrimPrefix(wrongType.Field, "State."), wrongType.Offset)}
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &FileError{Kind: ErrUnknownField, Err: err, Detail: fmt.Sprintf(
			"has the field %s, which format %d does not know", field, FormatVersion)}
	}
	return &FileError{Kind: ErrType, Err: err, Detail: "has a value that cannot be read: " + err.Error()}
}
