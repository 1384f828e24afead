package state

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func golden(t *testing.T) string { return mustRead(t, filepath.Join("testdata", "format-1.json")) }

// edited returns the golden sample with a change to its JSON.
func edited(t *testing.T, change func(m map[string]any)) string {
	m := toMap(t, golden(t))
	change(m)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func set(key string, value any) func(map[string]any) {
	return func(m map[string]any) { m[key] = value }
}

// in changes the first element of a list.
func in(list, key string, value any) func(map[string]any) {
	return func(m map[string]any) { m[list].([]any)[0].(map[string]any)[key] = value }
}

func TestLoadBroken(t *testing.T) {
	whole := golden(t)
	twice := func(list string) func(map[string]any) {
		return func(m map[string]any) { m[list] = append(m[list].([]any), m[list].([]any)[0]) }
	}
	position := func(file string, pos uint64) any { return map[string]any{"file": file, "pos": pos} }
	bounds := func(after, to any) []any { return []any{map[string]any{"after": after, "to": to}} }
	for _, tc := range []struct {
		name    string
		content string
		kind    error
		want    string
	}{
		{"empty", "", ErrEmpty, "is empty"},
		{"blank", " \n", ErrEmpty, "is empty"},
		{"cut in half", whole[:len(whole)/2], ErrCut, "is cut off after byte"},
		{"cut by one brace", strings.TrimSuffix(whole, "}\n"), ErrCut, "is cut off after byte"},
		{"zeros", strings.Repeat("\x00", 4096), ErrCorrupt, "is not JSON at byte 1"},
		{"corrupt", strings.Replace(whole, `"phase":`, `"phase";`, 1), ErrCorrupt, "is not JSON at byte"},
		{"not UTF-8", strings.Replace(whole, "db.example.org", "db\xff", 1), ErrCorrupt, "is not UTF-8 at byte"},
		{"trailing garbage", whole + "}", ErrTrailing, "has trailing garbage after byte"},
		{"two states", whole + whole, ErrTrailing, "has trailing garbage after byte"},
		{"not an object", "[1]", ErrType, "is not a JSON object"},
		{"no format", `{"phase": "schema"}`, ErrNoFormat, "has no format_version"},
		{"format null", edited(t, set("format_version", nil)), ErrNoFormat, "format_version"},
		{"format 0", edited(t, set("format_version", 0)), ErrNoFormat, "has format_version 0"},
		{"format negative", edited(t, set("format_version", -1)), ErrNoFormat, "has format_version -1"},
		{"format text", edited(t, set("format_version", "1")), ErrType, "not an integer"},
		{"format fraction", edited(t, set("format_version", 1.5)), ErrType, "not an integer"},
		{"newer format", `{"format_version": 3, "sources": {"a": true}}`, ErrNewer, "was written by a newer copydb (format 3; this one reads up to 2)"},
		{"unknown field", edited(t, set("colour", 1)), ErrUnknownField, `the field "colour", which format 2 does not know`},
		{"unknown field inside", edited(t, in("tables", "colour", 1)), ErrUnknownField, `the field "colour"`},
		{"wrong type", edited(t, in("tables", "rows", "many")), ErrType, "wrong type (string) in tables.rows at byte"},
		{"number too large", edited(t, in("sources", "server_id", 1<<40)), ErrType, "wrong type (number) in sources.server_id"},
		{"name not a string", edited(t, in("tables", "table", 7)), ErrType, "a text must be a JSON string"},
		{"bound null", edited(t, in("tables", "done", bounds([]any{nil}, []any{"1"}))), ErrType, "a text must be a JSON string"},
		{"bound not base64", edited(t, in("tables", "done", bounds([]any{"b64:*"}, []any{"1"}))), ErrType, "decode text behind b64:"},
		{"no source", edited(t, set("sources", []any{})), ErrInconsistent, "sources is empty"},
		{"sources missing", edited(t, func(m map[string]any) { delete(m, "sources") }), ErrInconsistent, "sources is missing"},
		{"source twice", edited(t, twice("sources")), ErrInconsistent, "is there twice"},
		{"tables null", edited(t, set("tables", nil)), ErrInconsistent, "tables is missing"},
		{"done missing", edited(t, in("tables", "done", nil)), ErrInconsistent, `table "shop"."orders": done is missing`},
		{"bound missing", edited(t, in("tables", "done", bounds([]any{"1"}, nil))), ErrInconsistent, "a bound in done is missing"},
		{"bounds of two keys", edited(t, in("tables", "done", bounds([]any{"1"}, []any{"1", "2"}))), ErrInconsistent, "bounds of 1 and of 2 columns"},
		{"sessions missing", edited(t, in("sources", "sessions", nil)), ErrInconsistent, "sessions is missing"},
		{"no migration", edited(t, set("migration_id", "")), ErrInconsistent, "migration_id is missing"},
		{"no run", edited(t, set("run_id", "")), ErrInconsistent, "run_id is missing"},
		{"unknown phase", edited(t, set("phase", "lunch")), ErrInconsistent, `phase "lunch" is unknown`},
		{"table twice", edited(t, twice("tables")), ErrInconsistent, `table "shop"."orders" is there twice`},
		{"table without name", edited(t, in("tables", "table", "")), ErrInconsistent, "has no name"},
		{"unknown status", edited(t, in("tables", "status", "odd")), ErrInconsistent, `status "odd" is unknown`},
		{"unknown class", edited(t, in("tables", "class", "odd")), ErrInconsistent, `class "odd" is unknown`},
		{"position that is not there", edited(t, in("tables", "at", []any{-1, 5, -1})), ErrInconsistent, "position number 5 is not there"},
		{"too few positions", edited(t, in("tables", "at", []any{-1})), ErrInconsistent, "at has 1 numbers"},
		{"short digest", edited(t, in("tables", "structures", []any{"AAAA"})), ErrInconsistent, "is malformed"},
		{"negative rows", edited(t, in("tables", "rows", -1)), ErrInconsistent, "negative"},
		{"file without pos", edited(t, in("sources", "last_resumable", position("b.1", 0))), ErrInconsistent, `last_resumable has the file "b.1" but no pos`},
		{"pos without file", edited(t, in("tables", "start", position("", 4))), ErrInconsistent, "start has the pos 4 but no file"},
		{"beyond 4 GiB", edited(t, in("sources", "last_resumable", position("b.1", 1<<32))), ErrInconsistent, "last_resumable b.1:4294967296 lies beyond 4 GiB"},
		{"odd digest", edited(t, in("tables", "structures", []any{map[string]any{"digest": "md5:1"}})), ErrInconsistent, "digest"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := newPath(t)
			mustWrite(t, path, tc.content)
			before, _ := os.Stat(path)
			st, err := Load(path)
			if st != nil {
				t.Error("a state came with the error")
			}
			fe := asFileError(t, err, tc.kind)
			if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error is %q, want %q and the path in it", err, tc.want)
			}
			if fe.Next != "" {
				t.Errorf("next is %q without a backup", fe.Next)
			}
			after, _ := os.Stat(path)
			if mustRead(t, path) != tc.content || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
				t.Error("Load touched the file")
			}
			if got := names(t, filepath.Dir(path)); len(got) != 1 {
				t.Errorf("Load left %v", got)
			}
		})
	}
}

