package mysqlconn

import (
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

// LoadLocal runs a LOAD DATA LOCAL INFILE statement and feeds it what stands in
// data from its fifth byte on, wholly in memory: a server that waits for the next
// bytes may hold locks. The bytes before are overwritten, the rest is as it was
// when it returns. An error of the connection in between is not the end of the
// file, so that the server rolls back.
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
	if err := s.packets.sendParts(data, infilePacket); err != nil {
		return err
	}
	return s.packets.sendPart(make([]byte, packetHeader)) // an empty packet ends the file
}
