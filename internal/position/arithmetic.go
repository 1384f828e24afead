package position

import (
	"fmt"
	"slices"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"
)

// Add takes one GTID in: uuid:number or uuid:tag:number for MySQL,
// domain-server-sequence for MariaDB, which moves the domain there whatever
// stood before, as the server's own position does.
func (s *Set) Add(gtid string) error {
	if s.flavor == mysqlconn.MariaDB {
		d, err := parseDomain(gtid)
		if err != nil || gtid == "" {
			return fmt.Errorf("parse gtid %q: want domain-server-sequence", gtid)
		}
		s.moveDomain(d)
		return nil
	}
	id, tag, n, err := parseGTID(gtid)
	if err != nil {
		return err
	}
	s.AddMySQL(id, tag, n)
	return nil
}

// AddMySQL is Add for the parts of a MySQL GTID, without the detour over text.
func (s *Set) AddMySQL(id uuid.UUID, tag string, n int64) {
	if i, ok := s.find(id, tag); ok && s.sources[i].last.last == n-1 {
		s.sources[i].last.last = n
		return
	}
	s.addSpan(id, tag, span{n, n})
}

// AddMariaDB is Add for the parts of a MariaDB GTID.
func (s *Set) AddMariaDB(domainID, serverID uint32, sequence uint64) {
	s.moveDomain(domain{domainID, serverID, sequence})
}

func parseGTID(gtid string) (id uuid.UUID, tag string, n int64, err error) {
	fields := strings.Split(strings.Map(dropSpace, gtid), ":")
	if len(fields) != 2 && len(fields) != 3 {
		return id, "", 0, fmt.Errorf("parse gtid %q: want uuid:[tag:]number", gtid)
	}
	if id, err = uuid.Parse(fields[0]); err != nil {
		return id, "", 0, fmt.Errorf("parse gtid %q: %w", gtid, err)
	}
	if len(fields) == 3 {
		if tag, err = parseTag(fields[1]); err != nil {
			return id, "", 0, fmt.Errorf("parse gtid %q: %w", gtid, err)
		}
	}
	sp, err := parseSpan(fields[len(fields)-1])
	if err != nil || sp.first != sp.last {
		return id, "", 0, fmt.Errorf("parse gtid %q: want one number", gtid)
	}
	return id, tag, sp.first, nil
}

func (s *Set) moveDomain(d domain) {
	i, ok := s.findDomain(d.domain)
	if ok {
		s.domains[i] = d
		return
	}
	s.domains = slices.Insert(s.domains, i, d)
}

// addSpan merges numbers into a source. The slice of the source's intervals is
// made anew, since clones share it.
func (s *Set) addSpan(id uuid.UUID, tag string, sp span) {
	i, ok := s.find(id, tag)
	if !ok {
		s.sources = slices.Insert(s.sources, i, source{id: id, tag: tag, last: sp})
		return
	}
	src := &s.sources[i]
	all := merge(append(append(slices.Clone(src.rest), src.last), sp))
	src.last = all[len(all)-1]
	src.rest = all[: len(all)-1 : len(all)-1]
}

func merge(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return int(min(max(a.first-b.first, -1), 1)) })
	out := all[:1]
	for _, sp := range all[1:] {
		last := &out[len(out)-1]
		if sp.first > last.last+1 {
			out = append(out, sp)
			continue
		}
		last.last = max(last.last, sp.last)
	}
	return out
}

// Contains reports whether every transaction of other is in the set. For
// MariaDB: whether in every domain of other ours is as far.
func (s *Set) Contains(other *Set) bool {
	for _, src := range other.sources {
		for _, sp := range src.rest {
			if !s.hasSpan(src.id, src.tag, sp) {
				return false
			}
		}
		if !s.hasSpan(src.id, src.tag, src.last) {
			return false
		}
	}
	for _, d := range other.domains {
		if i, ok := s.findDomain(d.domain); !ok || s.domains[i].sequence < d.sequence {
			return false
		}
	}
	return true
}

// ContainsGTID reports whether the set has the GTID; false for text that is
// none.
func (s *Set) ContainsGTID(gtid string) bool {
	if s.flavor == mysqlconn.MariaDB {
		d, err := parseDomain(gtid)
		if err != nil || gtid == "" {
			return false
		}
		i, ok := s.findDomain(d.domain)
		return ok && s.domains[i].sequence >= d.sequence
	}
	id, tag, n, err := parseGTID(gtid)
	return err == nil && s.hasSpan(id, tag, span{n, n})
}

func (s *Set) hasSpan(id uuid.UUID, tag string, sp span) bool {
	i, ok := s.find(id, tag)
	if !ok {
		return false
	}
	src := &s.sources[i]
	if sp.first >= src.last.first {
		return sp.last <= src.last.last
	}
	j, found := slices.BinarySearchFunc(src.rest, sp.first, func(a span, n int64) int {
		return int(min(max(a.first-n, -1), 1))
	})
	if !found {
		j--
	}
	return j >= 0 && sp.last <= src.rest[j].last
}

// Library returns the set as go-mysql's own type, which the caller may keep.
func (s *Set) Library() (gomysql.GTIDSet, error) {
	if s.flavor == mysqlconn.MariaDB {
		return gomysql.ParseMariadbGTIDSet(s.String())
	}
	return gomysql.ParseMysqlGTIDSet(s.String())
}
