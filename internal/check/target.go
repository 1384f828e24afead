package check

import (
	"context"
	"fmt"
	"strconv"

	"github.com/copydb/copydb/internal/table"
)

// checkWritable refuses a target that takes no writes.
func checkWritable(ctx context.Context, r *runner) error {
	t := r.target
	for _, name := range []string{"super_read_only", "read_only", "innodb_read_only", "transaction_read_only", "tx_read_only", "offline_mode"} {
		if v := t.value(name); t.has(name) && v != "OFF" && v != "0" {
			r.fail("target_read_only", name, fmt.Sprintf("the target has %s = %s", name, v),
				"SET GLOBAL "+name+" = OFF on the target, if it is the right server (innodb_read_only needs a restart)")
			break
		}
	}
	return checkRedo(ctx, r)
}

// checkDurability warns of settings with which a crash loses commits.
func checkDurability(_ context.Context, r *runner) error {
	if v := r.target.value("innodb_flush_log_at_trx_commit"); v != "1" {
		r.warn("target_durability", "innodb_flush_log_at_trx_commit", fmt.Sprintf("the target has innodb_flush_log_at_trx_commit = %s: a crash of it loses commits, which a resume copies again", v),
			"set it to 1 on the target where that is not wanted")
	}
	for _, s := range []*side{r.source, r.target} {
		if v := s.value("sync_binlog"); v != "1" && s.on("log_bin") {
			r.warn(s.name+"_sync_binlog", "sync_binlog", fmt.Sprintf("the %s has sync_binlog = %s: a crash of it can lose the end of its binary log", s.name, v),
				"set it to 1 on the "+s.name)
		}
	}
	return nil
}

func checkPacket(_ context.Context, r *runner) error {
	const name = "max_allowed_packet"
	if s, t := r.source.number(name), r.target.number(name); t < s {
		r.warn("max_allowed_packet", name, fmt.Sprintf("the target's max_allowed_packet (%d bytes) is smaller than the source's (%d): a large row may not fit", t, s),
			"SET GLOBAL max_allowed_packet = "+strconv.FormatInt(s, 10)+" on the target, in its option file too")
	}
	return nil
}

// checkLoadMethod says how rows will be written. Whether LOAD DATA LOCAL works
// through a proxy, too, only a real one tells: the run tries it.
func checkLoadMethod(_ context.Context, r *runner) error {
	f := &r.in.Facts
	allowed := r.target.on("local_infile")
	f.LoadMethod, f.LoadReason = "load_data", "local_infile is ON on the target"
	switch {
	case r.in.LoadMethod == "insert":
		f.LoadMethod, f.LoadReason = "insert", "snapshot.load_method is insert"
	case !allowed && r.in.LoadMethod == "load_data":
		r.fail("local_infile", "local_infile", "snapshot.load_method is load_data, but the target has local_infile = OFF",
			"SET GLOBAL local_infile = ON on the target, or set snapshot.load_method: auto")
	case !allowed:
		f.LoadMethod, f.LoadReason = "insert", "local_infile is OFF on the target"
		r.info("local_infile", "local_infile", "the target has local_infile = OFF: rows go by INSERT, which is slower",
			"SET GLOBAL local_infile = ON on the target for the time of the copy")
	}
	return nil
}

const (
	// sharedBytes is from when on a table is worth several writers.
	sharedBytes = 128 << 20
	// insertProcessors is how many processors the target must have for several
	// sessions that insert to be faster than one that loads: a row costs it half
	// as much again.
	insertProcessors = 4
)

// checkAutoIncrementLock lets large tables go by INSERT where LOAD DATA takes a
// lock on the whole table, for the sake of its AUTO_INCREMENT column, until its
// statement ends: MariaDB with innodb_autoinc_lock_mode below 2, its default.
// INSERT with values for that column takes it for an instant only. How many
// processors MariaDB sees is the default of thread_pool_size.
func checkAutoIncrementLock(_ context.Context, r *runner) error {
	f, t := &r.in.Facts, r.target
	if f.LoadMethod != "load_data" || r.in.LoadMethod != "auto" || r.in.Threads == 1 || !t.mariadb() ||
		t.number("innodb_autoinc_lock_mode") > 1 || t.number("thread_pool_size") < insertProcessors {
		return nil
	}
	f.Inserted = map[table.Name]bool{}
	for _, tbl := range f.Tables {
		if tbl.Bytes >= sharedBytes && tbl.AutoIncrement() && tbl.UsableKey() != nil && tbl.Engine == "InnoDB" {
			f.Inserted[tbl.FullName()] = true
		}
	}
	if n := len(f.Inserted); n > 0 {
		f.LoadReason += fmt.Sprintf("; tables of %d MiB or more with AUTO_INCREMENT by insert (%d), since the target has innodb_autoinc_lock_mode = %s",
			sharedBytes>>20, n, t.value("innodb_autoinc_lock_mode"))
	}
	return nil
}

// checkForcedKeys looks for settings that refuse or change tables without a
// primary key.
func checkForcedKeys(_ context.Context, r *runner) error {
	t := r.target
	forced := ""
	for _, name := range []string{"sql_require_primary_key", "sql_generate_invisible_primary_key"} {
		if t.on(name) {
			forced = name
			break
		}
	}
	if forced == "" {
		return nil
	}
	for _, tbl := range r.in.Facts.Tables {
		if len(tbl.Keys) > 0 && tbl.Keys[0].Name == "PRIMARY" {
			continue
		}
		r.fail("target_primary_key", tbl.String(), fmt.Sprintf("table %s has no primary key, and the target has %s = ON", tbl, forced),
			"SET GLOBAL "+forced+" = OFF on the target, or add a primary key on the source")
	}
	return nil
}
