package state

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// What a line of the schemas file is made of.
const (
	linePrefix = `{"digest":"`
	lineMiddle = `","structure":`
	lineSuffix = "}\n"
	digestLen  = len("sha256:") + 2*sha256.Size
)

// PutStructure keeps a structure, any JSON, beside the state file and returns
// its digest: "sha256:" and the SHA-256 of raw without blanks between its
// tokens. The same structure is kept once. It is on the disk after the next
// Save that succeeds. An error is ErrClosed, a *SaveError, or a *FileError of
// kind ErrSchemas.
func (s *Store) PutStructure(raw json.RawMessage) (digest string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", ErrClosed
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return "", s.notSaved(fmt.Errorf("read structure: %w", err))
	}
	if !utf8.Valid(compact.Bytes()) {
		return "", s.notSaved(errors.New("read structure: not UTF-8"))
	}
	digest, err = s.schemas.put(compact.Bytes())
	var fileErr *FileError
	if err != nil && !errors.As(err, &fileErr) {
		err = s.notSaved(err)
	}
	return digest, err
}

// Structure returns the structure that PutStructure gave the digest to, in this
// run or an earlier one. An error is ErrClosed or a *FileError of kind
// ErrSchemas.
func (s *Store) Structure(digest string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	return s.schemas.get(digest)
}

// schemas is the append-only file of structures. Only where each one lies is
// kept in memory. It opens the file when it is first asked.
type schemas struct {
	path   string
	file   *os.File        // nil while there is no file
	index  map[string]span // nil before open
	end    int64           // bytes of whole lines
	synced int64           // bytes that are known to be on the disk
}

// span is where a structure lies in the file, in bytes.
type span struct{ off, size int64 }

func digestOf(compact []byte) string {
	sum := sha256.Sum256(compact)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (c *schemas) has(digest string) (bool, error) {
	if err := c.open(); err != nil {
		return false, err
	}
	_, ok := c.index[digest]
	return ok, nil
}

func (c *schemas) get(digest string) (json.RawMessage, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	at, ok := c.index[digest]
	if !ok {
		return nil, c.fail(nil, "does not hold the structure %s", digest)
	}
	raw := make([]byte, at.size)
	if _, err := c.file.ReadAt(raw, at.off); err != nil {
		return nil, c.fail(err, "cannot be read: %s", cause(err))
	}
	if digestOf(raw) != digest {
		return nil, c.fail(nil, "is damaged: the structure %s does not match its digest", digest)
	}
	return raw, nil
}

func (c *schemas) put(compact []byte) (string, error) {
	digest := digestOf(compact)
	if ok, err := c.has(digest); err != nil {
		return "", err
	} else if ok {
		if _, err := c.get(digest); err == nil {
			return digest, nil
		} // else it is damaged, and the new line counts from now on
	}
	if err := c.create(); err != nil {
		return "", err
	}
	line := linePrefix + digest + lineMiddle + string(compact) + lineSuffix
	if _, err := c.file.WriteAt([]byte(line), c.end); err != nil {
		return "", both(err, c.file.Truncate(c.end))
	}
	c.index[digest] = span{c.end + int64(len(linePrefix)+digestLen+len(lineMiddle)), int64(len(compact))}
	c.end += int64(len(line))
	return digest, nil
}

// sync brings all lines to the disk. After a failure the kernel may take lost
// pages for written ones, so they are given up: a later sync must not succeed
// without them.
func (c *schemas) sync() error {
	if c.synced == c.end {
		return nil
	}
	if err := c.file.Sync(); err != nil {
		for digest, at := range c.index {
			if at.off >= c.synced {
				delete(c.index, digest)
			}
		}
		c.end = c.synced
		return both(err, c.file.Truncate(c.synced))
	}
	c.synced = c.end
	return nil
}

// create makes the file if there is none.
func (c *schemas) create() error {
	if c.file != nil {
		return nil
	}
	f, err := os.OpenFile(c.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	c.file = f
	return syncDir(filepath.Dir(c.path))
}

// open reads where the structures lie and cuts off a last line that a killed
// run did not finish: no state names it.
func (c *schemas) open() error {
	if c.index != nil {
		return nil
	}
	f, err := os.OpenFile(c.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		c.index = map[string]span{}
		return nil
	}
	if err != nil {
		return c.fail(err, "cannot be opened: %s", cause(err))
	}
	index, end, err := c.scan(f)
	if err == nil {
		err = c.settle(f, end)
	}
	if err != nil {
		return both(err, f.Close())
	}
	c.file, c.index, c.end, c.synced = f, index, end, end
	return nil
}

// settle leaves whole lines only, all on the disk: the run that wrote them may
// have been killed before its sync.
func (c *schemas) settle(f *os.File, end int64) error {
	info, err := f.Stat()
	if err == nil && info.Size() > end {
		err = f.Truncate(end)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return c.fail(err, "cannot be cut to whole lines: %s", cause(err))
	}
	return nil
}

// scan returns where the structures lie, and where the last whole line ends.
func (c *schemas) scan(f *os.File) (index map[string]span, end int64, err error) {
	index = map[string]span{}
	in := bufio.NewReaderSize(f, 1<<16)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return index, end, nil
		}
		if err != nil {
			return nil, 0, c.fail(err, "cannot be read: %s", cause(err))
		}
		digest, ok := lineDigest(line)
		if !ok {
			return nil, 0, c.fail(nil, "is damaged in line %d", number)
		}
		head := int64(len(linePrefix) + digestLen + len(lineMiddle))
		size := int64(len(line)-len(lineSuffix)) - head
		index[digest] = span{end + head, size}
		end += int64(len(line))
	}
}

// lineDigest takes a line apart, which has the one form that put gives it.
func lineDigest(line []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(linePrefix))
	if !ok || len(rest) < digestLen {
		return "", false
	}
	digest, rest := rest[:digestLen], rest[digestLen:]
	ok = digestForm.Match(digest) && bytes.HasPrefix(rest, []byte(lineMiddle)) && bytes.HasSuffix(rest, []byte(lineSuffix))
	return string(digest), ok && len(rest) > len(lineMiddle)+len(lineSuffix)
}

func (c *schemas) close() error {
	if c.file == nil {
		return nil
	}
	f := c.file
	c.file = nil
	return f.Close()
}

func (c *schemas) fail(err error, format string, args ...any) *FileError {
	return &FileError{Path: c.path, Kind: ErrSchemas, Detail: fmt.Sprintf(format, args...), Err: err}
}
