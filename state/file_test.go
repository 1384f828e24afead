package state

import (
	"fmt"
	"reflect"
	"testing"
)

// What tables share is written once, and is there again when it is read.
func TestManyTablesAreSmall(t *testing.T) {
	const tables = 5000
	st := sample(0)
	for i := range tables {
		at := Position{File: "binlog.000003", Pos: 1200, GTIDSet: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"}
		batch := at
		batch.Pos += uint64(i / 200)
		n := Text(fmt.Sprintf("orders_%05d", i))
		one := Table{Database: "many", Table: n, Status: TableIndexed, Class: ClassConverging, Rows: 10, Bytes: 1000, Start: batch,
			FirstChunk: &at, LastChunk: &at, Done: []Range{{After: []Text{}, To: []Text{}}},
			Structures: []StructureSince{{From: batch, Digest: digestOf([]byte(n))}}}
		if i%100 == 7 { // not all are alike
			later := Position{File: "binlog.000004", Pos: uint64(i)}
			one.LastChunk, one.Class = &later, ClassExact
			one.Structures = append(one.Structures, StructureSince{From: later, Digest: digestOf([]byte("later"))})
		}
		if i%100 == 8 {
			one = Table{Database: "many", Table: n, Status: TablePending, Class: ClassConverging, Done: []Range{}, Structures: []StructureSince{}}
		}
		st.Tables = append(st.Tables, one)
		st.ObjectsCreated = append(st.ObjectsCreated, Object{Type: "table", Database: "many", Name: n})
	}
	st.ObjectsCreated = append(st.ObjectsCreated, Object{Type: "database", Database: "many", Name: "many"})
	st.FormatVersion = formatFor(st)
	data, err := encode(st)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 950_000 {
		t.Errorf("%d tables take %d bytes", tables, len(data))
	}
	got, fail := decode(data)
	if fail != nil {
		t.Fatal(fail)
	}
	for i := range st.Tables {
		if !reflect.DeepEqual(got.Tables[i], st.Tables[i]) {
			t.Fatalf("table %d is %+v, was %+v", i, got.Tables[i], st.Tables[i])
		}
	}
	if !reflect.DeepEqual(got.ObjectsCreated, st.ObjectsCreated) {
		t.Error("the objects are others")
	}
}
