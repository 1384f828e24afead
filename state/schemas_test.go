package state

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func put(t *testing.T, s *Store, raw string) string {
	t.Helper()
	digest, err := s.PutStructure([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func wantStructure(t *testing.T, s *Store, digest, want string) {
	t.Helper()
	if raw, err := s.Structure(digest); err != nil || string(raw) != want {
		t.Errorf("structure is %s, %v, want %s", raw, err, want)
	}
}

func TestStructures(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	a := put(t, s, "{\"b\": 1,\n \"a\": \"<ü>\"}")
	if again := put(t, s, `{"b":1,"a":"<ü>"}`); again != a {
		t.Errorf("digests of one structure are %s and %s", a, again)
	}
	if other := put(t, s, `{"a":"<ü>","b":1}`); other == a {
		t.Error("the order of keys is ignored")
	}
	large := `"` + strings.Repeat("x", 200_000) + `"`
	b := put(t, s, large)
	content := mustRead(t, path+".schemas")
	if strings.Count(content, "\n") != 3 || !strings.HasPrefix(content, `{"digest":"`+a+`","structure":{"b":1,"a":"<ü>"}}`+"\n") {
		t.Errorf("file reads %.200s", content)
	}
	if info, _ := os.Stat(path + ".schemas"); info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %o", info.Mode().Perm())
	}
	st := sample(1)
	st.Tables[0].Structures = []StructureSince{{Digest: a}, {Digest: b}}
	mustSave(t, s, st)
	wantStructure(t, s, a, `{"b":1,"a":"<ü>"}`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openStore(t, path)
	wantStructure(t, s, b, large)
	put(t, s, large)
	if mustRead(t, path+".schemas") != content {
		t.Error("a structure of an earlier run is kept twice")
	}
	_, err := s.Structure(digestOf([]byte("other")))
	asFileError(t, err, ErrSchemas)
}

func TestPutStructureRefuses(t *testing.T) {
	s := openStore(t, newPath(t))
	for _, raw := range []string{"", "{", "1 2", "\"\xff\""} {
		_, err := s.PutStructure([]byte(raw))
		var se *SaveError
		if !errors.As(err, &se) {
			t.Errorf("%q: error is %v", raw, err)
		}
	}
}

func TestSchemasTornLastLine(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	a := put(t, s, `"a"`)
	whole := mustRead(t, path+".schemas")
	put(t, s, `"b"`)
	line := strings.TrimPrefix(mustRead(t, path+".schemas"), whole)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, torn := range []string{line[:1], line[:len(line)/2], line[:len(line)-1], strings.Repeat("\x00", 512)} {
		mustWrite(t, path+".schemas", whole+torn)
		s := openStore(t, path)
		wantStructure(t, s, a, `"a"`)
		wantStructure(t, s, put(t, s, `"c"`), `"c"`)
		if got := mustRead(t, path+".schemas"); !strings.HasPrefix(got, whole+linePrefix) || strings.Count(got, "\n") != 2 {
			t.Errorf("after %q the file reads %q", torn, got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSchemasDamaged(t *testing.T) {
	path := newPath(t)
	s := openStore(t, path)
	a, b := put(t, s, `"aaa"`), put(t, s, `"bbb"`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	content := mustRead(t, path+".schemas")

	mustWrite(t, path+".schemas", strings.Replace(content, `"aaa"`, `"axa"`, 1))
	s = openStore(t, path)
	_, err := s.Structure(a)
	asFileError(t, err, ErrSchemas)
	wantStructure(t, s, b, `"bbb"`)
	put(t, s, `"aaa"`) // whoever has it can mend it
	wantStructure(t, s, a, `"aaa"`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path)
	wantStructure(t, s, a, `"aaa"`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	for _, bad := range []string{"\n", "{}\n", strings.Replace(content, "digest", "diggst", 1), linePrefix + a + lineMiddle + lineSuffix} {
		mustWrite(t, path+".schemas", bad)
		s := openStore(t, path)
		_, err := s.Structure(a)
		if fe := asFileError(t, err, ErrSchemas); fe.Detail != "is damaged in line 1" {
			t.Errorf("detail is %q", fe.Detail)
		}
		_, err = s.PutStructure([]byte("1"))
		asFileError(t, err, ErrSchemas)
		if mustRead(t, path+".schemas") != bad {
			t.Error("the damaged file was written")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
