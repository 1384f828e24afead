package mysqlconn

import (
	"errors"
	"fmt"
	"io"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

const (
	packetHeader = 4
	// What arrives is read into a buffer that grows from the first size to the
	// second as long as reads fill it.
	firstInbox = 16 << 10
	mostInbox  = 256 << 10
)

// packets is both directions of a connection whose handshake is done. A packet
// that fits the buffer is handed out where it lies, and one that is sent is never
// copied either. It belongs to one goroutine at a time.
type packets struct {
	conn     io.ReadWriter
	sequence uint8
	buffer   []byte
	from, to int    // what has arrived and was not handed out
	filled   bool   // the last read left no room
	large    packet // what does not fit
}

// next returns the next packet, which is valid until the next call.
func (p *packets) next() ([]byte, error) {
	n, err := p.header()
	if err != nil {
		return nil, err
	}
	if n > mostInbox {
		return p.nextLarge(n)
	}
	if n == 0 {
		return nil, errors.New("empty packet from the server")
	}
	if err := p.fill(n); err != nil {
		return nil, err
	}
	p.from += n
	return p.buffer[p.from-n : p.from], nil
}

// header takes a packet's header and returns how many bytes follow.
func (p *packets) header() (int, error) {
	if err := p.fill(packetHeader); err != nil {
		return 0, err
	}
	h := p.buffer[p.from : p.from+packetHeader]
	if h[3] != p.sequence {
		// As with the farewell of a server that has ended the session before.
		return 0, fmt.Errorf("packet %d from the server where %d was expected: %w", h[3], p.sequence, gomysql.ErrBadConn)
	}
	p.sequence++
	p.from += packetHeader
	return int(h[0]) | int(h[1])<<8 | int(h[2])<<16, nil
}

// fill waits until n bytes have arrived, n being at most mostInbox.
func (p *packets) fill(n int) error {
	if p.to-p.from >= n {
		return nil
	}
	p.makeRoom(n)
	for p.to < n {
		got, err := p.conn.Read(p.buffer[p.to:])
		p.to += got
		p.filled = p.to == len(p.buffer)
		switch {
		case p.to >= n:
		case errors.Is(err, io.EOF) && p.to > 0:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return nil
}

// makeRoom moves what is left of the buffer to its begin, and grows it where it
// is too small for n bytes or for what comes at a time.
func (p *packets) makeRoom(n int) {
	left := p.buffer[p.from:p.to]
	if size := len(p.buffer); size < n || p.filled && size < mostInbox {
		p.buffer = make([]byte, min(max(2*size, n, firstInbox), mostInbox))
	}
	p.filled = false
	p.from, p.to = 0, copy(p.buffer, left)
}

// nextLarge takes a packet in that has n bytes in its first part.
func (p *packets) nextLarge(n int) (_ []byte, err error) {
	p.large.reset()
	for {
		for left := n; left > 0; {
			if err := p.fill(1); err != nil {
				return nil, err
			}
			piece := p.buffer[p.from:min(p.to, p.from+left)]
			if _, err := p.large.Write(piece); err != nil {
				return nil, err
			}
			p.from, left = p.from+len(piece), left-len(piece)
		}
		if n < gomysql.MaxPayloadLen {
			return p.large.data, nil
		}
		if n, err = p.header(); err != nil {
			return nil, err
		}
	}
}

// send sends what stands in b from its fifth byte on as one packet, in as many
// parts as that takes.
func (p *packets) send(b []byte) error {
	if err := p.sendParts(b, gomysql.MaxPayloadLen); err != nil {
		return err
	}
	if (len(b)-packetHeader)%gomysql.MaxPayloadLen == 0 {
		return p.sendPart(make([]byte, packetHeader))
	}
	return nil
}

// sendParts sends what stands in b from its fifth byte on in parts of size bytes.
func (p *packets) sendParts(b []byte, size int) error {
	for at := packetHeader; at < len(b); at += size {
		if err := p.sendPart(b[at-packetHeader : min(at+size, len(b))]); err != nil {
			return err
		}
	}
	return nil
}

// sendPart puts the header in front of a part, in place, and what it overwrites
// back: the packet may be sent once more.
func (p *packets) sendPart(b []byte) error {
	under := [packetHeader]byte(b)
	n := len(b) - packetHeader
	b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), p.sequence
	p.sequence++
	_, err := p.conn.Write(b)
	copy(b, under[:])
	return err
}
