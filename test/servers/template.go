package servers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// redoSize is the size of InnoDB's redo log in template folders, and so of
// every server: MariaDB rebuilds a log of another size when it starts.
const redoSize = "64M"

// A super user without a password, from wherever a server can be reached,
// which is 127.0.0.1 and its socket.
const (
	mysqlSeed = "CREATE USER root@'%' IDENTIFIED BY '';\n" +
		"GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n" +
		"GRANT PROXY ON ''@'' TO root@'%' WITH GRANT OPTION;\n"
	mariadbSeed = "DELETE FROM mysql.global_priv WHERE User = '' OR User = 'root' AND Host <> 'localhost';\n" +
		"INSERT INTO mysql.global_priv (Host, User, Priv) SELECT '%', User, Priv FROM mysql.global_priv WHERE User = 'root';\n"
)

// template returns an initialised data folder of the binaries, made once.
func template(ctx context.Context, b *Binaries) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	id := sha256.Sum256([]byte(strings.Join(b.argv(redoSize, mysqlSeed, mariadbSeed), "\x00")))
	name := fmt.Sprintf("%s-%s-%x", strings.ToLower(string(b.Family)), b.Version, id[:4])
	dir := filepath.Join(cache, "templates", name)
	err = makeOnce(ctx, dir, func(tmp string) error {
		if b.Family == FamilyMariaDB {
			return initMariaDB(ctx, b, tmp)
		}
		return initMySQL(ctx, b, tmp)
	})
	if err != nil {
		return "", fmt.Errorf("make template data folder of %s %s: %w", b.Family, b.Version, err)
	}
	return dir, nil
}

func initMySQL(ctx context.Context, b *Binaries, dir string) error {
	seed := dir + ".sql"
	if err := os.WriteFile(seed, []byte(mysqlSeed), 0o644); err != nil {
		return err
	}
	defer os.Remove(seed)
	argv := b.argv("--initialize-insecure", "--datadir="+dir, "--init-file="+seed,
		"--innodb-redo-log-capacity="+redoSize)
	_, err := output(ctx, argv[0], argv[1:]...)
	return err
}

// initMariaDB does what mariadb-install-db does, without its script: that one
// wants the paths of an installed server.
func initMariaDB(ctx context.Context, b *Binaries, dir string) error {
	script, err := mariadbScript(b.share())
	if err != nil {
		return err
	}
	argv := b.argv("--bootstrap", "--datadir="+dir, "--innodb-log-file-size="+redoSize)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader(script)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("bootstrap: %w\n%s", err, tail(string(said), 4000))
	}
	return nil
}

func mariadbScript(share string) ([]byte, error) {
	var script bytes.Buffer
	script.WriteString("create database mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n")
	for _, part := range []string{"_system_tables.sql", "_performance_tables.sql", "_system_tables_data.sql"} {
		found, err := filepath.Glob(filepath.Join(share, "*"+part))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("want one file *%s in %s, have %d", part, share, len(found))
		}
		sql, err := os.ReadFile(found[0])
		if err != nil {
			return nil, err
		}
		script.Write(sql)
		script.WriteByte('\n')
	}
	script.WriteString(mariadbSeed)
	return script.Bytes(), nil
}

// copyTemplate copies a data folder. Blocks of zeros become holes, which is
// most of an empty server; the identity of the first server stays behind.
func copyTemplate(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case rel == "auto.cnf" || !d.Type().IsRegular():
			return nil
		default:
			return copySparse(path, target)
		}
	})
}

func copySparse(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buf, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); ; {
		n, err := io.ReadFull(in, buf)
		if n > 0 && !bytes.Equal(buf[:n], zeros[:n]) {
			if _, err := out.WriteAt(buf[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return out.Truncate(at)
		}
		if err != nil {
			return err
		}
	}
}
