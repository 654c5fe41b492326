package interop

import (
	"fmt"
	"io"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/redisbloom"
)

// cuckooFormat is a file that holds the dump of a cuckoo filter. As with redisBloomFormat,
// it is the data that CF.SCANDUMP returns: the header, and the slots of all sub-filters.
var cuckooFormat = &Format{
	Name:    "redisbloom-cuckoo",
	About:   "RedisBloom: the data of all replies to CF.SCANDUMP, one after the other",
	Holds:   Cuckoos,
	Matches: redisbloom.RecogniseCuckoo,
	plans:   true,
	read:    readCuckoo,
	write:   writeCuckoo,
}

func readCuckoo(r io.Reader, o Options) (*File, error) {
	c, err := redisbloom.Config{Grant: o.Grant, Release: o.Release}.ReadCuckoo(r)
	if err != nil {
		return nil, err
	}
	return &File{Filter: c.Cuckoo, Details: cuckooDetails(c.Info())}, nil
}

func writeCuckoo(w io.Writer, f *File) error {
	c, ok := f.Filter.(*bloom.Cuckoo)
	if !ok {
		return fmt.Errorf("%w: %v is no cuckoo filter: build one from its keys", ErrScheme, f.Filter)
	}
	made := redisbloom.Cuckoo{Cuckoo: c}
	if err := made.Compatible(); err != nil {
		return fmt.Errorf("%w: %w: build the filter again from its keys, without a seed or a secret", ErrScheme, err)
	}
	return made.WriteDump(w)
}

// cuckooDetails returns the Details of a file.
func cuckooDetails(info redisbloom.CuckooInfo) [][2]string {
	expansion := "none: it does not grow"
	if info.Expansion != 0 {
		expansion = fmt.Sprint(info.Expansion)
	}
	return [][2]string{
		{"Size", fmt.Sprint(info.Size)},
		{"Number of buckets", fmt.Sprint(info.Buckets)},
		{"Number of filters", fmt.Sprint(info.Filters)},
		{"Number of items inserted", fmt.Sprint(info.Items)},
		{"Number of items deleted", fmt.Sprint(info.Removed)},
		{"Bucket size", fmt.Sprint(info.BucketSize)},
		{"Expansion rate", expansion},
		{"Max iterations", fmt.Sprint(info.MaxMoves)},
	}
}
