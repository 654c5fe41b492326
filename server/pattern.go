package server

import (
	"math/bits"
	"strconv"
	"strings"
)

// A glob is a Redis pattern: * matches any bytes, ? any one byte, [abc] [^abc] [a-z]
// one of a set, and a backslash makes the next byte literal. It is parsed once, for
// many texts.
//
// The stars separate segments. The first segment must begin the text and the last must
// end it; each one in between matches at the first place after the one before it. Redis
// backtracks to every byte, which takes the product of the lengths; here the time is
// the length of the text, times at most 1/64 of the length of the pattern.
type glob struct{ segments []*segment }

// glob parses an argument as a pattern, or replies that it is too long: no name is that
// long, and a pattern takes memory for each byte.
func (c *Client) glob(arg []byte) (*glob, bool) {
	if limit := c.server.limits.Load().KeyBytes; len(arg) > limit {
		c.server.metrics.refuse(limitKey)
		c.w.Error("ERR a pattern of " + strconv.Itoa(len(arg)) + " bytes is too long" + limitSuffix(limitKey, limit))
		return nil, false
	}
	return newGlob(string(arg)), true
}

// matches reports whether text matches a pattern.
func matches(pattern, text string) bool { return newGlob(pattern).matches(text) }

func newGlob(pattern string) *glob {
	g, s := &glob{}, &segment{}
	for p := 0; p < len(pattern); {
		if pattern[p] == '*' {
			g.segments = append(g.segments, s.finish())
			s = &segment{}
			p++
			continue
		}
		var set byteSet
		set, p = parseElement(pattern, p)
		s.sets = append(s.sets, set)
	}
	g.segments = append(g.segments, s.finish())
	return g
}

func (g *glob) matches(text string) bool {
	first, last := g.segments[0], g.segments[len(g.segments)-1]
	if len(g.segments) == 1 {
		return len(text) == len(first.sets) && first.begins(text)
	}
	if len(text) < len(first.sets)+len(last.sets) || !first.begins(text) || !last.begins(text[len(text)-len(last.sets):]) {
		return false
	}
	text = text[len(first.sets) : len(text)-len(last.sets)]
	for _, s := range g.segments[1 : len(g.segments)-1] {
		end := s.find(text)
		if end < 0 {
			return false
		}
		text = text[end:]
	}
	return true
}

// byteSet is the set of bytes that an element of a pattern matches.
type byteSet [4]uint64

func (s *byteSet) add(b byte)      { s[b/64] |= 1 << (b % 64) }
func (s *byteSet) has(b byte) bool { return s[b/64]>>(b%64)&1 != 0 }

// parseElement reads the element of the pattern at p, which is not a *, and returns
// where the next one begins.
func parseElement(pattern string, p int) (set byteSet, next int) {
	switch pattern[p] {
	case '?':
		return byteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}, p + 1
	case '[':
		return parseClass(pattern, p+1)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	set.add(pattern[p])
	return set, p + 1
}

// parseClass is parseElement for what follows a [. An unclosed class ends with the
// pattern.
func parseClass(pattern string, p int) (set byteSet, next int) {
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
	for p < len(pattern) && pattern[p] != ']' {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			set.add(pattern[p])
		case p+2 < len(pattern) && pattern[p+1] == '-':
			from, to := int(pattern[p]), int(pattern[p+2])
			for b := min(from, to); b <= max(from, to); b++ {
				set.add(byte(b))
			}
			p += 2
		default:
			set.add(pattern[p])
		}
		p++
	}
	if not {
		for i := range set {
			set[i] = ^set[i]
		}
	}
	return set, min(p+1, len(pattern))
}

// A segment is a sequence of elements between two stars.
type segment struct {
	sets    []byteSet
	literal string // if each element is one byte
	plain   bool

	// For searching with many elements: masks[b] has a bit for each element that
	// matches b, made at the first b. state is scratch space.
	masks [][]uint64
	state []uint64
}

// fewElements is the most elements that are searched for place by place.
const fewElements = 64

// finish is called when all elements are there.
func (s *segment) finish() *segment {
	literal := make([]byte, 0, len(s.sets))
	for _, set := range s.sets {
		for i, word := range set {
			if word != 0 {
				literal = append(literal, byte(64*i+bits.TrailingZeros64(word)))
			}
			if word&(word-1) != 0 {
				return s
			}
		}
	}
	s.plain, s.literal = len(literal) == len(s.sets), string(literal)
	return s
}

// begins reports whether text, which is long enough, begins with the segment.
func (s *segment) begins(text string) bool {
	for i := range s.sets {
		if !s.sets[i].has(text[i]) {
			return false
		}
	}
	return true
}

// find returns where the first match of the segment in the text ends, or -1. With many
// elements, bit i of the state says that the first i+1 elements match the bytes up to
// here (Baeza-Yates and Gonnet 1992, shift-and).
func (s *segment) find(text string) (end int) {
	n := len(s.sets)
	switch {
	case n == 0:
		return 0
	case n > len(text):
		return -1
	case s.plain:
		if at := strings.Index(text, s.literal); at >= 0 {
			return at + n
		}
		return -1
	}
	if n <= fewElements {
		for at := range len(text) - n + 1 {
			if s.begins(text[at:]) {
				return at + n
			}
		}
		return -1
	}
	if s.state == nil {
		s.state, s.masks = make([]uint64, (n+63)/64), make([][]uint64, 256)
	}
	clear(s.state)
	for i := range len(text) {
		mask, carry := s.mask(text[i]), uint64(1)
		for w, bits := range s.state {
			s.state[w] = (bits<<1 | carry) & mask[w]
			carry = bits >> 63
		}
		if s.state[(n-1)/64]>>((n-1)%64)&1 != 0 {
			return i + 1
		}
	}
	return -1
}

func (s *segment) mask(b byte) []uint64 {
	if s.masks[b] == nil {
		mask := make([]uint64, (len(s.sets)+63)/64)
		for i := range s.sets {
			if s.sets[i].has(b) {
				mask[i/64] |= 1 << (i % 64)
			}
		}
		s.masks[b] = mask
	}
	return s.masks[b]
}
