package mysqlconn

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Both families' names of columns are known.
func TestReplicationNames(t *testing.T) {
	mysql := map[string]string{"Source_UUID": "u", "Source_Server_Id": "7", "Replica_IO_Running": "Yes", "Replica_SQL_Running": "No", "SQL_Delay": "60",
		"Seconds_Behind_Source": "0", "Replicate_Ignore_DB": "_copydb", "Replicate_Do_DB": "", "Replicate_Ignore_Server_Ids": "3", "Last_IO_Errno": "0", "Last_SQL_Errno": "1062"}
	want := Replication{SourceUUID: "u", SourceID: "7", Receives: true, Delay: time.Minute, Filters: []string{"Replicate_Ignore_DB"}, ReceiveErr: "0", ApplyErr: "1062"}
	if d := cmp.Diff(want, parseReplication(mysql)); d != "" {
		t.Error(d)
	}
	mariadb := map[string]string{"Master_Server_Id": "7", "Slave_IO_Running": "Connecting", "Slave_SQL_Running": "Yes", "SQL_Delay": "0", "Last_IO_Errno": "2003"}
	want = Replication{SourceID: "7", Applies: true, Behind: -1, ReceiveErr: "2003"}
	if d := cmp.Diff(want, parseReplication(mariadb)); d != "" {
		t.Error(d)
	}
}
