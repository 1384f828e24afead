package streamer

import (
	"encoding/binary"
	"strings"
)

// settings are what of a statement's session decides how its text is read.
type settings struct {
	ansiQuotes  bool
	noBackslash bool
	client      uint16 // collation id of character_set_client, 0 where not known
}

// Codes of the status variables that come first in a query event.
const (
	statusFlags   = 0
	statusMode    = 1
	statusCharset = 4
	statusCatalog = 6
	statusAutoInc = 3

	modeANSIQuotes  = 1 << 2
	modeNoBackslash = 1 << 20
)

// readSettings reads the status variables as far as it knows their lengths.
func readSettings(vars []byte) settings {
	var s settings
	for len(vars) > 0 {
		code, body := vars[0], vars[1:]
		size := 0
		switch code {
		case statusFlags, statusAutoInc:
			size = 4
		case statusMode:
			size = 8
		case statusCharset:
			size = 6
		case statusCatalog:
			if len(body) > 0 {
				size = 1 + int(body[0])
			}
		default:
			return s
		}
		if len(body) < size {
			return s
		}
		switch code {
		case statusMode:
			mode := binary.LittleEndian.Uint64(body)
			s.ansiQuotes, s.noBackslash = mode&modeANSIQuotes != 0, mode&modeNoBackslash != 0
		case statusCharset:
			s.client = binary.LittleEndian.Uint16(body)
		}
		vars = body[size:]
	}
	return s
}

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokWord             // not quoted: a keyword or a name
	tokName             // quoted: a name
	tokString           // a string literal
	tokSign             // one character
)

type token struct {
	kind tokenKind
	text string // of a word as it stands, of names and strings without quotes
}

// is reports a keyword or a sign.
func (t token) is(text string) bool {
	return t.kind == tokWord && strings.EqualFold(t.text, text) || t.kind == tokSign && t.text == text
}

// scanner cuts a statement into tokens. Comments are dropped, but the content
// of /*! and /*M! comments is kept whatever version they ask for: a name too
// many is harmless, one too few is not.
type scanner struct {
	text string
	at   int
	set  settings
	kept int // depth of comments whose content is kept
}

func (s *scanner) next() token {
	s.skip()
	if s.at >= len(s.text) {
		return token{}
	}
	switch c := s.text[s.at]; {
	case c == '`' || c == '"' && s.set.ansiQuotes:
		return token{tokName, s.quoted(c, false)}
	case c == '\'' || c == '"':
		return token{tokString, s.quoted(c, !s.set.noBackslash)}
	case isWord(c):
		from := s.at
		for s.at < len(s.text) && isWord(s.text[s.at]) {
			s.at++
		}
		return token{tokWord, s.text[from:s.at]}
	default:
		s.at++
		return token{tokSign, string(c)}
	}
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// skip passes over blanks and comments.
func (s *scanner) skip() {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case rest[0] <= ' ':
			s.at++
		case rest[0] == '#' || strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' '):
			s.to("\n", 0)
		case strings.HasPrefix(rest, "/*!"):
			s.keep(3)
		case strings.HasPrefix(rest, "/*M!"):
			s.keep(4)
		case strings.HasPrefix(rest, "/*"):
			s.to("*/", 2)
		case s.kept > 0 && strings.HasPrefix(rest, "*/"):
			s.kept--
			s.at += 2
		default:
			return
		}
	}
}

// keep passes over the start of a comment with its version, not its content.
func (s *scanner) keep(n int) {
	s.kept++
	s.at += n
	for i := 0; i < 6 && s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9'; i++ {
		s.at++
	}
}

// to goes behind the next end that is at least skip bytes away.
func (s *scanner) to(end string, skip int) {
	i := strings.Index(s.text[min(s.at+skip, len(s.text)):], end)
	if i < 0 {
		s.at = len(s.text)
		return
	}
	s.at += skip + i + len(end)
}

func (s *scanner) quoted(quote byte, backslash bool) string {
	var b strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case c == '\\' && backslash && s.at+1 < len(s.text):
			s.at++
			c = s.text[s.at]
		case c == quote:
			s.at++
			if s.at >= len(s.text) || s.text[s.at] != quote {
				return b.String()
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}
