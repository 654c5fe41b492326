package redisbloom

import (
	"bufio"
	"fmt"
	"io"

	"github.com/bloomery/bloom"
)

// lzf decompresses Redis's LZF as the bytes arrive:
//
//	000nnnnn             n+1 bytes follow as they are
//	lllooooo o           l+2 bytes again, from the 13-bit offset o+1 back
//	111ooooo l o         the same, l+9 bytes
//
// It holds only the 8 KiB that offsets can refer to.
type lzf struct {
	from   *bufio.Reader
	window [1 << 13]byte
	at     uint64 // bytes unpacked so far
	given  uint64 // bytes of those handed out
}

func newLZF(packed io.Reader) *lzf { return &lzf{from: bufio.NewReader(packed)} }

// Read unpacks one piece at a time.
func (z *lzf) Read(b []byte) (int, error) {
	if z.given == z.at {
		if err := z.unpack(); err != nil {
			return 0, err
		}
	}
	n := 0
	for ; n < len(b) && z.given < z.at; n++ {
		b[n] = z.window[z.given%uint64(len(z.window))]
		z.given++
	}
	return n, nil
}

// ended reports whether everything has been read.
func (z *lzf) ended() bool {
	_, err := z.from.ReadByte()
	return err == io.EOF && z.given == z.at
}

// unpack unpacks a piece of at most 264 bytes.
func (z *lzf) unpack() error {
	control, err := z.from.ReadByte()
	if err != nil {
		return err // the only place where the input may end
	}
	if control < 1<<5 {
		for range int(control) + 1 {
			b, err := z.from.ReadByte()
			if err != nil {
				return unexpected(err)
			}
			z.put(b)
		}
		return nil
	}
	length := int(control >> 5)
	if length == 7 {
		more, err := z.from.ReadByte()
		if err != nil {
			return unexpected(err)
		}
		length += int(more)
	}
	low, err := z.from.ReadByte()
	if err != nil {
		return unexpected(err)
	}
	back := uint64(control&0x1f)<<8 | uint64(low) + 1
	if back > z.at {
		return fmt.Errorf("%w: a compressed string begins before its beginning", bloom.ErrFormat)
	}
	for range length + 2 {
		z.put(z.window[(z.at-back)%uint64(len(z.window))])
	}
	return nil
}

func (z *lzf) put(b byte) {
	z.window[z.at%uint64(len(z.window))] = b
	z.at++
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
