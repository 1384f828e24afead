package check

import (
	"context"
	"database/sql"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/copydb/copydb/internal/table"
)

// What a copy does at least on modest machines. The forecast only has to tell
// hours from days.
const (
	slowBytes = 8 << 20 // per second
	slowRows  = 20_000  // per second
)

// copyTime is a careful estimate of how long the rows take.
func copyTime(rows, bytes int64) time.Duration {
	return time.Duration(max(bytes/slowBytes, rows/slowRows)) * time.Second
}

// checkForecast compares how long the copy may take with how long the source
// keeps its logs. The oldest log that a fresh run needs is the one being
// written, so all of the retention is left; how old a log of an earlier run is,
// no server tells.
func checkForecast(_ context.Context, r *runner) error {
	f := &r.in.Facts
	keep, need := r.source.retention(), copyTime(f.Rows, f.Bytes)
	if keep > 0 && need > keep {
		r.warn("binlog_forecast", "binlog_expire_logs_seconds", fmt.Sprintf("copying about %d rows and %s may take %s, and the source keeps its binary logs for %s",
			f.Rows, mebibytes(f.Bytes), human(need), human(keep)),
			"raise binlog_expire_logs_seconds on the source above that for the time of the copy")
	}
	return nil
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// checkLargest looks for values that no statement to the target can carry. The
// largest value is not known without a scan; what the catalogue has is the
// columns and an average. A value takes up to twice its size in a statement.
func checkLargest(_ context.Context, r *runner) error {
	const name = "max_allowed_packet"
	limit := r.target.number(name)
	var able []string
	for _, t := range r.in.Facts.Tables {
		if t.Rows > 0 && t.Bytes/t.Rows > limit/4 {
			r.warn(name, t.String(), fmt.Sprintf("rows of table %s have %s on average; the target's %s is %s, and a row may take twice its size", t, mebibytes(t.Bytes/t.Rows), name, mebibytes(limit)),
				"SET GLOBAL "+name+" = 1073741824 on the target, in its option file too")
		} else if slices.ContainsFunc(t.Columns, func(c table.Column) bool { return takesMore(&c, limit/2) }) {
			able = append(able, t.String())
		}
	}
	if len(able) > 0 {
		r.info(name, "", fmt.Sprintf("columns of %s can hold values larger than half of the target's %s (%s), which no statement could carry", list(able), name, mebibytes(limit)),
			"if there are such values, SET GLOBAL "+name+" = 1073741824 on the target, in its option file too")
	}
	return nil
}

// takesMore reports whether a value of the column can have more bytes than
// limit.
func takesMore(c *table.Column, limit int64) bool {
	most := int64(0)
	switch c.Type {
	case "longblob", "longtext", "json":
		most = 1<<32 - 1
	case "mediumblob", "mediumtext":
		most = 1<<24 - 1
	}
	return most > limit
}

// checkDisk compares the free space of the target with what will be written,
// where the server shows it: MariaDB with the plugin DISKS, to accounts with
// FILE.
func checkDisk(ctx context.Context, r *runner) error {
	need := r.in.Facts.Bytes
	free, known, err := r.freeSpace(ctx)
	switch {
	case err != nil:
		return err
	case known && free < need:
		r.warn("target_disk", r.target.value("datadir"), fmt.Sprintf("the target has %s free, the rows alone take about %s", mebibytes(free), mebibytes(need)),
			"free some space on the target, or use a larger one")
	case !known && need >= 1<<30:
		r.info("target_disk", "", fmt.Sprintf("the rows take about %s, and indexes and the target's binary log come on top; how much the target has free cannot be seen", mebibytes(need)),
			"look at the free space of the target's data folder")
	}
	return nil
}

func (r *runner) freeSpace(ctx context.Context) (free int64, known bool, err error) {
	if !r.target.mariadb() {
		return 0, false, nil
	}
	folder, longest := path.Clean(r.target.value("datadir"))+"/", -1
	err = r.target.conn.Query(ctx, func(rows *sql.Rows) error {
		var mount string
		var kib int64
		if err := rows.Scan(&mount, &kib); err != nil {
			return err
		}
		if strings.HasPrefix(folder, strings.TrimSuffix(mount, "/")+"/") && len(mount) > longest {
			free, known, longest = kib<<10, true, len(mount)
		}
		return nil
	}, "SELECT Path, Available FROM information_schema.DISKS")
	if mysqlconn.ErrorNumber(err) != 0 { // no such plugin, no such right
		return 0, false, nil
	}
	return free, known, err
}
