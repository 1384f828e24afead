package blackbox

import (
	"testing"

	"github.com/copydb/copydb/internal/testdb"
	"github.com/copydb/copydb/test/harness"
	"github.com/copydb/copydb/test/servers"
)

// versionedTables are versioned in each way, with a history from before the
// copy, and have keys WITHOUT OVERLAPS.
const versionedTables = `CREATE DATABASE vers; USE vers;
	CREATE TABLE implied (id INT PRIMARY KEY, v INT, t VARCHAR(20)) WITH SYSTEM VERSIONING;
	CREATE TABLE bare (a INT, t TEXT) WITH SYSTEM VERSIONING;
	CREATE TABLE hashed (id INT PRIMARY KEY, b BLOB, UNIQUE KEY (b)) WITH SYSTEM VERSIONING;
	CREATE TABLE named (id INT NOT NULL PRIMARY KEY, v INT, free INT WITHOUT SYSTEM VERSIONING,
	  since TIMESTAMP(6) GENERATED ALWAYS AS ROW START INVISIBLE, until TIMESTAMP(6) GENERATED ALWAYS AS ROW END,
	  t VARCHAR(20), PERIOD FOR SYSTEM_TIME (since, until)) WITH SYSTEM VERSIONING;
	CREATE TABLE parted (id INT NOT NULL PRIMARY KEY, v INT) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION pc CURRENT);
	CREATE TABLE booked (id INT NOT NULL, s DATE NOT NULL, e DATE NOT NULL, v INT, PERIOD FOR p (s, e), UNIQUE KEY (id, p WITHOUT OVERLAPS));
	CREATE TABLE both_of (id INT NOT NULL, s DATE NOT NULL, e DATE NOT NULL, v INT, PERIOD FOR p (s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS)) WITH SYSTEM VERSIONING;
	INSERT INTO implied SELECT a.n * 10 + b.n, b.n, 'first' FROM keyless_digits.d a, keyless_digits.d b;
	UPDATE implied SET v = v + 1; DELETE FROM implied WHERE id % 5 = 0;
	INSERT INTO bare SELECT n % 3, 'twice' FROM keyless_digits.d; UPDATE bare SET a = a + 1;
	INSERT INTO hashed SELECT n, CONCAT('b', n) FROM keyless_digits.d; UPDATE hashed SET b = CONCAT(b, 'c');
	INSERT INTO named (id, v, free, t) SELECT id, v, 1, t FROM implied; UPDATE named SET v = v + 1; UPDATE named SET free = 2;
	INSERT INTO parted SELECT id, v FROM implied; UPDATE parted SET v = v + 1;
	INSERT INTO booked SELECT n, '2026-01-01', '2026-12-31', 0 FROM keyless_digits.d; INSERT INTO both_of SELECT * FROM booked;`

