// The split-block kernels in AVX2. split_generic.go is the same in plain Go.

//go:build !purego && !race

#include "textflag.h"
#include "go_asm.h"

DATA salts<>+0(SB)/4, $0x47b6137b
DATA salts<>+4(SB)/4, $0x44974d91
DATA salts<>+8(SB)/4, $0x8824ad5b
DATA salts<>+12(SB)/4, $0xa2b7289d
DATA salts<>+16(SB)/4, $0x705495c7
DATA salts<>+20(SB)/4, $0x2df1424b
DATA salts<>+24(SB)/4, $0x9efc4947
DATA salts<>+28(SB)/4, $0x5c6bfb31
GLOBL salts<>(SB), RODATA|NOPTR, $32

// Registers, the same in every function.
#define block  BX  // address of the key's block
#define base   DI
#define blocks R8
#define left   R11 // keys still to probe
#define hashes R12
#define out    R14
#define ones   Y0  // 1 in each 32-bit lane
#define salt   Y1
#define mask   Y2
#define bits   Y3  // of the block

#define FILTER \
	MOVQ f+0(FP), AX             \
	MOVQ Split_Words(AX), base   \
	MOVQ Split_Blocks(AX), blocks \
	VPCMPEQD ones, ones, ones    \
	VPSRLD   $31, ones, ones     \
	VMOVDQU  salts<>(SB), salt

// BLOCK: the hash in r -> the address of its block, in r.
#define BLOCK(r) \
	SHRQ  $32, r     \
	IMULQ blocks, r  \
	SHRQ  $32, r     \
	SHLQ  $5, r      \
	ADDQ  base, r

// MASK: the low half of X2's first lane -> the key's eight bits.
#define MASK \
	VPBROADCASTD X2, mask  \
	VPMULLD salt, mask, mask \
	VPSRLD  $27, mask, mask  \
	VPSLLVD mask, ones, mask

// PROBE: sets the carry flag if the block has all bits of the mask.
#define PROBE \
	VMOVDQU (block), bits \
	VPTEST  mask, bits

#define SET \
	PROBE                    \
	VPOR    mask, bits, bits \
	VMOVDQU bits, (block)

#define BATCH(answers) \
	FILTER                          \
	MOVQ hashes_base+8(FP), hashes  \
	MOVQ hashes_len+16(FP), left    \
	MOVQ answers+32(FP), out

// How many keys ahead blocks are prefetched.
#define AHEAD 24

// NEXT: the next hash -> block and mask. First prefetches the block of the hash AHEAD
// places later, or of the same hash if fewer are left.
#define NEXT(prefetch) \
	XORL AX, AX             \
	CMPQ left, $AHEAD       \
	MOVL $(AHEAD*8), CX     \
	CMOVQGT CX, AX          \
	MOVQ (hashes)(AX*1), AX \
	BLOCK(AX)               \
	prefetch                \
	VMOVD (hashes), X2      \
	MOVQ (hashes), block    \
	ADDQ $8, hashes         \
	BLOCK(block)            \
	MASK

#define TO_READ PREFETCHT0 (AX)
#define TO_WRITE BYTE $0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX)

// HERE: the next hash -> block and mask, without prefetching.
#define HERE \
	VMOVD (hashes), X2   \
	MOVQ (hashes), block \
	ADDQ $8, hashes      \
	BLOCK(block)         \
	MASK

// func splitContains(f *Split, h uint64) bool
TEXT ·splitContains(SB), NOSPLIT, $0-17
	CMPB ·useAVX2(SB), $0
	JEQ  twin
	FILTER
	VMOVD h+8(FP), X2
	MOVQ  h+8(FP), block
	BLOCK(block)
	MASK
	PROBE
	SETCS ret+16(FP)
	VZEROUPPER
	RET
twin:
	JMP ·splitContainsTwin(SB)

// func splitAdd(f *Split, h uint64) bool
TEXT ·splitAdd(SB), NOSPLIT, $0-17
	CMPB ·useAVX2(SB), $0
	JEQ  twin
	FILTER
	VMOVD h+8(FP), X2
	MOVQ  h+8(FP), block
	BLOCK(block)
	MASK
	SET
	SETCC ret+16(FP)
	VZEROUPPER
	RET
twin:
	JMP ·splitAddTwin(SB)

// The loops for filters in the second-level cache, which need no prefetching.

// func splitContainsNearAVX2(f *Split, hashes []uint64, found *bool)
// hashes is not empty.
TEXT ·splitContainsNearAVX2(SB), NOSPLIT, $0-40
	BATCH(found)
probe:
	HERE
	PROBE
	SETCS (out)
	INCQ  out
	DECQ  left
	JNE   probe
	VZEROUPPER
	RET

// func splitAddNearAVX2(f *Split, hashes []uint64, isNew *bool)
// hashes is not empty.
TEXT ·splitAddNearAVX2(SB), NOSPLIT, $0-40
	BATCH(isNew)
probe:
	HERE
	SET
	SETCC (out)
	INCQ  out
	DECQ  left
	JNE   probe
	VZEROUPPER
	RET

// func splitContainsBatchAVX2(f *Split, hashes []uint64, found *bool)
// hashes is not empty.
TEXT ·splitContainsBatchAVX2(SB), NOSPLIT, $0-40
	BATCH(found)
probe:
	NEXT(TO_READ)
	PROBE
	SETCS (out)
	INCQ  out
	DECQ  left
	JNE   probe
	VZEROUPPER
	RET

// func splitAddBatchAVX2(f *Split, hashes []uint64, isNew *bool)
// hashes is not empty.
TEXT ·splitAddBatchAVX2(SB), NOSPLIT, $0-40
	BATCH(isNew)
probe:
	NEXT(TO_WRITE)
	SET
	SETCC (out)
	INCQ  out
	DECQ  left
	JNE   probe
	VZEROUPPER
	RET
