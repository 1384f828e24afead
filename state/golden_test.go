package state

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The sample of each format version never changes: files like it are out there.
// A field that is renamed or removed makes Load refuse it. All samples are of one
// state, which has few tables and so is saved in format 1.
func TestGoldenRoundTrip(t *testing.T) {
	for _, name := range []string{"format-1.json", "format-2.json"} {
		t.Run(name, func(t *testing.T) { goldenRoundTrip(t, filepath.Join("testdata", name)) })
	}
}

func goldenRoundTrip(t *testing.T, old string) {
	st := mustLoad(t, old)

	path := newPath(t)
	s, err := open(path, func() time.Time { return st.UpdatedAt })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, raw := range []string{`{"columns": ["id"]}`, `{"columns": ["id", "note"]}`} {
		if _, err := s.PutStructure([]byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	mustSave(t, s, st)
	if got, want := compact(t, mustRead(t, path)), compact(t, mustRead(t, filepath.Join("testdata", "format-1.json"))); got != want {
		t.Errorf("saved again it reads\n%s\nwant\n%s", got, want)
	}
	st.FormatVersion = FormatVersion
	shared, err := encode(st)
	if err != nil {
		t.Fatal(err)
	}
	if want := mustRead(t, filepath.Join("testdata", "format-2.json")); string(shared) != want {
		t.Errorf("in format 2 it reads\n%s\nwant\n%s", shared, want)
	}
	st.FormatVersion = plainFormat
	if again := mustLoad(t, path); !reflect.DeepEqual(again, st) {
		t.Errorf("loaded again it is %+v, want %+v", again, st)
	}
}

// compact is the same for the same content, whatever order its fields have.
func compact(t *testing.T, text string) string {
	t.Helper()
	var content any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&content); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestGoldenUsesEveryField(t *testing.T) {
	st := mustLoad(t, filepath.Join("testdata", "format-2.json"))
	used := map[string]bool{}
	collect(reflect.ValueOf(*st), "state", used)
	for field, ok := range used {
		if !ok {
			t.Errorf("%s is nowhere set in the sample: a new field needs a new format version and a sample", field)
		}
	}
	if len(used) < 60 {
		t.Errorf("only %d fields found", len(used))
	}
}

// collect notes for each field whether it is set anywhere.
func collect(v reflect.Value, path string, used map[string]bool) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
	case v.Kind() == reflect.Pointer && !v.IsNil():
		collect(v.Elem(), path, used)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), path, used)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			name := path + "." + v.Type().Field(i).Name
			used[name] = used[name] || !v.Field(i).IsZero()
			collect(v.Field(i), name, used)
		}
	}
}

func TestEncodeForm(t *testing.T) {
	got, err := encode(&State{
		Tables:         []Table{{Table: "a<b>&c", Done: []Range{{To: []Text{`"done":[{`}}, {After: []Text{"1", "2"}}}}},
		ObjectsCreated: []Object{{Type: "table", Name: "a"}, {Type: "table", Name: "b"}, {Type: "view", Name: "a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"{\n  \"format_version\": 0,\n",
		"\n  \"sources\": [],\n",
		"\n    {\"database\":\"\",\"table\":\"a<b>&c\",",
		",\"done\":[{\"after\":[],\"to\":[\"\\\"done\\\":[{\"]},{\"after\":[\"1\",\"2\"],\"to\":[]}],\"structures\":[]}\n  ],\n",
		"\n    {\"type\":\"table\",\"database\":\"\",\"names\":[\"a\",\"b\"]},\n    {\"type\":\"view\",\"database\":\"\",\"name\":\"a\"}\n  ]\n",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if !strings.HasSuffix(string(got), "\n}\n") {
		t.Errorf("it ends with %q", got[len(got)-5:])
	}
}

func TestNew(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	a, err := New("1.2.3", testTime.In(berlin))
	if err != nil {
		t.Fatal(err)
	}
	b, err := New("1.2.3", testTime)
	if err != nil {
		t.Fatal(err)
	}
	if a.MigrationID == b.MigrationID || a.RunID == b.RunID {
		t.Error("two migrations have one id")
	}
	if len(a.MigrationID) != 32 || len(a.RunID) != 16 || strings.Trim(a.MigrationID+a.RunID, "0123456789abcdef") != "" {
		t.Errorf("ids are %q and %q", a.MigrationID, a.RunID)
	}
	if a.Phase != PhaseSchema || a.FormatVersion != FormatVersion || a.CopydbVersion != "1.2.3" || !a.CreatedAt.Equal(testTime) {
		t.Errorf("new state is %+v", a)
	}
}
