package anyfile

import (
	"fmt"
	"strings"

	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/interop"
)

// From a line to its key. A filter holds keys exactly as they were added: a lookup of
// "HTTP://Example.com" does not find "http://example.com/". So a filter can hold lines in
// a normal form, which its metadata records.

// NormalizeMeta is the metadata key of the normal forms that a file's lines were
// converted to.
const NormalizeMeta = "normalize"

// normalizers are the normal forms. They are frozen, because the keys in files depend on
// them: names can be added, but no name can change its meaning. Each function appends the
// normal form of a line to dst. They work on bytes and change only ASCII letters, so that
// their meaning depends on no Unicode table.
var normalizers = map[string]func(dst, line []byte) []byte{
	"url":   appendURL,
	"lower": appendLower,
	"upper": appendUpper,
	"trim":  appendTrimmed,
	"hex":   appendHex,
}

// FunnelNames returns the names of Guava's funnels, which turn values into bytes.
func FunnelNames() (names []string) {
	for _, f := range interop.Funnels() {
		names = append(names, f.String())
	}
	return names
}

// A KeyMap turns lines into keys. Nil leaves them as they are.
type KeyMap struct {
	steps []step
	text  []byte
	ends  []int
	keys  [][]byte
}

// A step appends the converted line to dst.
type step func(dst, line []byte) ([]byte, error)

// NewKeyMap makes the map for a funnel and a list of normal forms. It is nil if
// neither is given.
func NewKeyMap(funnel, normalize string) (*KeyMap, error) {
	m := &KeyMap{}
	if normalize != "" {
		for name := range strings.SplitSeq(normalize, ",") {
			form, ok := normalizers[name]
			if !ok {
				return nil, Usagef("--normalize %s is unknown: take url, lower, upper, trim or hex, or several with commas between", name)
			}
			m.steps = append(m.steps, func(dst, line []byte) ([]byte, error) { return form(dst, line), nil })
		}
	}
	if funnel != "" {
		f, ok := interop.FunnelNamed(funnel)
		if !ok {
			return nil, Usagef("--funnel %s is unknown: take one of %s", funnel, strings.Join(FunnelNames(), ", "))
		}
		m.steps = append(m.steps, f.Append)
	}
	if len(m.steps) == 0 {
		return nil, nil
	}
	return m, nil
}

// Clone returns a map that another goroutine may use.
func (m *KeyMap) Clone() *KeyMap {
	if m == nil {
		return nil
	}
	return &KeyMap{steps: m.steps}
}

// Of returns the keys of the lines. They are valid until the next call.
func (m *KeyMap) Of(lines [][]byte) ([][]byte, error) {
	if m == nil {
		return lines, nil
	}
	m.text, m.ends = m.text[:0], m.ends[:0]
	for _, line := range lines {
		form := line
		for _, step := range m.steps {
			start := len(m.text)
			var err error
			if m.text, err = step(m.text, form); err != nil {
				return nil, err
			}
			form = m.text[start:]
			m.ends = append(m.ends, start)
		}
		m.ends = append(m.ends, len(m.text))
	}
	m.keys = m.keys[:0]
	for at := len(m.steps); at < len(m.ends); at += len(m.steps) + 1 {
		start, end := m.ends[at-1], m.ends[at]
		m.keys = append(m.keys, m.text[start:end:end])
	}
	return m.keys, nil
}

// SetNormalize makes the file's key map apply the normal forms given by --normalize, or
// those that the file records. The two must not contradict each other.
func (f *File) SetNormalize(flags *Options, normalize string) (err error) {
	recorded := f.Meta()[NormalizeMeta]
	if recorded != "" && normalize != "" && recorded != normalize {
		return fmt.Errorf("%s: was built with --normalize %s, not %s: leave the flag out", f.Path, recorded, normalize)
	}
	if normalize == "" {
		normalize = recorded
	}
	f.Keys, err = NewKeyMap(flags.Funnel, normalize)
	if err != nil && recorded != "" {
		return fmt.Errorf("%s: was built with --normalize %s, which this release does not know: a newer bloomery may", f.Path, recorded)
	}
	return err
}

// RecordNormalize records the normal form of the lines that are about to be added, as
// build does. It refuses a filter with keys in another form: check would look for one
// form, and answer "certainly not" for the other.
func (f *File) RecordNormalize(normalize string, tell *lines.Reporter) error {
	recorded := f.Meta()[NormalizeMeta]
	if normalize == "" || recorded != "" {
		return nil
	}
	n, ok := f.Filter.(Noted)
	if !ok || f.Foreign != nil {
		WarnNotNoted(tell, f, normalize)
		return nil
	}
	if r := f.Report(); r.Fill > 0 {
		return fmt.Errorf("%s: holds keys that were added without --normalize %s: leave the flag out, or build another filter with it", f.Path, normalize)
	}
	meta := n.Meta()
	if meta == nil {
		meta = make(map[string]string)
	}
	meta[NormalizeMeta] = normalize
	return n.SetMeta(meta)
}

// WarnNotNoted warns about a file that cannot record the normal form of its lines.
func WarnNotNoted(tell *lines.Reporter, f *File, normalize string) {
	tell.Warn("the file of a %s in the format %s cannot record --normalize %s: give it to every check and add, too", f.Kind(), f.Format(), normalize)
}

func appendLower(dst, line []byte) []byte {
	for _, c := range line {
		dst = append(dst, lower(c))
	}
	return dst
}

func appendUpper(dst, line []byte) []byte {
	for _, c := range line {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

const blanks = " \t\r\n\v\f"

func isBlank(c byte) bool { return strings.IndexByte(blanks, c) >= 0 }

func appendTrimmed(dst, line []byte) []byte {
	for len(line) > 0 && isBlank(line[0]) {
		line = line[1:]
	}
	for len(line) > 0 && isBlank(line[len(line)-1]) {
		line = line[:len(line)-1]
	}
	return append(dst, line...)
}

func appendHex(dst, line []byte) []byte {
	digits := line
	if len(digits) >= 2 && digits[0] == '0' && lower(digits[1]) == 'x' {
		digits = digits[2:]
	}
	start := len(dst)
	for _, c := range digits {
		switch {
		case isHexDigit(c):
			dst = append(dst, lower(c))
		case c == ':' || c == '-' || isBlank(c):
		default:
			return append(dst[:start], line...)
		}
	}
	if len(dst) == start { // there was no digit
		return append(dst, line...)
	}
	return dst
}

func isHexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'f'
}
