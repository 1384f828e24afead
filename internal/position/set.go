package position

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"
)

// Set is what a source has executed. For MySQL it is a set of GTIDs, tags (8.4
// and newer) included; for MariaDB it is a position, one GTID per replication
// domain, and contains every lower sequence number of the domain.
//
// The set of the library is not used for the bookkeeping, since it sorts and
// copies all intervals with each transaction and drops tags in places.
type Set struct {
	flavor  mysqlconn.Flavor
	sources []source // MySQL, by uuid and tag
	domains []domain // MariaDB, by domain
}

// source holds the transactions of one uuid and tag. Clones share rest, which
// is never changed in place.
type source struct {
	id   uuid.UUID
	tag  string
	rest []span
	last span // the highest; it is the one that grows
}

// span is the numbers from first to last.
type span struct{ first, last int64 }

type domain struct {
	domain, server uint32
	sequence       uint64
}

// NewSet returns an empty set.
func NewSet(flavor mysqlconn.Flavor) *Set { return &Set{flavor: flavor} }

// Parse reads a set in the server's notation. Blanks and line breaks are
// allowed, an empty text is the empty set.
func Parse(flavor mysqlconn.Flavor, text string) (*Set, error) {
	s := NewSet(flavor)
	for part := range strings.SplitSeq(text, ",") {
		part = strings.Map(dropSpace, part)
		if part == "" {
			continue
		}
		if err := s.addPart(part); err != nil {
			return nil, fmt.Errorf("parse gtid set of %s: %w", flavor, err)
		}
	}
	return s, nil
}

func dropSpace(r rune) rune {
	switch r {
	case ' ', '\t', '\r', '\n':
		return -1
	}
	return r
}

func (s *Set) addPart(part string) error {
	if s.flavor == mysqlconn.MariaDB {
		d, err := parseDomain(part)
		if err == nil {
			s.moveDomain(d)
		}
		return err
	}
	fields := strings.Split(part, ":")
	id, err := uuid.Parse(fields[0])
	if err != nil || len(fields) < 2 {
		return fmt.Errorf("%q is no uuid:[tag:]interval", part)
	}
	tag, open := "", false // open: the tag has no interval yet
	for _, f := range fields[1:] {
		if f != "" && (f[0] < '0' || f[0] > '9') {
			if open {
				break
			}
			if tag, err = parseTag(f); err != nil {
				return err
			}
			open = true
			continue
		}
		sp, err := parseSpan(f)
		if err != nil {
			return err
		}
		open = false
		s.addSpan(id, tag, sp)
	}
	if open {
		return fmt.Errorf("tag %q has no interval", tag)
	}
	return nil
}

func parseTag(text string) (string, error) {
	tag := strings.ToLower(text)
	bad := strings.IndexFunc(tag, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	if bad >= 0 || len(tag) > 32 {
		return "", fmt.Errorf("%q is no tag of a gtid", text)
	}
	return tag, nil
}

func parseSpan(text string) (span, error) {
	lo, hi, ranged := strings.Cut(text, "-")
	if !ranged {
		hi = lo
	}
	first, err1 := strconv.ParseInt(lo, 10, 64)
	last, err2 := strconv.ParseInt(hi, 10, 64)
	if err1 != nil || err2 != nil || first < 1 || last < first {
		return span{}, fmt.Errorf("%q is no interval of a gtid", text)
	}
	return span{first, last}, nil
}

func parseDomain(text string) (domain, error) {
	g, err := gomysql.ParseMariadbGTID(text)
	if err != nil {
		return domain{}, err
	}
	return domain{g.DomainID, g.ServerID, g.SequenceNumber}, nil
}

// OneLine is a GTID set as positions have it: MySQL breaks its lines.
func OneLine(set string) string { return strings.ReplaceAll(set, "\n", "") }

// Clone returns a copy. It costs a few words per source or domain, whatever the
// number of intervals.
func (s *Set) Clone() *Set {
	return &Set{flavor: s.flavor, sources: slices.Clone(s.sources), domains: slices.Clone(s.domains)}
}

// String writes the set in the server's notation, sorted, so that equal sets
// have equal texts.
func (s *Set) String() string {
	var b []byte
	for _, d := range s.domains {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = d.append(b)
	}
	var before *source
	for i := range s.sources {
		src := &s.sources[i]
		if before == nil || before.id != src.id {
			if before != nil {
				b = append(b, ',')
			}
			b = append(b, src.id.String()...)
		}
		if src.tag != "" {
			b = append(append(b, ':'), src.tag...)
		}
		for _, sp := range src.rest {
			b = sp.append(b)
		}
		b = src.last.append(b)
		before = src
	}
	return string(b)
}

func (d domain) append(b []byte) []byte {
	b = strconv.AppendUint(b, uint64(d.domain), 10)
	b = strconv.AppendUint(append(b, '-'), uint64(d.server), 10)
	return strconv.AppendUint(append(b, '-'), d.sequence, 10)
}

func (sp span) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, ':'), sp.first, 10)
	if sp.last > sp.first {
		b = strconv.AppendInt(append(b, '-'), sp.last, 10)
	}
	return b
}

func (s *Set) find(id uuid.UUID, tag string) (int, bool) {
	return slices.BinarySearchFunc(s.sources, source{id: id, tag: tag}, func(a, b source) int {
		return cmp.Or(slices.Compare(a.id[:], b.id[:]), strings.Compare(a.tag, b.tag))
	})
}

func (s *Set) findDomain(id uint32) (int, bool) {
	return slices.BinarySearchFunc(s.domains, id, func(d domain, id uint32) int { return cmp.Compare(d.domain, id) })
}
