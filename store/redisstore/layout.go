package redisstore

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/kernel"
)

// A filter is cut into chunks, each a string of its own, and so on some node of the
// cluster:
//
//	<prefix>{names}             hash: n<name> -> epoch, 16 hexadecimal digits; id -> the store's
//	<prefix>{names}:<epoch>     hash: head, a file's first three pages; rate; j; items; and
//	                            header, have and sums while it is being loaded
//	<prefix>{names}:secret      string: the secret of filters that are not public
//	<prefix>id:<0 to 2>         strings: copies of the store's id
//	<prefix>b:<epoch>:<i>       string: chunk i
//
// A chunk is a head of 480 bytes and whole blocks of 512:
//
//	  0  magic    "bloomery"
//	  8  version  u32, 1
//	 12  j        u32: a whole chunk has 2^j - 32 bytes
//	 16  epoch    u64
//	 24  index    u64
//	 32  zeros
//	480  blocks
//
// 2^j - 32 is what fits into an allocation of 2^j bytes together with the allocator's
// and the server's own headers; a string of 2^j takes a quarter more. The last chunk is
// as short as its blocks.
//
// The epoch is a random number that a filter keeps for life, whatever its name. A filter
// that takes another's name has another epoch, so a process that still has the old one
// finds its chunks gone, and never bits that are not the filter's.
const (
	chunkHead    = 480
	chunkSlack   = 32 // bytes by which a chunk is below a power of two
	chunkMagic   = "bloomery"
	chunkVersion = 1

	leastChunk = 16 // j
	mostChunk  = 20

	// idBytes is how much of a chunk's head says whose it is.
	idBytes = 32
)

// shape says how a filter is cut.
type shape struct {
	blocks uint64
	log    int // j
}

// shapeOf cuts a filter into 64 chunks or more, unless they would be smaller than 64 KiB
// or larger than 1 MiB.
func shapeOf(blocks uint64) shape {
	log := bits.Len64(blocks*kernel.BlockBytes/64) - 1
	return shape{blocks, min(max(log, leastChunk), mostChunk)}
}

// perChunk is the number of blocks of a whole chunk.
func (s shape) perChunk() uint64 { return (1<<s.log - chunkSlack - chunkHead) / kernel.BlockBytes }

func (s shape) chunks() uint64 { return (s.blocks + s.perChunk() - 1) / s.perChunk() }

// blocksOf is the number of blocks of a chunk.
func (s shape) blocksOf(chunk uint64) uint64 {
	return min(s.perChunk(), s.blocks-chunk*s.perChunk())
}

// bytesOf is the length of a chunk's string.
func (s shape) bytesOf(chunk uint64) uint64 { return chunkHead + s.blocksOf(chunk)*kernel.BlockBytes }

// takes is the memory of all chunks, of one copy.
func (s shape) takes() uint64 {
	last := s.chunks() - 1
	return last<<s.log + s.bytesOf(last) + chunkSlack
}

// place returns the chunk of a block, and the block's offset in its string.
func (s shape) place(block uint64) (chunk, offset uint64) {
	return block / s.perChunk(), chunkHead + block%s.perChunk()*kernel.BlockBytes
}

// id is the beginning of a chunk, which says whose it is.
func (s shape) id(e epoch, chunk uint64) []byte {
	b := make([]byte, 0, idBytes)
	b = append(b, chunkMagic...)
	b = binary.LittleEndian.AppendUint32(b, chunkVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(s.log))
	b = binary.LittleEndian.AppendUint64(b, uint64(e))
	return binary.LittleEndian.AppendUint64(b, chunk)
}

// epoch is a filter's identity.
type epoch uint64

func (e epoch) String() string { return fmt.Sprintf("%016x", uint64(e)) }

func parseEpoch(text string) (e epoch, err error) {
	var n int
	if n, err = fmt.Sscanf(text, "%016x", (*uint64)(&e)); err != nil || n != 1 || e.String() != text {
		return 0, fmt.Errorf("%w: epoch %q", ErrDamaged, text)
	}
	return e, nil
}

