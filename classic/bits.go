package classic

import (
	"fmt"
	"io"
	"math/bits"
	"os"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/internal/filterfile"
	"github.com/bloomery/bloom/internal/memory"
)

// BitOrder is how another program stores the bits of a [Filter] in bytes.
type BitOrder uint8

const (
	// LowBitFirst: bit i is in byte i/8, mask 1<<(i%8); ceil(m/8) bytes.
	LowBitFirst BitOrder = iota

	// HighBitFirst: bit i is in byte i/8, mask 0x80>>(i%8); ceil(m/8) bytes.
	HighBitFirst

	// LittleEndianWords: bit i is in 64-bit word i/64, mask 1<<(i%64), lowest
	// byte first; 8 ceil(m/64) bytes. It is LowBitFirst with zeros at the end.
	LittleEndianWords

	// BigEndianWords: the same words, highest byte first.
	BigEndianWords
)

// bytesOf returns the number of bytes that m bits take.
func (o BitOrder) bytesOf(m uint64) uint64 {
	if o == LittleEndianWords || o == BigEndianWords {
		return (m + 63) / 64 * 8
	}
	return (m + 7) / 8
}

// toFile converts words from memory's order to this one, or back.
func (o BitOrder) toFile(words []uint64) {
	swap := memory.LittleEndian == (o == BigEndianWords)
	for i, word := range words {
		if o == HighBitFirst {
			word = bits.ReverseBytes64(bits.Reverse64(word)) // the bits of each byte
		}
		if swap {
			word = bits.ReverseBytes64(word)
		}
		words[i] = word
	}
}

// plain reports whether words have the same bytes in memory as in a file of this
// order.
func (o BitOrder) plain() bool {
	return memory.LittleEndian && (o == LowBitFirst || o == LittleEndianWords)
}

// ReadBits makes the planned filter and reads its bits, as another program wrote
// them; the caller reads what comes before and after. Memory grows as the bytes
// arrive. The error wraps [bloom.ErrFormat] if they end too early, or if bits are
// set after the last one; otherwise it is the plan's or the reader's.
//
// The filter's count of adds is zero. Without Keys, its plan has the number of keys
// that fills half of the bits.
func (c Config) ReadBits(r io.Reader, order BitOrder) (*Filter, error) {
	if order > BigEndianWords {
		return nil, fmt.Errorf("%w: no bit order %d", bloom.ErrConfig, order)
	}
	plan, hash, err := c.planned()
	if err != nil {
		return nil, err
	}
	words, mapping, err := filterfile.ReadWords(r, order.bytesOf(plan.Bits), func(part []uint64) {
		if !order.plain() {
			order.toFile(part)
		}
	})
	if err == nil {
		err = noneBehind(words, plan.Bits)
	}
	if err != nil {
		mapping.Close()
		return nil, err
	}
	return &Filter{words: words, scheme: Scheme{c.Scheme.def()}, Hasher: hash, plan: plan, memory: mapping}, nil
}

func (c Config) planned() (bloom.Plan, bloom.Hasher, error) {
	plan, err := c.Plan()
	if err != nil {
		return bloom.Plan{}, bloom.Hasher{}, err
	}
	hash, err := c.hasher()
	return plan, hash, err
}

// OpenBits is ReadBits for a file whose bits begin at offset, a multiple of 8, in
// the order LittleEndianWords. The file is mapped, not read, and may be longer.
// Everything that [bloom.Open] says about opened filters and their files applies.
// The error wraps [bloom.ErrFormat] if the file is too short.
func (c Config) OpenBits(path string, offset int64) (*Filter, error) {
	plan, hash, err := c.planned()
	if err != nil {
		return nil, err
	}
	file, size, err := filterfile.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the mapping outlives it
	words, mapping, err := mapBits(file, size, offset, plan.Bits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Filter{words: words, scheme: Scheme{c.Scheme.def()}, Hasher: hash, plan: plan, memory: mapping, readOnly: true}, nil
}

func mapBits(file *os.File, size, offset int64, m uint64) ([]uint64, *memory.Mapping, error) {
	if offset < 0 || offset%8 != 0 {
		return nil, nil, fmt.Errorf("%w: bits are mapped from a multiple of 8, not from byte %d", bloom.ErrConfig, offset)
	}
	length := LittleEndianWords.bytesOf(m)
	if size < offset || uint64(size-offset) < length {
		return nil, nil, fmt.Errorf("%w: the file has %d bytes, %d bits from byte %d need %d", bloom.ErrFormat, size, m, offset, uint64(offset)+length)
	}
	mapping, err := memory.MapFile(file, int64(uint64(offset)+length), false)
	if err != nil {
		return nil, nil, fmt.Errorf("bloom: opening: %w", err)
	}
	words := memory.FileWords(mapping.Bytes()[offset:][:length])
	if err := noneBehind(words, m); err != nil {
		mapping.Close()
		return nil, nil, err
	}
	return words, mapping, nil
}

// noneBehind returns an error if words have bits set from bit m on.
func noneBehind(words []uint64, m uint64) error {
	if m%64 != 0 && words[len(words)-1]>>(m%64) != 0 {
		return fmt.Errorf("%w: bits set behind the last of %d", bloom.ErrFormat, m)
	}
	return nil
}

// WriteBits writes the bits and nothing else, as another program stores them.
func (f *Filter) WriteBits(w io.Writer, order BitOrder) (int64, error) {
	f.mustBeOpen()
	defer f.keepAlive()
	reorder := order.toFile
	if order.plain() {
		reorder = nil
	}
	return filterfile.WriteWords(w, f.words, order.bytesOf(f.plan.Bits), reorder)
}
