package streamer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/copydb/copydb/internal/mysqlconn"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest window that the server's compression levels use.
const maxWindow = 128 << 20

// parsers make events of bytes. The library would decode all events of a
// compressed transaction before it hands over the first, whatever their size; so
// it is asked for the bytes only, and for one event after the other.
type parsers struct {
	outer *replication.BinlogParser
	inner *replication.BinlogParser // for events inside of payloads, which have no checksums
	zstd  *zstd.Decoder             // made with the first payload
}

func newParsers(flavor mysqlconn.Flavor, rows func(*replication.RowsEvent, []byte) error) *parsers {
	return &parsers{outer: newParser(flavor, rows), inner: newParser(flavor, rows)}
}

func newParser(flavor mysqlconn.Flavor, rows func(*replication.RowsEvent, []byte) error) *replication.BinlogParser {
	p := replication.NewBinlogParser()
	p.SetFlavor(string(flavor))
	p.SetTimestampStringLocation(time.UTC)
	p.SetRenderJSONAsMySQLText(true)
	p.SetRowsEventDecodeFunc(rows)
	return p
}

// parse makes an event of its bytes. That of a payload stays as it is.
func (p *parsers) parse(raw []byte) (*replication.BinlogEvent, error) {
	if len(raw) >= eventHeader && replication.EventType(raw[4]) == replication.TRANSACTION_PAYLOAD_EVENT {
		h := new(replication.EventHeader)
		if err := h.Decode(raw); err != nil {
			return nil, err
		}
		return &replication.BinlogEvent{RawData: raw, Header: h, Event: &replication.GenericEvent{Data: raw[eventHeader:]}}, nil
	}
	e, err := p.outer.Parse(raw)
	if err != nil {
		return nil, err
	}
	if e.Header.EventType == replication.FORMAT_DESCRIPTION_EVENT {
		err = p.describe(raw)
	}
	return e, err
}

// describe tells the inner parser the format of the file. The kind of checksum
// stands before the last four bytes.
func (p *parsers) describe(raw []byte) error {
	plain := bytes.Clone(raw)
	plain[len(plain)-5] = byte(replication.BINLOG_CHECKSUM_ALG_OFF)
	_, err := p.inner.Parse(plain)
	return err
}

// close ends what decompresses.
func (p *parsers) close() {
	if p.zstd != nil {
		p.zstd.Close()
	}
}

// open reads the head of a payload and returns what its events are read from.
func (p *parsers) open(body []byte) (io.Reader, error) {
	compression, rest, err := payloadHead(body)
	if err != nil {
		return nil, err
	}
	switch compression {
	case replication.NONE:
		return bytes.NewReader(rest), nil
	case replication.ZSTD:
	default:
		return nil, fmt.Errorf("its compression %d is not known", compression)
	}
	if p.zstd == nil {
		p.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
	}
	return p.zstd, p.zstd.Reset(bytes.NewReader(rest))
}

var errPayloadCut = errors.New("it ends too early")

// payloadHead reads fields of kind, length and value up to the end mark, and
// returns the kind of compression.
func payloadHead(b []byte) (compression uint64, rest []byte, err error) {
	compression = replication.NONE
	for {
		kind, b1, ok := lengthEncoded(b)
		if !ok {
			return 0, nil, errPayloadCut
		}
		if kind == replication.OTW_PAYLOAD_HEADER_END_MARK {
			return compression, b1, nil
		}
		n, b2, ok := lengthEncoded(b1)
		if !ok || n > uint64(len(b2)) {
			return 0, nil, errPayloadCut
		}
		if kind == replication.OTW_PAYLOAD_COMPRESSION_TYPE_FIELD {
			if compression, _, ok = lengthEncoded(b2[:n]); !ok {
				return 0, nil, errPayloadCut
			}
		}
		b = b2[n:]
	}
}

// lengthEncoded reads an integer of the protocol's variable length.
func lengthEncoded(b []byte) (v uint64, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	var n int
	switch b[0] {
	case 0xfc:
		n = 2
	case 0xfd:
		n = 3
	case 0xfe:
		n = 8
	case 0xfb, 0xff:
		return 0, nil, false
	default:
		return uint64(b[0]), b[1:], true
	}
	if len(b) <= n {
		return 0, nil, false
	}
	var le [8]byte
	copy(le[:], b[1:1+n])
	return binary.LittleEndian.Uint64(le[:]), b[1+n:], true
}

// nextEvent reads the bytes of one event; io.EOF only where the input ends
// before it.
func nextEvent(in io.Reader) ([]byte, error) {
	head := make([]byte, eventHeader)
	if _, err := io.ReadFull(in, head); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errPayloadCut
		}
		return nil, err
	}
	size := int64(binary.LittleEndian.Uint32(head[9:])) - eventHeader
	if size < 0 {
		return nil, errors.New("an event in it has no room for its header")
	}
	// The size may be wrong: room is made as the bytes come.
	b := bytes.NewBuffer(head)
	b.Grow(int(min(size, 64<<10)))
	n, err := io.CopyN(b, in, size)
	if err == nil || n == size {
		return b.Bytes(), nil
	}
	if errors.Is(err, io.EOF) {
		err = errPayloadCut
	}
	return nil, err
}
