package check

import (
	"context"
	"fmt"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// replication says whether a server is a replica of another one.
type replication int

const (
	notReplica replication = iota
	isReplica
	maybeReplica // the account may not see
)

// checkReplicaSource refuses a replica that does not log what it applies: such
// changes never reach the copy.
func checkReplicaSource(ctx context.Context, r *runner) error {
	s := r.source
	option := "log_replica_updates"
	if !s.has(option) {
		option = "log_slave_updates"
	}
	if !s.on("log_bin") || s.on(option) {
		return nil
	}
	state, err := s.replication(ctx)
	if err != nil {
		return err
	}
	switch state {
	case isReplica:
		r.fail("log_replica_updates", option, fmt.Sprintf("the source is a replica with %s = OFF: what it applies is not in its binary log", option),
			"restart the source with "+option+", or copy from its own source")
	case maybeReplica:
		r.warn("log_replica_updates", option, fmt.Sprintf("%s is OFF, and whether the source is a replica cannot be seen", option),
			grant([]string{replicaPrivilege(s.version())}, "*.*", s.facts.Account)+"; if it is a replica, restart it with "+option)
	}
	return nil
}

// checkReplicaTarget warns of a target that something else writes to.
func checkReplicaTarget(ctx context.Context, r *runner) error {
	state, err := r.target.replication(ctx)
	if err == nil && state == isReplica {
		r.warn("target_replica", r.target.server.Config().Address(), "the target is itself a replica: its own source writes to it, too",
			"stop its replication, or make sure that it leaves the selected databases alone")
	}
	return err
}

func replicaPrivilege(v mysqlconn.Version) string {
	if v.AtLeast(mysqlconn.MariaDB, 10, 5, 9) {
		return "SLAVE MONITOR"
	}
	return monitorPrivilege(v)
}

func (s *side) replication(ctx context.Context) (replication, error) {
	rows, err := s.conn.Replication(ctx, s.version())
	switch {
	case err == nil && len(rows) > 0:
		return isReplica, nil
	case err == nil:
		return notReplica, nil
	case !mysqlconn.IsAccessDenied(err):
		return maybeReplica, err
	}
	// MariaDB tells anybody how many of its replication threads run.
	running, err := s.status(ctx, "Slaves_running")
	if err != nil {
		return maybeReplica, err
	}
	if running != "" && running != "0" {
		return isReplica, nil
	}
	return maybeReplica, nil
}
