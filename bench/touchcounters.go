// The machine's limit for a Counting, as touch.go is for a Filter. This file uses unsafe to
// pass addresses to the assembly in touch_amd64.s; the twin in plain Go is in touch_noasm.go.

package main

import (
	"unsafe"

	"github.com/bloomery/bloom"
)

// countersBytes is the size of a block of counters: four times a Filter's.
const countersBytes = 4 * blockBytes

// groupBytes are the counters for a line of bits: four lines, each with those of two of the
// line's eight lanes. A key has counters in k/2 of the lanes; at a rate of 1% these are 3,
// which lie in 4(1 - C(6,3)/C(8,3)) = 2.57 lines on average. The touch takes 2.5.
const groupBytes = 4 * lineBytes

// newTouchCounters touches five lines per key, in two groups of a block: as many as an add
// must write and a lookup of a key that is there must read.
func newTouchCounters(n uint64, p float64) *contender {
	c := touchCounters(n, p, touchGroups, 2)
	memory, blocks := c.memory, c.blocks
	c.hashBatch.add = func(hashes []uint64) {
		body := max(len(hashes)-touchAhead, 0)
		if body > 0 {
			touchGroupsToWrite(unsafe.SliceData(memory), blocks, unsafe.SliceData(hashes), body)
		}
		touchGroupsToWriteGo(memory, blocks, hashes[body:])
	}
	return &c.contender
}

// newTouchFirst touches the lines of one group, the least that a miss needs.
func newTouchFirst(n uint64, p float64) *contender {
	return &touchCounters(n, p, touchGroup, 1).contender
}

// touchedCounters is a contender and its memory.
type touchedCounters struct {
	contender
	memory []byte
	blocks uint64
}

// touchCounters reads a number of groups for each lookup.
func touchCounters(n uint64, p float64, touch func(*byte, uint64, *uint64, int) uint64, groups int) *touchedCounters {
	plan := must(bloom.Config{Keys: n, Rate: p}.PlanCounting())
	memory, close := hugeMemory(int(plan.Blocks * countersBytes))
	for at := 0; at < len(memory); at += 4096 { // pages that were never written are all the same one
		memory[at] = 1
	}
	sink := uint64(0)
	c := &touchedCounters{memory: memory, blocks: plan.Blocks}
	c.bits, c.close = float64(8*len(memory)), close
	c.hashBatch.count = func(hashes []uint64) int {
		body := max(len(hashes)-touchAhead, 0)
		if body > 0 {
			sink += touch(unsafe.SliceData(memory), plan.Blocks, unsafe.SliceData(hashes), body)
		}
		sink += touchGroupsGo(memory, plan.Blocks, hashes[body:], groups)
		return len(hashes)
	}
	return c
}

// linesOf returns where the lines of a hash begin: two or three of a group, the first of them
// twice if there are two. XOR with 3*groupBytes leads to those of the other group.
func linesOf(h, blocks uint64) [3]uint64 {
	first := reduce(h, blocks)*countersBytes + h&31*lineBytes
	return [3]uint64{first, first ^ lineBytes, first ^ h<<2&(2*lineBytes)}
}

// touchGroupsGo reads the first words of the lines in one or two groups per hash and returns
// their XOR.
func touchGroupsGo(memory []byte, blocks uint64, hashes []uint64, groups int) (sum uint64) {
	for _, h := range hashes {
		for group := range uint64(groups) {
			for _, at := range linesOf(h, blocks) {
				sum ^= *word(memory, at^group*3*groupBytes)
			}
		}
	}
	return sum
}

// touchGroupsToWriteGo sets a bit in each of the lines in both groups.
func touchGroupsToWriteGo(memory []byte, blocks uint64, hashes []uint64) {
	for _, h := range hashes {
		for _, at := range linesOf(h, blocks) {
			*word(memory, at) |= 1
			*word(memory, at^3*groupBytes) |= 1
		}
	}
}
