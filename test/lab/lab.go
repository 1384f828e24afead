package lab

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/copydb/copydb/test/servers"
	"golang.org/x/sync/errgroup"
)

// The account that copydb logs in with, on both servers.
const (
	User     = "copydb"
	password = "not-a-secret"
)

// Lab is a source and a target. Its fields don't change.
type Lab struct {
	Source, Target *servers.Server
	Dir            string // folder for files; its own
	Binary         string // of copydb, absolute
}

// New starts both servers with the same options. The caller closes the Lab.
func New(ctx context.Context, binary string, o servers.Options) (*Lab, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(binary); err != nil {
		return nil, fmt.Errorf("find the copydb binary (make build): %w", err)
	}
	l := &Lab{Binary: binary}
	if l.Dir, err = os.MkdirTemp("", "copydb-lab-"); err != nil {
		return nil, err
	}
	var g errgroup.Group
	for _, s := range []**servers.Server{&l.Source, &l.Target} {
		g.Go(func() (err error) {
			*s, err = servers.Start(ctx, o)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close stops both servers and removes everything. It may be called twice.
func (l *Lab) Close() error {
	var errs []error
	for _, s := range []*servers.Server{l.Source, l.Target} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(l.Dir))...)
}

// Accounts makes copydb's account on both servers, with the privileges that a
// copy of the database needs and no more; see docs/privileges.md.
func (l *Lab) Accounts(ctx context.Context, database string) error {
	if err := account(ctx, l.Source.DB(), sourceGrants(l.Source.Kind, database)); err != nil {
		return fmt.Errorf("make the account on the source: %w", err)
	}
	if err := account(ctx, l.Target.DB(), targetGrants(database)); err != nil {
		return fmt.Errorf("make the account on the target: %w", err)
	}
	return nil
}

func account(ctx context.Context, db *sql.DB, grants []string) error {
	name := "'" + User + "'@'%'"
	create := []string{"DROP USER IF EXISTS " + name, "CREATE USER " + name + " IDENTIFIED BY '" + password + "'"}
	for _, g := range grants {
		create = append(create, "GRANT "+g+" TO "+name)
	}
	// The privileges of a test are no part of the data.
	_, err := db.ExecContext(ctx, "SET SESSION sql_log_bin = 0; "+strings.Join(create, "; ")+"; SET SESSION sql_log_bin = 1")
	return err
}

func sourceGrants(kind servers.Kind, database string) []string {
	rows := "SELECT ON `" + database + "`.*"
	if kind.IsMariaDB() {
		return []string{"REPLICATION SLAVE, BINLOG MONITOR, SLAVE MONITOR, PROCESS ON *.*", rows}
	}
	global := "REPLICATION SLAVE, REPLICATION CLIENT, PROCESS"
	if !kind.HasGTID() {
		global += ", RELOAD"
	}
	return []string{global + " ON *.*", "XA_RECOVER_ADMIN ON *.*", rows}
}

func targetGrants(database string) []string {
	const rights = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, TRIGGER ON "
	return []string{rights + "`" + database + "`.*", rights + "`\\_copydb`.*"}
}

// WriteConfig writes copydb.yaml for a copy of the database into the Lab's
// folder. The settings are lines of YAML.
func (l *Lab) WriteConfig(database string, settings ...string) error {
	text := fmt.Sprintf(`source:
  host: %s
  port: %d
  user: %s
  password_env: COPYDB_SOURCE_PASSWORD
target:
  host: %s
  port: %d
  user: %s
  password_env: COPYDB_TARGET_PASSWORD
tables:
  include: ["%s.*"]
%s
`, l.Source.Host, l.Source.Port, User, l.Target.Host, l.Target.Port, User, database, strings.Join(settings, "\n"))
	return os.WriteFile(filepath.Join(l.Dir, "copydb.yaml"), []byte(text), 0o600)
}
