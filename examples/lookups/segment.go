package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/bloomery/bloom"
)

// rowBytes is the length of a row: a key and its value, filled up with spaces.
const rowBytes = 64

// counts says what lookups cost.
type counts struct{ searched, inVain, reads int }

// A segment is a sorted file and the filter of its keys, which is a file next to it. A
// segment never changes, so neither does its filter, and n is known exactly.
type segment struct {
	file   *os.File
	rows   int64
	filter *bloom.Filter
}

// create writes a segment of the keys.
func create(path string, keys []string) (*segment, error) {
	slices.Sort(keys)
	var rows []byte
	for i, key := range keys {
		rows = fmt.Appendf(rows, "%-63s\n", fmt.Sprintf("%s value %d", key, i))
	}
	if err := os.WriteFile(path, rows, 0o644); err != nil {
		return nil, err
	}
	filter, err := bloom.New(uint64(len(keys)), 0.01)
	if err != nil {
		return nil, err
	}
	filter.AddStrings(keys, nil)
	if err := filter.Save(path + ".bloom"); err != nil {
		return nil, err
	}
	return open(path)
}

// open opens a segment, as a store does when it starts. The filter is mapped, so it is
// ready at once, and the keys are not read.
func open(path string) (*segment, error) {
	filter, err := bloom.Open(path + ".bloom")
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return &segment{file, info.Size() / rowBytes, filter}, nil
}

// search finds a key by bisection. Each step reads a row from the disk; a real store
// reads fewer and larger pieces.
func (s *segment) search(key string, c *counts) (bool, error) {
	c.searched++
	row := make([]byte, rowBytes)
	for low, high := int64(0), s.rows; low < high; {
		middle := (low + high) / 2
		c.reads++
		if _, err := s.file.ReadAt(row, middle*rowBytes); err != nil {
			return false, err
		}
		switch at := string(row[:len(key)]); {
		case at == key:
			return true, nil
		case at < key:
			low = middle + 1
		default:
			high = middle
		}
	}
	return false, nil
}

func (s *segment) close() {
	s.file.Close()
	s.filter.Close()
}
