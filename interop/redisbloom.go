package interop

import (
	"fmt"
	"io"

	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/redisbloom"
)

// redisBloomFormat is a file that holds a dump: RedisBloom itself has no files, only
// the pairs that BF.SCANDUMP returns. The file is their data, one after the other: the
// header, and the bytes of all links. It has no magic number, but a header that agrees
// with itself and with the file's size does not occur by chance.
var redisBloomFormat = &Format{
	Name:    "redisbloom",
	About:   "RedisBloom: the data of all replies to BF.SCANDUMP, one after the other",
	Holds:   Chains,
	Schemes: []classic.Scheme{classic.SchemeRedisBloom},
	Matches: redisbloom.Recognise,
	plans:   true,
	read:    readRedisBloom,
	write:   writeRedisBloom,
}

// redisDumpFormat is Redis's reply to DUMP of a RedisBloom filter.
var redisDumpFormat = &Format{
	Name:    "redis-dump",
	About:   "Redis: DUMP of a RedisBloom filter, for RESTORE",
	Holds:   Chains,
	Schemes: []classic.Scheme{classic.SchemeRedisBloom},
	Matches: func(head []byte, _ int64) bool { return redisbloom.RecognisePayload(head) },
	plans:   true,
	read:    readRedisDump,
	write:   writeRedisDump,
}

func readRedisBloom(r io.Reader, o Options) (*File, error) {
	return redisBloomFile(redisbloom.Config{Grant: o.Grant, Release: o.Release}.Read(r))
}

func readRedisDump(r io.Reader, o Options) (*File, error) {
	return redisBloomFile(redisbloom.Config{Grant: o.Grant, Release: o.Release}.ReadPayload(r))
}

func redisBloomFile(c *redisbloom.Filter, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return &File{Filter: c, Details: redisBloomDetails(c.Info())}, nil
}

func writeRedisBloom(w io.Writer, f *File) error {
	c, err := f.redisBloom()
	if err != nil {
		return err
	}
	_, err = c.WriteTo(w)
	return err
}

func writeRedisDump(w io.Writer, f *File) error {
	c, err := f.redisBloom()
	if err != nil {
		return err
	}
	return c.WritePayload(w)
}

// redisBloom returns the file's filter as RedisBloom's.
func (f *File) redisBloom() (*redisbloom.Filter, error) {
	if c, ok := f.Filter.(*redisbloom.Filter); ok {
		return c, nil
	}
	filter, err := f.classicUnder(classic.SchemeRedisBloom)
	if err != nil {
		return nil, err
	}
	return redisbloom.From(filter)
}

// redisBloomDetails returns the Details of a file.
func redisBloomDetails(info redisbloom.Info) [][2]string {
	expansion := "none: non-scaling"
	if info.Expansion != 0 {
		expansion = fmt.Sprint(info.Expansion)
	}
	return [][2]string{
		{"Capacity", fmt.Sprint(info.Capacity)},
		{"Size", fmt.Sprint(info.Size)},
		{"Number of filters", fmt.Sprint(info.Filters)},
		{"Number of items inserted", fmt.Sprint(info.Items)},
		{"Expansion rate", expansion},
	}
}