// versionedChanges are the statements of the load; %[1]d and %[2]d are random.
var versionedChanges = []string{
	"INSERT INTO implied VALUES (%[1]d %% 150, %[2]d, 'new') ON DUPLICATE KEY UPDATE v = %[2]d",
	"REPLACE INTO implied VALUES (%[1]d %% 150, %[2]d, 'replaced')",
	"UPDATE implied SET v = v + 1, t = CONCAT('é', %[1]d) WHERE id BETWEEN %[1]d %% 150 AND %[1]d %% 150 + 3",
	"UPDATE implied SET id = 1000 + %[2]d WHERE id = %[1]d %% 150",
	"DELETE FROM implied WHERE id IN (%[1]d %% 150, 1000 + %[2]d)",
	"DELETE HISTORY FROM implied",
	"BEGIN; INSERT INTO implied VALUES (2000 + %[1]d, 1, 'x'); UPDATE implied SET v = 2 WHERE id = 2000 + %[1]d; UPDATE implied SET v = 3 WHERE id = 2000 + %[1]d; DELETE FROM implied WHERE id = 2000 + %[1]d; INSERT INTO implied VALUES (2000 + %[1]d, 4, 'y'); COMMIT",
	"INSERT INTO bare VALUES (%[1]d %% 3, 'twice'), (%[1]d %% 3, 'twice'), (NULL, NULL)",
	"UPDATE bare SET t = CONCAT(t, 'y') WHERE a = %[1]d %% 3 AND LENGTH(t) < 12 LIMIT 3",
	"DELETE FROM bare WHERE a <=> NULLIF(%[1]d %% 4, 3) LIMIT 3",
	"INSERT INTO hashed VALUES (%[1]d %% 40, %[2]d %% 60) ON DUPLICATE KEY UPDATE b = %[2]d %% 70",
	"DELETE FROM hashed WHERE id = %[1]d %% 40",
	"INSERT INTO named (id, v, free, t) VALUES (%[1]d %% 150, %[2]d, 1, 'new') ON DUPLICATE KEY UPDATE v = v + 1",
	"UPDATE named SET free = free + 1 WHERE id %% 10 = %[1]d %% 10",
	"UPDATE named SET v = v + 1, t = 'Z' WHERE id %% 10 = %[1]d %% 10",
	"DELETE FROM named WHERE id = %[1]d %% 150",
	"DELETE HISTORY FROM named BEFORE SYSTEM_TIME NOW(6) - INTERVAL 1 SECOND",
	"INSERT INTO parted VALUES (%[1]d %% 150, %[2]d) ON DUPLICATE KEY UPDATE v = v + 1",
	"UPDATE parted SET v = v + 1 WHERE id %% 10 = %[1]d %% 10",
	"DELETE FROM parted WHERE id = %[1]d %% 150",
	"UPDATE booked FOR PORTION OF p FROM '2026-03-01' + INTERVAL %[1]d %% 200 DAY TO '2026-03-05' + INTERVAL %[1]d %% 200 DAY SET v = v + 1 WHERE id = %[2]d %% 10",
	"DELETE FROM booked FOR PORTION OF p FROM '2026-02-01' + INTERVAL %[1]d %% 300 DAY TO '2026-02-03' + INTERVAL %[1]d %% 300 DAY WHERE id = %[2]d %% 10",
	"UPDATE booked SET s = s + INTERVAL 1 DAY, e = e + INTERVAL 1 DAY, v = v + 1 WHERE id = %[2]d %% 10 ORDER BY s DESC",
	"INSERT INTO booked VALUES (%[1]d %% 10, '2025-01-01' + INTERVAL %[2]d DAY, '2025-01-03' + INTERVAL %[2]d DAY, 9)",
	"UPDATE both_of FOR PORTION OF p FROM '2026-03-01' + INTERVAL %[1]d %% 200 DAY TO '2026-03-05' + INTERVAL %[1]d %% 200 DAY SET v = v + 1 WHERE id = %[2]d %% 10",
	"DELETE FROM both_of FOR PORTION OF p FROM '2026-02-01' + INTERVAL %[1]d %% 300 DAY TO '2026-02-03' + INTERVAL %[1]d %% 300 DAY WHERE id = %[2]d %% 10",
	"DELETE FROM both_of WHERE id = %[1]d %% 10 ORDER BY s LIMIT 1",
}

// Of MariaDB's system-versioned tables the current rows arrive, and so do rows of
// keys WITHOUT OVERLAPS, through kills in the copy and in catch-up.
func TestB2_09_VersionedAndPeriodsUnderLoad(t *testing.T) {
	onKinds(t, func(t *testing.T, kind servers.Kind) {
		source, target := sharedPair(t, kind)
		testdb.Load(t, source, digits)
		testdb.Load(t, source, versionedTables)
		m := harness.New(t, source, target, harness.Config{Include: []string{"vers.*"}, Build: harness.HoldPoints, Env: []string{harness.ChunkRows(20)}})
		n := throughKills(t, m, "vers.implied", writeRandom(t, source, "vers", versionedChanges))
		t.Logf("%d statements; history of the target: %s rows of implied, %s of booked are current", n,
			testdb.Value(t, target, "SELECT COUNT(*) FROM vers.implied FOR SYSTEM_TIME ALL WHERE row_end < NOW(6)"), testdb.Value(t, target, "SELECT COUNT(*) FROM vers.booked"))
		testdb.RequireEqual(t, source, target, []string{"vers"})
	}, servers.MariaDB1011, servers.MariaDB118)
}
