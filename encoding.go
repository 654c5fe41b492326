package bloom

import (
	"io"

	"github.com/bloomery/bloom/internal/filterfile"
)

// Every kind is an [encoding.BinaryMarshaler], [encoding.BinaryAppender] and
// [encoding.BinaryUnmarshaler], for packages such as encoding/gob and for caches. The
// bytes are those of its file. To write a large filter, WriteTo needs no copy of it.

// AppendBinary appends to b the file that WriteTo would write.
func (f *Filter) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Plan().Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *Filter) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f, which may be a zero Filter, by the one that data is the
// file of; data stays the caller's. The error is that of [Read], and f is then as
// before. It panics if f is an open file, and must run alone.
func (f *Filter) UnmarshalBinary(data []byte) error {
	if f.readOnly {
		panicReadOnly()
	}
	g, err := filterfile.UnmarshalBinary(data, Read)
	if err != nil {
		return err
	}
	f.Hasher, f.bits, f.added, f.plan, f.asked, f.memory = g.Hasher, g.bits, g.added, g.plan, g.asked, g.memory
	f.note(g.noted())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *Shared) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Plan().Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *Shared) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f; see [Filter.UnmarshalBinary].
func (f *Shared) UnmarshalBinary(data []byte) error {
	filter, err := filterfile.UnmarshalBinary(data, Read)
	if err != nil {
		return err
	}
	g := filter.Share()
	f.Hasher, f.bits, f.stripes, f.plan, f.memory = g.Hasher, g.bits, g.stripes, g.plan, g.memory
	f.note(g.noted())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *SplitBlock) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Plan().Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *SplitBlock) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f; see [Filter.UnmarshalBinary].
func (f *SplitBlock) UnmarshalBinary(data []byte) error {
	g, err := filterfile.UnmarshalBinary(data, ReadSplitBlock)
	if err != nil {
		return err
	}
	f.Hasher, f.bits, f.plan, f.added, f.memory = g.Hasher, g.bits, g.plan, g.added, g.memory
	f.note(g.noted())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *Counting) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Plan().Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *Counting) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f; see [Filter.UnmarshalBinary].
func (f *Counting) UnmarshalBinary(data []byte) error {
	g, err := filterfile.UnmarshalBinary(data, ReadCounting)
	if err != nil {
		return err
	}
	f.Hasher, f.counters, f.plan, f.added, f.memory = g.Hasher, g.counters, g.plan, g.added, g.memory
	f.note(g.noted())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (f *Scalable) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, f.Plan().Bytes(), f)
}

// MarshalBinary returns the file that WriteTo would write.
func (f *Scalable) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f; see [Filter.UnmarshalBinary].
func (f *Scalable) UnmarshalBinary(data []byte) error {
	if f.readOnly || f.update != nil {
		panicReadOnly()
	}
	g, err := filterfile.UnmarshalBinary(data, ReadScalable)
	if err != nil {
		return err
	}
	f.Hasher, f.config = g.Hasher, g.config
	f.note(g.noted())
	f.layers.Store(g.layers.Load())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (w *Window) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, w.Plan().Bytes(), w)
}

// MarshalBinary returns the file that WriteTo would write.
func (w *Window) MarshalBinary() ([]byte, error) { return w.AppendBinary(nil) }

// UnmarshalBinary replaces w; see [Filter.UnmarshalBinary]. The window keeps its clock:
// that of [WindowConfig], or the system's if w was a zero Window.
func (w *Window) UnmarshalBinary(data []byte) error {
	g, err := filterfile.UnmarshalBinary(data, func(r io.Reader, limitBytes int64) (*Window, error) {
		return ReadWindow(r, limitBytes, w.config.Now)
	})
	if err != nil {
		return err
	}
	w.cleaning.Wait()
	w.Hasher, w.config, w.first, w.origin, w.step = g.Hasher, g.config, g.first, g.origin, g.step
	w.clean, w.further, w.limits, w.closed = g.clean, g.further, g.limits, false
	w.note(g.noted())
	w.next.Store(g.next.Load())
	w.layers.Store(g.layers.Load())
	return nil
}

// AppendBinary appends to b the file that WriteTo would write.
func (x *Exceptions) AppendBinary(b []byte) ([]byte, error) {
	return filterfile.AppendBinary(b, x.Plan().Bytes(), x)
}

// MarshalBinary returns the file that WriteTo would write.
func (x *Exceptions) MarshalBinary() ([]byte, error) { return x.AppendBinary(nil) }

// UnmarshalBinary replaces x and its filter; see [Filter.UnmarshalBinary].
func (x *Exceptions) UnmarshalBinary(data []byte) error {
	y, err := filterfile.UnmarshalBinary(data, ReadExceptions)
	if err == nil {
		*x = *y
	}
	return err
}
