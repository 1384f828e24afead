package check

import (
	"context"
	"fmt"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// checkSourceRights tries the statements that need a right, and reads the grants
// only for those that cannot be tried.
func checkSourceRights(ctx context.Context, r *runner) error {
	if err := r.tryReplicationClient(ctx); err != nil {
		return err
	}
	if err := r.tryReplicationSlave(ctx); err != nil {
		return err
	}
	if s := r.source; s.grantsKnown && !s.grants.everywhere("PROCESS") {
		r.warn("source_process", s.facts.Account, "the source account lacks PROCESS: replaced tables and waiting schema changes are noticed late",
			grant([]string{"PROCESS"}, "*.*", s.facts.Account))
	}
	return nil
}

func (r *runner) tryReplicationClient(ctx context.Context) error {
	s := r.source
	rows, err := s.conn.QueryMaps(ctx, s.version().BinlogStatusQuery())
	if err == nil {
		r.end = map[string]string{}
		if len(rows) > 0 {
			r.end = rows[0]
		}
		return nil
	}
	if !mysqlconn.IsAccessDenied(err) {
		return fmt.Errorf("read the end of the binary log: %w", err)
	}
	name := monitorPrivilege(s.version())
	r.fail("source_replication_client", s.facts.Account, "the source account lacks "+name+": the end of the binary log cannot be read",
		grant([]string{name}, "*.*", s.facts.Account))
	return nil
}

// tryReplicationSlave tries a statement that needs the same right as reading the
// binary log. MariaDB has none, so its grants are read.
func (r *runner) tryReplicationSlave(ctx context.Context) error {
	s := r.source
	const name = "REPLICATION SLAVE"
	fix := grant([]string{name}, "*.*", s.facts.Account)
	if s.mariadb() {
		switch {
		case !s.grantsKnown:
			r.warn("source_replication_slave", s.facts.Account, "whether the source account has "+name+" cannot be seen", fix)
		case !s.grants.everywhere(name):
			r.fail("source_replication_slave", s.facts.Account, "the source account lacks "+name+": the binary log cannot be read", fix)
		}
		return nil
	}
	_, err := s.replicas(ctx)
	if mysqlconn.IsAccessDenied(err) {
		r.fail("source_replication_slave", s.facts.Account, "the source account lacks "+name+": the binary log cannot be read", fix)
		return nil
	}
	return err
}

// replicas lists the registered replicas.
func (s *side) replicas(ctx context.Context) ([]map[string]string, error) {
	query := "SHOW SLAVE HOSTS"
	if s.version().AtLeast(mysqlconn.MySQL, 8, 0, 22) {
		query = "SHOW REPLICAS"
	}
	rows, err := s.conn.QueryMaps(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("list replicas of the %s: %w", s.name, err)
	}
	return rows, nil
}
