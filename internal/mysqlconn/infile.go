package mysqlconn

import (
	"bytes"
	"context"
	"errors"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// infilePacket is how many bytes of a LOAD DATA stream go into one packet; it
// must stay under max_allowed_packet of any server.
const infilePacket = 256 << 10

var noDeadline time.Time

// soon is a deadline for saying goodbye.
func soon() time.Time { return time.Now().Add(200 * time.Millisecond) }

// LoadLocal runs a LOAD DATA LOCAL INFILE statement and feeds it data, which is
// wholly in memory: a server that waits for the next bytes may hold locks. An
// error of the connection in between is not the end of the file, so that the
// server rolls back.
func (s *Session) LoadLocal(ctx context.Context, query string, data []byte) (Result, error) {
	var res Result
	err := s.do(ctx, func() error {
		if err := s.send(append(make([]byte, 5, len(query)+5), query...)); err != nil {
			return err
		}
		head, err := s.readPacket()
		if err != nil {
			return err
		}
		switch head[0] {
		case gomysql.LocalInFile_HEADER:
		case gomysql.ERR_HEADER:
			return parseErr(head)
		default:
			return errors.New("server did not ask for the data of LOAD DATA LOCAL")
		}
		if err := s.feed(data); err != nil {
			return err
		}
		head, err = s.readPacket()
		if err != nil {
			return err
		}
		if head[0] == gomysql.ERR_HEADER {
			return parseErr(head)
		}
		res, err = parseOK(head)
		return err
	})
	return res, err
}

func (s *Session) feed(data []byte) error {
	packet := make([]byte, 4+min(infilePacket, len(data)))
	r := bytes.NewReader(data)
	for r.Len() > 0 {
		n, err := r.Read(packet[4:])
		if err != nil {
			return err
		}
		if err := s.conn.WritePacket(packet[:4+n]); err != nil {
			return err
		}
	}
	return s.conn.WritePacket(packet[:4:4]) // an empty packet ends the file
}
