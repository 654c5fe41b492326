//go:build !amd64 || purego || race

package kernel

// Without assembly useAVX2 is a constant, so that the compiler drops the calls
// below; they are never reached.
const useAVX2 = false

func containsAVX2(f *Paired, h uint64) bool                     { panic("kernel: no assembly") }
func addAVX2(f *Paired, h uint64) bool                          { panic("kernel: no assembly") }
func addBatchAVX2(f *Paired, hashes []uint64, isNew *bool)      { panic("kernel: no assembly") }
func containsBothAVX2(f *Paired, hashes []uint64, found *bool)  { panic("kernel: no assembly") }
func containsFirstAVX2(f *Paired, hashes []uint64, found *bool) { panic("kernel: no assembly") }
func addSyncAVX2(f *Paired, stripes []Stripe, h uint64) uint8   { panic("kernel: no assembly") }
func addBatchSyncAVX2(f *Paired, stripes []Stripe, hashes []uint64, isNew *bool) int {
	panic("kernel: no assembly")
}
func splitContainsAVX2(f *Split, h uint64) bool                     { panic("kernel: no assembly") }
func splitAddAVX2(f *Split, h uint64) bool                          { panic("kernel: no assembly") }
func splitContainsBatchAVX2(f *Split, hashes []uint64, found *bool) { panic("kernel: no assembly") }
func splitAddBatchAVX2(f *Split, hashes []uint64, isNew *bool)      { panic("kernel: no assembly") }
