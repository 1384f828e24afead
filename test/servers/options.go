package servers

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// Sizes for Options.BinlogSize, in bytes.
const (
	DefaultBinlog  = 0       // the server's own default, for benchmarks
	ScenarioBinlog = 4096    // rotations everywhere, for black-box scenarios; the smallest that servers take
	LoadBinlog     = 1 << 20 // for tests under load
)

// Options say how a server is started. The zero value but for Kind is a server
// for a scenario that needs nothing special.
type Options struct {
	Kind Kind

	// BinlogSize is max_binlog_size in bytes: one of the constants, rounded
	// down by the server to a multiple of 4096.
	BinlogSize int
	// BufferPool is innodb_buffer_pool_size, as in "1G"; empty means 128M.
	BufferPool string
	// ServerID is server_id; 0 means a number that no other server of this
	// process has.
	ServerID uint32
	// Fast gives up durability for speed: sync_binlog=0 and
	// innodb_flush_log_at_trx_commit=0, so that Kill9 loses up to a second of
	// commits. Without it both are 1.
	Fast bool
	// NoLocalInfile refuses LOAD DATA LOCAL, which is else allowed.
	NoLocalInfile bool
	// NoBinlog starts the server without a binary log.
	NoBinlog bool
	// DataDir is a data folder that the caller owns: used as it is if there
	// is something in it, filled from the template if not, never removed.
	// Empty means a folder that Close removes.
	DataDir string
	// ExtraArgs are server options that come last and so win over all others.
	ExtraArgs []string
}

// args returns the server's options but for those of its binaries.
func (o Options) args(dataDir, socket, pidFile string, port int) []string {
	bufferPool := o.BufferPool
	if bufferPool == "" {
		bufferPool = "128M"
	}
	durable := "1"
	if o.Fast {
		durable = "0"
	}
	infile := "1"
	if o.NoLocalInfile {
		infile = "0"
	}
	args := []string{
		"--datadir=" + dataDir,
		"--tmpdir=" + filepath.Dir(pidFile),
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(port),
		"--socket=" + socket,
		"--pid-file=" + pidFile,
		"--skip-name-resolve",
		"--server-id=" + strconv.FormatUint(uint64(o.ServerID), 10),
		"--local-infile=" + infile,
		"--max-allowed-packet=64M",
		"--max-connections=200",
		"--table-open-cache=400",
		"--innodb-buffer-pool-size=" + bufferPool,
		"--innodb-flush-log-at-trx-commit=" + durable,
	}
	args = append(args, o.binlogArgs(durable)...)
	if o.Kind.IsMariaDB() {
		args = append(args, "--innodb-log-file-size="+redoSize)
	} else {
		args = append(args, "--innodb-redo-log-capacity="+redoSize, "--mysqlx=OFF", "--secure-file-priv=NULL")
	}
	args = append(args, specs[o.Kind].args...)
	return append(args, o.ExtraArgs...)
}

func (o Options) binlogArgs(durable string) []string {
	if o.NoBinlog {
		return []string{"--skip-log-bin"}
	}
	args := []string{
		"--log-bin=binlog",
		"--sync-binlog=" + durable,
		"--log-bin-trust-function-creators=1",
	}
	if o.Kind.IsMariaDB() {
		args = append(args, "--binlog-format=ROW")
	}
	if o.BinlogSize != DefaultBinlog {
		args = append(args, "--max-binlog-size="+strconv.Itoa(o.BinlogSize))
	}
	return args
}

func (o Options) check() error {
	if _, err := ParseKind(string(o.Kind)); err != nil {
		return err
	}
	if o.BinlogSize < 0 || o.BinlogSize > 0 && o.BinlogSize < ScenarioBinlog {
		return fmt.Errorf("binary log size %d: servers take %d or more", o.BinlogSize, ScenarioBinlog)
	}
	return nil
}
