package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/copydb/copydb/internal/mysqlconn"
)

// checkTargetReplicas looks whether the lag of the replicas that are to be
// watched can be told: what the copy writes has to reach them.
func checkTargetReplicas(ctx context.Context, r *runner) error {
	const key = "throttle.target_replicas"
	if len(r.in.Replicas) == 0 {
		return nil
	}
	switch {
	case !r.target.on("log_bin"):
		r.fail("replica_without_log", "log_bin", key+" lists replicas, but the target has no binary log for them", "set "+key+": []")
		return nil
	case !r.in.SQLLogBin:
		r.fail("replica_without_log", "target.sql_log_bin", "with target.sql_log_bin: false nothing of the copy reaches the replicas in "+key,
			"set "+key+": [], or target.sql_log_bin: true")
		return nil
	}
	for _, server := range r.in.Replicas {
		if err := r.targetReplica(ctx, server); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) targetReplica(ctx context.Context, server *mysqlconn.Server) error {
	s := &side{name: "replica", server: server, facts: &ServerFacts{}}
	defer s.close()
	at := server.Config().Address()
	if err := s.login(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		message, fix := whyRefused(server.Config(), err)
		fix = strings.NewReplacer("{side}.host and {side}.port", "the address", "{side}", "target").Replace(fix)
		r.fail("replica_connect", at, fmt.Sprintf("cannot connect to the replica at %s: %s", at, message),
			fix+" (it is reached with user, password and tls of the target); or take it out of throttle.target_replicas")
		return nil
	}
	if s.facts.Identity.UUID == r.target.facts.Identity.UUID {
		r.fail("replica", at, "throttle.target_replicas lists the target itself", "list its replicas")
		return nil
	}
	if s.grantsKnown && !s.grants.on(progressDatabase, "SELECT") {
		r.fail("replica_rights", at, "the account lacks SELECT on database "+progressDatabase+" of the replica, where the heartbeat arrives",
			grant([]string{"SELECT"}, scopeOf(s.facts, progressDatabase), s.facts.Account)+" (on the target, if the replica follows its accounts, too)")
	}
	all, err := s.conn.Replication(ctx, s.version())
	switch {
	case mysqlconn.IsAccessDenied(err):
		r.fail("replica_rights", at, "the account may not ask the replica whether it replicates",
			grant([]string{replicaPrivilege(s.version())}, "*.*", s.facts.Account)+" (on the target, if the replica follows its accounts, too)")
		return nil
	case err != nil:
		return err
	case len(all) == 0:
		r.fail("replica", at, "the server is no replica", "list replicas of the target in throttle.target_replicas, or none")
		return nil
	}
	r.replicates(at, mysqlconn.From(all, r.target.facts.Identity))
	return nil
}

// replicates judges how a replica follows.
func (r *runner) replicates(at string, s mysqlconn.Replication) {
	if s.Delay >= r.in.MaxReplicaLag {
		r.fail("replica_delay", at, fmt.Sprintf("the replica is delayed by %s, which is not less than throttle.target_replica_max_lag (%s): the copy would never go on", s.Delay, r.in.MaxReplicaLag),
			"take it out of throttle.target_replicas, or raise throttle.target_replica_max_lag")
	}
	if !s.Follows(r.target.facts.Identity) {
		r.warn("replica_source", at, fmt.Sprintf("the replica does not follow the target (server_id %d), but server_id %s", r.target.facts.Identity.ServerID, s.SourceID),
			"look whether that one follows the target")
	}
	if !s.Receives || !s.Applies {
		r.warn("replica_stopped", at, "the replica does not replicate at the moment: the copy waits for it, and ends after retry_timeout", "START REPLICA there (MariaDB: START SLAVE)")
	}
	if len(s.Filters) > 0 {
		r.warn("replica_filter", at, fmt.Sprintf("the replica has filters (%s)", list(s.Filters)), "make sure that they let the table "+progressDatabase+".heartbeat through")
	}
}
