package mysqlconn

import (
	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

const (
	firstBuffer = 32 << 10
	// keepBuffer is how large a packet may have been for its memory to be kept for
	// the next one, in bytes.
	keepBuffer = 4 << 20
)

// packet takes in one large packet as it arrives. That of a row of result columns
// says early how long it will be, so that it has its memory at once and only once.
type packet struct {
	data    []byte
	columns int                     // of the result that is read; 0: no rows
	large   func(bytes int64) error // may be nil; see Session.OnLarge
}

// reset makes it ready for the next packet.
func (p *packet) reset() {
	if cap(p.data) > keepBuffer {
		p.data = nil
	}
	p.data = p.data[:0]
}

// Write implements io.Writer.
func (p *packet) Write(b []byte) (int, error) {
	if need := len(p.data) + len(b); need > cap(p.data) {
		if err := p.grow(need); err != nil {
			return 0, err
		}
	}
	p.data = append(p.data, b...)
	return len(b), nil
}

func (p *packet) grow(need int) error {
	want := max(firstBuffer, need+need/4)
	if said := rowBytes(p.data, p.columns); said > need {
		want = said + firstBuffer // the columns behind are short, or say more in their turn
	}
	if want > keepBuffer && p.large != nil {
		if err := p.large(int64(want)); err != nil {
			return err
		}
	}
	p.data = append(make([]byte, 0, want), p.data...)
	return nil
}

// rowBytes is how long a row's packet is at least, by what there is of it.
func rowBytes(p []byte, columns int) int {
	pos := 0
	for range columns {
		if pos+9 > len(p) {
			break // a length may have nine bytes
		}
		if p[pos] == 0xfb {
			pos++
			continue
		}
		n, _, size := gomysql.LengthEncodedInt(p[pos:])
		pos += size + int(n)
	}
	return pos
}
