package check

import (
	"context"
	"fmt"
	"strconv"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// checkServerID refuses a given replica id that is in use: the server would end
// the older of the two connections, again and again.
func checkServerID(ctx context.Context, r *runner) error {
	id := r.in.ServerID
	if id == 0 {
		return nil
	}
	s := r.source
	object := strconv.FormatUint(uint64(id), 10)
	const fix = "set source.server_id: 0 for a random one, or take a number that no server of the topology has"
	if id == s.facts.Identity.ServerID {
		r.fail("server_id", object, fmt.Sprintf("source.server_id %d is the source's own server_id", id), fix)
		return nil
	}
	rows, err := s.replicas(ctx)
	if mysqlconn.IsAccessDenied(err) {
		if s.mariadb() { // elsewhere the missing right is a finding already
			r.warn("server_id", object, fmt.Sprintf("whether source.server_id %d is free cannot be seen", id),
				grant([]string{"REPLICATION MASTER ADMIN"}, "*.*", s.facts.Account)+"; or set source.server_id: 0")
		}
		return nil
	}
	if err != nil {
		return err
	}
	for _, row := range rows {
		if column(row, "Server_Id") == object {
			r.fail("server_id", object, fmt.Sprintf("source.server_id %d is in use by a replica at %s", id, column(row, "Host")), fix)
		}
	}
	return nil
}
