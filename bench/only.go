package main

import (
	"io"

	"github.com/bloomery/bloom"
)

// writeOnly runs the comparison that -only names.
func writeOnly(out io.Writer, only string, opt options) {
	switch only {
	case "split":
		compare(out, opt, library{"SplitBlock", newSplitBlock}, []library{touchLibrary, named(parq)})
	case "sync":
		compare(out, opt, filterLibrary, []library{touchLibrary, {"Shared", newShared}})
		writeScale(out, opt, "Shared", func(n uint64, p float64) batchFilter { return must(bloom.NewShared(n, p)) })
	case "keys":
		writeKeys(out, opt)
	case "cuckoo":
		writeCuckoo(out, opt)
	case "counting":
		writeCounting(out, opt)
	case "bulk":
		writeBulk(out, opt)
	}
}