func TestLoadMissing(t *testing.T) {
	path := newPath(t)
	_, err := Load(path)
	asFileError(t, err, ErrMissing)

	mustWrite(t, path+".bak", golden(t))
	_, err = Load(path)
	fe := asFileError(t, err, ErrOnlyBackup)
	command := "cp -p " + path + ".bak " + path
	if fe.Next != command || !strings.Contains(err.Error(), command) {
		t.Errorf("error %q, next %q: want the command %q", err, fe.Next, command)
	}

	mustWrite(t, path+".bak", "{")
	_, err = Load(path)
	fe = asFileError(t, err, ErrOnlyBackup)
	if fe.Next != "" || !strings.Contains(err.Error(), "is cut off after byte 1") {
		t.Errorf("error %q, next %q: want the reason against the backup, and no command", err, fe.Next)
	}
}

func TestLoadOffersBackupOfBrokenState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "it's here")
	mustWrite(t, path, "")
	mustWrite(t, path+".bak", golden(t))
	_, err := Load(path)
	fe := asFileError(t, err, ErrEmpty)
	quoted := "'" + strings.ReplaceAll(path, "'", `'\''`)
	if want := "cp -p " + quoted + ".bak' " + quoted + "'"; fe.Next != want {
		t.Errorf("next is %q, want %q", fe.Next, want)
	}

	mustWrite(t, path, `{"format_version": 9}`)
	_, err = Load(path)
	if fe := asFileError(t, err, ErrNewer); fe.Next != "" {
		t.Errorf("a newer state is offered %q", fe.Next)
	}
}

func TestLoadNotAFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(dir)
	if fe := asFileError(t, err, ErrNotAFile); fe.Detail != "is a directory" {
		t.Errorf("detail is %q", fe.Detail)
	}
	_, err = Load(os.DevNull)
	asFileError(t, err, ErrNotAFile)
}
