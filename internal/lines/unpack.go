package lines

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The first bytes of compressed files. A zstd file may begin with skippable frames, as
// those of pzstd do; the low four bits of their first byte are arbitrary. The fourth
// byte of a bzip2 file is a digit.
var (
	gzipMagic  = []byte{0x1f, 0x8b, 8}
	zstdMagic  = []byte{0x28, 0xb5, 0x2f, 0xfd}
	skipMagic  = []byte{0x50, 0x2a, 0x4d, 0x18}
	xzMagic    = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
	bzip2Magic = []byte("BZh91AY&SY")
)

const magicBytes = 10

func isGzip(head []byte) bool { return bytes.HasPrefix(head, gzipMagic) }

func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, zstdMagic) || len(head) >= len(skipMagic) && beginsSkip(head)
}

// beginsSkip reports whether a skippable frame may begin with head.
func beginsSkip(head []byte) bool {
	n := min(len(head), len(skipMagic))
	return n > 0 && head[0]&0xf0 == skipMagic[0] && bytes.Equal(head[1:n], skipMagic[1:n])
}

// Packing names the program that compressed a file that begins with head: gzip, zstd,
// bzip2 or xz. It is empty for a file that is not compressed.
func Packing(head []byte) string {
	switch {
	case isGzip(head):
		return "gzip"
	case isZstd(head):
		return "zstd"
	case isBzip2(head):
		return "bzip2"
	case isXz(head):
		return "xz"
	}
	return ""
}

// ReadPacking is Packing for the contents of r.
func ReadPacking(r io.Reader) (string, error) {
	head, err := readHead(r)
	return Packing(head), err
}

func isXz(head []byte) bool { return bytes.HasPrefix(head, xzMagic) }

func isBzip2(head []byte) bool { return len(head) >= len(bzip2Magic) && beginsBzip2(head) }

func beginsBzip2(head []byte) bool {
	n := min(len(head), len(bzip2Magic))
	for i, c := range head[:n] {
		if c != bzip2Magic[i] && (i != 3 || c < '1' || c > '9') {
			return false
		}
	}
	return true
}

// unpack wraps raw in the decompressor of its format. closePacking is nil if raw is
// not compressed.
func unpack(raw io.Reader) (unpacked io.Reader, closePacking func(), err error) {
	head, err := readHead(raw)
	if err != nil {
		return nil, nil, err
	}
	whole := io.MultiReader(bytes.NewReader(head), raw)
	switch Packing(head) {
	case "gzip":
		r, err := newGzipReader(whole)
		return r, func() {}, err
	case "zstd":
		r, err := zstd.NewReader(whole)
		if err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	case "bzip2":
		return bzip2.NewReader(whole), func() {}, nil
	case "xz":
		return nil, nil, errors.New("is compressed with xz, which bloomery does not read: decompress it first: 'xz -dc FILE | bloomery ...'")
	}
	return whole, nil, nil
}

// readHead reads enough bytes to recognise the format. It stops as soon as the format is
// known, or no compressed file begins like this; otherwise it could wait on a slow pipe
// for a second line while holding back the first.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, 0, magicBytes)
	for len(head) < magicBytes && !isGzip(head) && !isZstd(head) && !isXz(head) {
		n, err := r.Read(head[len(head):magicBytes])
		head = head[:len(head)+n]
		if err == io.EOF || err == nil && !magicBegins(head) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return head, nil
}

func magicBegins(head []byte) bool {
	for _, magic := range [][]byte{gzipMagic, zstdMagic, xzMagic} {
		if n := min(len(head), len(magic)); bytes.Equal(head[:n], magic[:n]) {
			return true
		}
	}
	return len(head) == 0 || beginsSkip(head) || beginsBzip2(head)
}

// gzipReader decompresses a gzip file, member after member. Anything after the last
// member that does not begin another is ignored, as by gzip(1): tapes and some web
// servers put zeros there.
type gzipReader struct {
	from   *bufio.Reader
	member *gzip.Reader
}

func newGzipReader(r io.Reader) (*gzipReader, error) {
	from := bufio.NewReaderSize(r, 64<<10)
	member, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	member.Multistream(false)
	return &gzipReader{from, member}, nil
}

func (g *gzipReader) Read(b []byte) (int, error) {
	n, err := g.member.Read(b)
	if n > 0 && err == io.EOF {
		err = nil // the next Read will return it again
	}
	if err != io.EOF {
		return n, err
	}
	next, err := g.from.Peek(len(gzipMagic))
	if err != nil && err != io.EOF {
		return 0, err
	}
	if !isGzip(next) {
		return 0, io.EOF
	}
	if err := g.member.Reset(g.from); err != nil {
		return 0, err
	}
	g.member.Multistream(false)
	return 0, nil
}
