package mysqlconn

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Replication is what a replica says of one source that it follows.
type Replication struct {
	SourceUUID string // MySQL's; "" on MariaDB
	SourceID   string // server_id
	Receives   bool   // the IO thread is connected
	Applies    bool   // the SQL thread runs
	Delay      time.Duration
	Behind     time.Duration // as far as the replica knows; -1: it does not
	Filters    []string      // options that leave changes out, as Replicate_Ignore_DB
	ReceiveErr string        // error number; "0" or "" for none
	ApplyErr   string
}

// Replication asks the server for the sources that it follows; none: it is no
// replica. It needs the privilege REPLICATION CLIENT (MariaDB: SLAVE MONITOR).
func (c *Control) Replication(ctx context.Context, v Version) ([]Replication, error) {
	query := "SHOW SLAVE STATUS"
	switch {
	case v.Flavor == MariaDB:
		query = "SHOW ALL SLAVES STATUS"
	case v.AtLeast(MySQL, 8, 0, 22):
		query = "SHOW REPLICA STATUS"
	}
	rows, err := c.QueryMaps(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its replication: %w", c.server.cfg.Name, err)
	}
	var out []Replication
	for _, row := range rows {
		out = append(out, parseReplication(row))
	}
	return out, nil
}

// replicaWords gives the names of columns that MySQL has since 8.0.22 to those
// of before, which are MariaDB's.
var replicaWords = strings.NewReplacer("Master_", "Source_", "Slave_", "Replica_")

func parseReplication(row map[string]string) Replication {
	now := map[string]string{}
	for name, value := range row {
		now[replicaWords.Replace(name)] = value
	}
	delay, _ := strconv.ParseInt(now["SQL_Delay"], 10, 64)
	r := Replication{SourceUUID: now["Source_UUID"], SourceID: now["Source_Server_Id"], Delay: time.Duration(delay) * time.Second,
		Receives: now["Replica_IO_Running"] == "Yes", Applies: now["Replica_SQL_Running"] == "Yes",
		Behind: -1, ReceiveErr: now["Last_IO_Errno"], ApplyErr: now["Last_SQL_Errno"]}
	if behind, err := strconv.ParseInt(now["Seconds_Behind_Source"], 10, 64); err == nil {
		r.Behind = time.Duration(behind) * time.Second
	}
	for name, value := range now {
		if strings.HasPrefix(name, "Replicate_") && value != "" && !strings.HasSuffix(name, "_Server_Ids") {
			r.Filters = append(r.Filters, name)
		}
	}
	return r
}

// From picks the replication that comes from that server, else the first.
func From(all []Replication, source Identity) Replication {
	for _, r := range all {
		if r.Follows(source) {
			return r
		}
	}
	return all[0]
}

// Follows reports whether the replication comes from that server itself.
func (r Replication) Follows(source Identity) bool {
	if r.SourceUUID != "" {
		return r.SourceUUID == source.UUID
	}
	return r.SourceID == strconv.FormatUint(uint64(source.ServerID), 10)
}
