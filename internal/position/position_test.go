package position

import (
	"math/rand"
	"testing"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/state"
)

const (
	u1 = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	u2 = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
)

func parse(t *testing.T, f mysqlconn.Flavor, text string) *Set {
	t.Helper()
	s, err := Parse(f, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSetText(t *testing.T) {
	for _, c := range []struct {
		flavor   mysqlconn.Flavor
		in, want string
	}{
		{mysqlconn.MySQL, "", ""},
		{mysqlconn.MySQL, " \n", ""},
		{mysqlconn.MySQL, u1 + ":1-5", u1 + ":1-5"},
		{mysqlconn.MySQL, u2 + ":1,\n " + u1 + ":7:1-5:6", u1 + ":1-7," + u2 + ":1"},
		{mysqlconn.MySQL, "3E11FA47-71CA-11E1-9E33-C80AA9429562:10-20:1-5", u1 + ":1-5:10-20"},
		{mysqlconn.MySQL, u1 + ":1-3:App:1-2:5:zed:9", u1 + ":1-3:app:1-2:5:zed:9"},
		{mysqlconn.MySQL, u1 + ":app:1," + u2 + ":1", u1 + ":app:1," + u2 + ":1"},
		{mysqlconn.MySQL, u1 + ":1," + u1 + ":2", u1 + ":1-2"},
		{mysqlconn.MariaDB, "", ""},
		{mysqlconn.MariaDB, "10-1-5,\n2-3-4", "2-3-4,10-1-5"},
		{mysqlconn.MariaDB, "0-1-18446744073709551615", "0-1-18446744073709551615"},
	} {
		if got := parse(t, c.flavor, c.in).String(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
		if again := parse(t, c.flavor, c.want).String(); again != c.want {
			t.Errorf("%q reads back as %q", c.want, again)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	for _, text := range []string{"x", u1, u1 + ":", u1 + ":0", u1 + ":5-1", u1 + ":a", u1 + ":a:b:1", u1 + ":1:b", u1 + ":a-b:1"} {
		if s, err := Parse(mysqlconn.MySQL, text); err == nil {
			t.Errorf("%q: got %q", text, s)
		}
	}
	for _, text := range []string{"1-2", "a-1-1", "0-1--1", u1 + ":1"} {
		if s, err := Parse(mysqlconn.MariaDB, text); err == nil {
			t.Errorf("%q: got %q", text, s)
		}
	}
	for _, gtid := range []string{"", "x", u1, u1 + ":1-2", u1 + ":0", u1 + ":a:b:1"} {
		if NewSet(mysqlconn.MySQL).Add(gtid) == nil || NewSet(mysqlconn.MySQL).ContainsGTID(gtid) {
			t.Errorf("gtid %q is taken", gtid)
		}
		if NewSet(mysqlconn.MariaDB).Add(gtid) == nil || NewSet(mysqlconn.MariaDB).ContainsGTID(gtid) {
			t.Errorf("MariaDB gtid %q is taken", gtid)
		}
	}
}

func TestContains(t *testing.T) {
	for _, c := range []struct {
		flavor mysqlconn.Flavor
		a, b   string
		want   bool
	}{
		{mysqlconn.MySQL, u1 + ":1-5", "", true},
		{mysqlconn.MySQL, "", u1 + ":1", false},
		{mysqlconn.MySQL, u1 + ":1-5:7-9", u1 + ":2-4:7", true},
		{mysqlconn.MySQL, u1 + ":1-5:7-9", u1 + ":5-7", false},
		{mysqlconn.MySQL, u1 + ":1-5:7-9", u1 + ":10", false},
		{mysqlconn.MySQL, u1 + ":1-5", u1 + ":app:1", false},
		{mysqlconn.MySQL, u1 + ":1-5:app:1-3", u1 + ":app:3," + u1 + ":1", true},
		{mysqlconn.MySQL, u1 + ":4-5", u1 + ":1", false},
		{mysqlconn.MariaDB, "0-1-5,1-1-9", "0-2-5", true},
		{mysqlconn.MariaDB, "0-1-5", "0-1-6", false},
		{mysqlconn.MariaDB, "0-1-5", "1-1-1", false},
	} {
		if got := parse(t, c.flavor, c.a).Contains(parse(t, c.flavor, c.b)); got != c.want {
			t.Errorf("%q contains %q: %v", c.a, c.b, got)
		}
	}
	s := parse(t, mysqlconn.MySQL, u1+":1-5:t:8")
	if !s.ContainsGTID(u1+":5") || s.ContainsGTID(u1+":6") || !s.ContainsGTID(u1+":t:8") || s.ContainsGTID(u1+":8") {
		t.Error("single gtids")
	}
	m := parse(t, mysqlconn.MariaDB, "0-1-5")
	if !m.ContainsGTID("0-9-5") || m.ContainsGTID("0-1-6") || m.ContainsGTID("3-1-1") {
		t.Error("single gtids of MariaDB")
	}
}

// TestAdd adds numbers in random order; clones taken in between must not move.
func TestAdd(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	s := NewSet(mysqlconn.MySQL)
	seen := map[int64]bool{}
	type kept struct {
		clone *Set
		text  string
	}
	var clones []kept
	for range 400 {
		n := rng.Int63n(120) + 1
		seen[n] = true
		s.AddMySQL(s.uuidFor(t), "", n)
		clones = append(clones, kept{s.Clone(), s.String()})
		for i := int64(1); i <= 121; i++ {
			if s.hasSpan(s.uuidFor(t), "", span{i, i}) != seen[i] {
				t.Fatalf("%d: %v", i, !seen[i])
			}
		}
	}
	for _, k := range clones {
		if k.clone.String() != k.text {
			t.Fatalf("a clone moved from %q to %q", k.text, k.clone)
		}
	}
}

func (s *Set) uuidFor(t *testing.T) [16]byte {
	t.Helper()
	id, _, _, err := parseGTID(u1 + ":1")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAddMoves(t *testing.T) {
	s := parse(t, mysqlconn.MariaDB, "0-1-5")
	for _, g := range []string{"0-2-3", "7-1-1"} {
		if err := s.Add(g); err != nil {
			t.Fatal(err)
		}
	}
	if s.String() != "0-2-3,7-1-1" {
		t.Error(s)
	}
	m := parse(t, mysqlconn.MySQL, u1+":1-3")
	for _, g := range []string{u1 + ":5", u1 + ":x:1", u2 + ":9"} {
		if err := m.Add(g); err != nil {
			t.Fatal(err)
		}
	}
	if m.String() != u1+":1-3:5:x:1,"+u2+":9" {
		t.Error(m)
	}
}

func TestLibraryReadsOurs(t *testing.T) {
	s := parse(t, mysqlconn.MySQL, u1+":1-3:5:x:1-2,"+u2+":y:9")
	g, err := s.Library()
	if err != nil || g.String() != s.String() {
		t.Fatalf("%v %v", g, err)
	}
}

func TestCompare(t *testing.T) {
	at := func(f string, p uint64) state.Position { return state.Position{File: f, Pos: p} }
	for _, c := range []struct {
		a, b state.Position
		want int
		ok   bool
	}{
		{at("binlog.000001", 4), at("binlog.000001", 5), -1, true},
		{at("binlog.999999", 9), at("binlog.1000000", 4), -1, true},
		{at("binlog.000002", 4), at("binlog.000001", 5), 1, true},
		{at("a.b.000002", 4), at("a.b.000002", 4), 0, true},
		{at("a.000002", 4), at("b.000002", 4), 0, false},
		{at("", 4), at("b.000002", 4), 0, false},
		{at("b", 4), at("b.000002", 4), 0, false},
	} {
		if got, ok := Compare(c.a, c.b); got != c.want || ok != c.ok {
			t.Errorf("%v %v: %d %v", c.a, c.b, got, ok)
		}
	}
}

func TestReachedAndCovers(t *testing.T) {
	pos := func(f string, p uint64, g string) state.Position { return state.Position{File: f, Pos: p, GTIDSet: g} }
	for _, c := range []struct {
		flavor     mysqlconn.Flavor
		have, want state.Position
		reached    bool
	}{
		{mysqlconn.MySQL, pos("b.1", 10, ""), pos("b.1", 10, ""), true},
		{mysqlconn.MySQL, pos("b.1", 9, ""), pos("b.1", 10, ""), false},
		{mysqlconn.MySQL, pos("x.1", 9, u1+":1-5"), pos("b.1", 10, u1+":1-4"), true},
		{mysqlconn.MySQL, pos("x.1", 9, u1+":1-3"), pos("b.1", 10, u1+":1-4"), false},
		{mysqlconn.MySQL, pos("x.1", 9, ""), pos("b.1", 10, u1+":1-4"), false},
		{mysqlconn.MariaDB, pos("", 0, "0-1-4"), pos("", 0, "0-1-4"), true},
	} {
		if got := Reached(c.flavor, c.have, c.want); got != c.reached {
			t.Errorf("%v reached %v: %v", c.have, c.want, got)
		}
	}
	for _, c := range []struct {
		flavor mysqlconn.Flavor
		start  state.Position
		gtid   string
		end    state.Position
		want   bool
	}{
		{mysqlconn.MySQL, pos("b.1", 10, u1+":1-5"), u1 + ":5", pos("b.1", 99, ""), true},
		{mysqlconn.MySQL, pos("b.1", 10, u1+":1-5"), u1 + ":6", pos("b.1", 5, ""), false},
		{mysqlconn.MySQL, pos("b.1", 10, ""), "", pos("b.1", 10, ""), true},
		{mysqlconn.MySQL, pos("b.1", 10, ""), u1 + ":6", pos("b.1", 11, ""), false},
		{mysqlconn.MariaDB, pos("b.1", 10, "0-1-5"), "0-1-5", pos("b.1", 11, ""), false},
		{mysqlconn.MariaDB, pos("b.1", 10, "0-1-5"), "0-1-6", pos("b.1", 9, ""), true},
		{mysqlconn.MariaDB, pos("b.1", 10, "0-1-5"), "0-1-5", pos("", 0, ""), true},
		{mysqlconn.MariaDB, state.Position{}, "0-1-5", pos("b.1", 9, ""), false},
	} {
		if start, err := NewStart(c.flavor, c.start); err != nil || start.Covers(c.gtid, c.end) != c.want {
			t.Errorf("%v covers %s %v: %v (%v)", c.start, c.gtid, c.end, !c.want, err)
		}
	}
}
