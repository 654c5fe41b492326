package kernel

// This file encapsulates unsafe: it reads answers eight at a time. The safe twin is a
// loop that counts the trues.

import (
	"math/bits"
	"unsafe"
)

// countTrue counts the trues. A bool is a byte, 0 or 1.
func countTrue(answers []bool) (n int) {
	for len(answers) >= 8 {
		n += bits.OnesCount64(*(*uint64)(unsafe.Pointer(&answers[0])))
		answers = answers[8:]
	}
	for _, is := range answers {
		if is {
			n++
		}
	}
	return n
}