// The store's id is a random number. It tells a store without names from one whose names
// were lost with a server: then only the copies are there, which most likely other
// servers have.
const (
	idField  = "id"
	idCopies = 3
)

// field is the field of a name.
func field(name string) string { return "n" + name }

// keys are the names of what the store keeps.
type keys struct{ prefix, names string }

func keysOf(prefix string) keys { return keys{prefix, prefix + "{names}"} }

func (k keys) id(copy int) string { return fmt.Sprintf("%sid:%d", k.prefix, copy) }

func (k keys) secret() string      { return k.names + ":secret" }
func (k keys) meta(e epoch) string { return k.names + ":" + e.String() }

func (k keys) chunk(e epoch, i uint64) string {
	b := append(make([]byte, 0, len(k.prefix)+40), k.prefix...)
	b = append(b, "b:"...)
	b = fmt.Appendf(b, "%016x:%d", uint64(e), i)
	return string(b)
}

// span is where a key's bits lie in a chunk: from the first of its two lines to the end
// of the second, which is half of a block on average.
type span struct {
	chunk, offset uint64
	length        int
	hash          uint64
	probe         kernel.Probe
}

const lineBytes = kernel.LanesPerLine * 8

func (s shape) span(paired *kernel.Paired, hash uint64) span {
	p := paired.Probe(hash)
	chunk, offset := s.place(p.Block)
	first, last := min(p.Lines[0], p.Lines[1]), max(p.Lines[0], p.Lines[1])
	return span{chunk, offset + uint64(first*lineBytes), (last - first + 1) * lineBytes, hash, p}
}

// line returns the offset in the span of one of its two lines.
func (s *span) line(i int) int {
	return (s.probe.Lines[i] - min(s.probe.Lines[0], s.probe.Lines[1])) * lineBytes
}

// isIn reports whether all bits of the key are set in the bytes of its span.
func (s *span) isIn(bytes string) bool {
	for i, masks := range s.probe.Masks {
		line := bytes[s.line(i):][:lineBytes]
		for lane, mask := range masks {
			word := uint64(0)
			for j := 7; j >= 0; j-- {
				word = word<<8 | uint64(line[8*lane+j])
			}
			if mask&^word != 0 {
				return false
			}
		}
	}
	return true
}

// appendBits appends what the script for adding reads: the span's offset (four bytes,
// big-endian), its length (two), the number of bits (one), and for each bit its byte in
// the span, from 1 (two), and its mask (one), in ascending order.
func (s *span) appendBits(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(s.offset))
	b = binary.BigEndian.AppendUint16(b, uint16(s.length))
	count := len(b)
	b = append(b, 0)
	lines := [2]int{0, 1}
	if s.probe.Lines[0] > s.probe.Lines[1] {
		lines = [2]int{1, 0}
	}
	for _, i := range lines {
		for lane, mask := range s.probe.Masks[i] {
			if mask == 0 {
				continue
			}
			bit := bits.TrailingZeros64(mask)
			b = binary.BigEndian.AppendUint16(b, uint16(s.line(i)+8*lane+bit/8+1))
			b = append(b, 1<<(bit%8))
			b[count]++
		}
	}
	return b
}

// headOf returns the head of the file of an empty filter, which the store keeps as the
// filter's metadata.
func headOf(plan bloom.Plan, hash bloom.HashIdentity) ([]byte, error) {
	f := filterfile.NewEmpty(filterfile.Header{
		Kind:   filterfile.KindFilter,
		Scheme: filterfile.SchemePaired,
		Hash:   filterfile.Hash{Algorithm: uint32(hash.Algorithm), Key: hash.Key},
		Keys:   plan.Keys,
		Rate:   plan.Rate,
	}, []filterfile.Section{{
		Kind:   filterfile.SectionPaired,
		Probes: uint32(plan.Probes),
		Length: plan.Bytes(),
		Blocks: plan.Blocks,
	}})
	return f.Head()
}
