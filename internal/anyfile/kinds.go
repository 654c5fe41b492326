package anyfile

import (
	"bufio"
	"io"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/filterfile"
)

// Load is [bloom.LoadAny] for all kinds.
func Load(path string) (bloom.Any, error) { return byKind(path, bloom.LoadAny) }

// Open is [bloom.OpenAny] for all kinds.
func Open(path string) (bloom.Any, error) { return byKind(path, bloom.OpenAny) }

func byKind(path string, others func(string) (bloom.Any, error)) (bloom.Any, error) {
	if kind, err := bloom.KindOf(path); err != nil || kind != bloom.KindClassic {
		return others(path)
	}
	return OrNone(classic.Load(path))
}

// Read is [bloom.ReadAny] for all kinds. It may read past the end of the filter.
func Read(r io.Reader, limitBytes int64) (bloom.Any, error) {
	ahead := bufio.NewReaderSize(r, filterfile.PageBytes)
	head, _ := ahead.Peek(filterfile.PageBytes)
	if kind, err := filterfile.KindOfHead(head); err != nil || kind != filterfile.KindClassic {
		return bloom.ReadAny(ahead, limitBytes)
	}
	return OrNone(classic.Read(ahead, limitBytes))
}
