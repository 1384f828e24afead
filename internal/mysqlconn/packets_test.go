package mysqlconn

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// sizes are of packets around every limit there is.
var sizes = []int{1, 5, 100, firstInbox - packetHeader, firstInbox, mostInbox - packetHeader, mostInbox, mostInbox + 1,
	gomysql.MaxPayloadLen - 1, gomysql.MaxPayloadLen, gomysql.MaxPayloadLen + 1, 2 * gomysql.MaxPayloadLen, 7}

func pattern(size int) []byte {
	b := make([]byte, packetHeader+size)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// pipe is both directions of a connection, with reads as reader has them.
type pipe struct {
	io.Reader
	*bytes.Buffer
}

func (p pipe) Read(b []byte) (int, error) { return p.Reader.Read(b) }

// Packets arrive as they were sent, however they are cut on the way, and what
// was sent is as it was: a statement is sent again after a deadlock.
func TestPackets(t *testing.T) {
	for name, cut := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r },
		"halves": iotest.HalfReader, "random": randomReader, "end with data": iotest.DataErrReader} {
		t.Run(name, func(t *testing.T) {
			var wire bytes.Buffer
			out := packets{conn: pipe{nil, &wire}}
			for _, n := range sizes {
				b := pattern(n)
				if err := out.send(b); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(b, pattern(n)) {
					t.Errorf("a packet of %d bytes was changed by sending it", n)
				}
			}
			in := packets{conn: pipe{cut(&wire), nil}}
			for _, n := range sizes {
				got, err := in.next()
				if err != nil || !bytes.Equal(got, pattern(n)[packetHeader:]) {
					t.Fatalf("a packet of %d bytes arrived as %d others, %v", n, len(got), err)
				}
			}
			if _, err := in.next(); !errors.Is(err, io.EOF) {
				t.Errorf("behind the last packet: %v", err)
			}
			if len(in.buffer) > mostInbox || cap(in.large.data) > keepBuffer && in.large.columns > 0 {
				t.Errorf("the buffer has %d bytes", len(in.buffer))
			}
		})
	}
}

// randomReader reads up to 100,000 bytes at a time.
func randomReader(r io.Reader) io.Reader {
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	return readerFunc(func(b []byte) (int, error) { return r.Read(b[:min(len(b), 1+rnd.IntN(100_000))]) })
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A connection that breaks within a packet is no end of the stream, and a packet
// that is out of turn is an error.
func TestPacketsBroken(t *testing.T) {
	var wire bytes.Buffer
	out := packets{conn: pipe{nil, &wire}}
	if err := out.send(pattern(100)); err != nil {
		t.Fatal(err)
	}
	whole := slices.Clone(wire.Bytes())
	for n, want := range map[int]error{0: io.EOF, 2: io.ErrUnexpectedEOF, packetHeader: io.ErrUnexpectedEOF, 60: io.ErrUnexpectedEOF} {
		in := packets{conn: pipe{bytes.NewReader(whole[:n]), nil}}
		if _, err := in.next(); !IsConnectionLost(err) || n > packetHeader && !errors.Is(err, want) {
			t.Errorf("after %d bytes: %v, want %v", n, err, want)
		}
	}
	in := packets{conn: pipe{bytes.NewReader(whole), nil}, sequence: 3}
	if _, err := in.next(); !IsConnectionLost(err) {
		t.Errorf("a packet out of turn: %v", err)
	}
}

// BenchmarkRows reads rows of 200 bytes off the wire and splits them.
func BenchmarkRows(b *testing.B) {
	var row []byte
	for _, n := range []int{7, 6, 119, 59} {
		row = append(append(row, byte(n)), bytes.Repeat([]byte("x"), n)...)
	}
	var wire bytes.Buffer
	out := packets{conn: pipe{nil, &wire}}
	for range 1 << 14 {
		if err := out.send(append(make([]byte, packetHeader), row...)); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(row)))
	b.ReportAllocs()
	in := packets{}
	fields := make([][]byte, 4)
	for n := 0; b.Loop(); n++ {
		if n&(1<<14-1) == 0 {
			in.conn = pipe{bytes.NewReader(wire.Bytes()), nil}
		}
		p, err := in.next()
		if err == nil {
			err = splitRow(p, fields)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
