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

#define CONSTANTS \
	VPCMPEQD ones, ones, ones    \
	VPSRLD   $31, ones, ones     \
	VMOVDQU  salts<>(SB), salt

#define FILTER \
	MOVQ f+0(FP), AX             \
	MOVQ Split_Words(AX), base   \
	MOVQ Split_Blocks(AX), blocks \
	CONSTANTS

// MASK: the low half of a hash in each 32-bit lane of mask -> the key's eight bits.
#define MASK \
	VPMULLD salt, mask, mask \
	VPSRLD  $27, mask, mask  \
	VPSLLVD mask, ones, mask

// PROBE: sets the carry flag if the block has all bits of the mask.
#define PROBE \
	VMOVDQU (block), bits \
	VPTEST  mask, bits

// SET keeps the flags of PROBE.
#define SET \
	PROBE                    \
	VPOR    mask, bits, bits \
	VMOVDQU bits, (block)

#define BATCH \
	FILTER                          \
	MOVQ hashes_base+8(FP), hashes  \
	MOVQ hashes_len+16(FP), left

// How many keys ahead blocks are prefetched.
#define AHEAD 24

// BLOCK: the high half of a hash in r -> the address of its block, in r.
#define BLOCK(r) \
	IMULQ blocks, r  \
	SHRQ  $32, r     \
	SHLQ  $5, r      \
	ADDQ  base, r

// HERE: the next hash -> block and mask, without prefetching.
#define HERE \
	VPBROADCASTD (hashes), mask \
	MOVL 4(hashes), block       \
	ADDQ $8, hashes             \
	BLOCK(block)                \
	MASK

// NEXT: the next hash -> block and mask. First prefetches the block of the hash AHEAD
// places later, or of the same hash if fewer are left.
#define NEXT(prefetch) \
	XORL AX, AX              \
	CMPQ left, $AHEAD        \
	MOVL $(AHEAD*8), CX      \
	CMOVQGT CX, AX           \
	MOVL 4(hashes)(AX*1), AX \
	BLOCK(AX)                \
	prefetch                 \
	HERE

#define TO_READ PREFETCHT0 (AX)
#define TO_WRITE BYTE $0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX)

// For one key the filter stays in DI, and constants are used where they are needed: the
// shortest way from the call to the answer.

// ONE: a hash in block, and its low half in the lanes of mask -> block and mask.
#define ONE \
	SHRQ     $32, block              \
	IMULQ    Split_Blocks(DI), block \
	VPCMPEQD ones, ones, ones        \
	VPMULLD  salts<>(SB), mask, mask \
	SHRQ     $32, block              \
	VPSRLD   $31, ones, ones         \
	SHLQ     $5, block               \
	VPSRLD   $27, mask, mask         \
	ADDQ     Split_Words(DI), block  \
	VPSLLVD  mask, ones, mask

// COUNT adds 1 to the filter's count if the carry flag is clear: if the key is new.
#define COUNT SBBQ $-1, Split_Added(DI)

// func splitContains(f *Split, h uint64) bool
TEXT ·splitContains(SB), NOSPLIT, $0-17
	CMPB ·useAVX2(SB), $0
	JEQ  twin
	MOVQ f+0(FP), DI
	VPBROADCASTD h+8(FP), mask
	MOVQ h+8(FP), block
	ONE
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
	MOVQ f+0(FP), DI
	VPBROADCASTD h+8(FP), mask
	MOVQ h+8(FP), block
	ONE
	SET
	SETCC ret+16(FP)
	COUNT
	VZEROUPPER
	RET
twin:
	JMP ·splitAddTwin(SB)

// XXH64 with seed 0, in the call that probes. split_xxh64.go is the same in Go.
#define PRIME1 0x9E3779B185EBCA87
#define PRIME2 0xC2B2AE3D27D4EB4F
#define PRIME3 0x165667B19E3779F9
#define PRIME4 0x85EBCA77C2B2AE63
#define PRIME5 0x27D4EB2F165667C5

#define key    SI  // the rest of the key ...
#define rest   DX  // ... and its length
#define prime1 R8
#define prime2 R9
#define prime4 R10
#define h      BX

// LANE: mixes eight bytes of the key into one of the four lanes. Uses AX.
#define LANE(at, lane) \
	MOVQ  at(key), AX  \
	IMULQ prime2, AX   \
	ADDQ  AX, lane     \
	ROLQ  $31, lane    \
	IMULQ prime1, lane

// MERGE: mixes a lane into h, and overwrites the lane.
#define MERGE(lane) \
	IMULQ prime2, lane \
	ROLQ  $31, lane    \
	IMULQ prime1, lane \
	XORQ  lane, h      \
	IMULQ prime1, h    \
	ADDQ  prime4, h

// HASH: the key -> h, which is block, and its low half in the lanes of mask. The jumps
// have names because every function has its own.
#define HASH(wide, short, eights, four, tail, single, done) \
	MOVQ $PRIME1, prime1      \
	MOVQ $PRIME2, prime2      \
	MOVQ $PRIME4, prime4      \
	MOVQ $PRIME5, h           \
	MOVQ rest, CX             \
	SUBQ $32, rest            \
	JLT  short                \
	MOVQ prime1, R11          \
	ADDQ prime2, R11          \
	MOVQ prime2, R12          \
	XORL R13, R13             \
	XORL R14, R14             \
	SUBQ prime1, R14          \
wide:                         \
	LANE(0, R11)              \
	LANE(8, R12)              \
	LANE(16, R13)             \
	LANE(24, R14)             \
	ADDQ $32, key             \
	SUBQ $32, rest            \
	JGE  wide                 \
	RORXQ $63, R11, h         \
	RORXQ $57, R12, AX        \
	ADDQ AX, h                \
	RORXQ $52, R13, AX        \
	ADDQ AX, h                \
	RORXQ $46, R14, AX        \
	ADDQ AX, h                \
	MERGE(R11)                \
	MERGE(R12)                \
	MERGE(R13)                \
	MERGE(R14)                \
short:                        \
	ADDQ CX, h                \
	ADDQ $24, rest            \ // the rest less 8
	JLT  four                 \
eights:                       \
	MOVQ  (key), AX           \
	ADDQ  $8, key             \
	IMULQ prime2, AX          \
	ROLQ  $31, AX             \
	IMULQ prime1, AX          \
	XORQ  AX, h               \
	ROLQ  $27, h              \
	IMULQ prime1, h           \
	ADDQ  prime4, h           \
	SUBQ  $8, rest            \
	JGE   eights              \
four:                         \
	MOVQ  $PRIME3, R11        \
	ADDQ  $4, rest            \ // the rest less 4
	JLT   tail                \
	MOVL  (key), AX           \
	ADDQ  $4, key             \
	IMULQ prime1, AX          \
	XORQ  AX, h               \
	ROLQ  $23, h              \
	IMULQ prime2, h           \
	ADDQ  R11, h              \
	SUBQ  $4, rest            \
tail:                         \
	ADDQ  $4, rest            \
	JEQ   done                \
	MOVQ  $PRIME5, R12        \
single:                       \
	MOVBLZX (key), AX         \
	INCQ  key                 \
	IMULQ R12, AX             \
	XORQ  AX, h               \
	ROLQ  $11, h              \
	IMULQ prime1, h           \
	DECQ  rest                \
	JNE   single              \
done:                         \
	MOVQ  h, AX               \
	SHRQ  $33, AX             \
	XORQ  AX, h               \
	IMULQ prime2, h           \
	MOVQ  h, AX               \
	SHRQ  $29, AX             \
	XORQ  AX, h               \
	IMULQ R11, h              \
	MOVQ  h, AX               \
	SHRQ  $32, AX             \
	XORQ  AX, h               \
	VMOVQ h, X2               \
	VPBROADCASTD X2, mask

// func splitContainsKey(f *Split, key []byte) bool
TEXT ·splitContainsKey(SB), NOSPLIT, $0-33
	CMPB ·useAVX2(SB), $0
	JEQ  twin
	MOVQ f+0(FP), DI
	CMPB Split_Parquets(DI), $0
	JEQ  twin
	MOVQ key_base+8(FP), key
	MOVQ key_len+16(FP), rest
	HASH(wide, short, eights, four, tail, single, done)
	ONE
	PROBE
	SETCS ret+32(FP)
	VZEROUPPER
	RET
twin:
	JMP ·splitContainsKeyTwin(SB)

// func splitAddKey(f *Split, key []byte) bool
TEXT ·splitAddKey(SB), NOSPLIT, $0-33
	CMPB ·useAVX2(SB), $0
	JEQ  twin
	MOVQ f+0(FP), DI
	CMPB Split_Parquets(DI), $0
	JEQ  twin
	MOVQ key_base+8(FP), key
	MOVQ key_len+16(FP), rest
	HASH(wide, short, eights, four, tail, single, done)
	ONE
	SET
	SETCC ret+32(FP)
	COUNT
	VZEROUPPER
	RET
twin:
	JMP ·splitAddKeyTwin(SB)

// The loops for filters in the second-level cache, which need no prefetching.

// func splitContainsNearAVX2(f *Split, hashes []uint64, found *bool)
// hashes is not empty.
TEXT ·splitContainsNearAVX2(SB), NOSPLIT, $0-40
	BATCH
	MOVQ found+32(FP), out
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
	BATCH
	MOVQ isNew+32(FP), out
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
	BATCH
	MOVQ found+32(FP), out
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
	BATCH
	MOVQ isNew+32(FP), out
probe:
	NEXT(TO_WRITE)
	SET
	SETCC (out)
	INCQ  out
	DECQ  left
	JNE   probe
	VZEROUPPER
	RET

// The same without answers: they only count the new keys, in DX.

// func splitAddAllNearAVX2(f *Split, hashes []uint64) int
// hashes is not empty.
TEXT ·splitAddAllNearAVX2(SB), NOSPLIT, $0-40
	BATCH
	XORL DX, DX
	TESTQ $1, left
	JEQ  two
	HERE
	SET
	SBBQ $-1, DX
	DECQ left
	JEQ  done
two:
	HERE
	SET
	SBBQ $-1, DX
	HERE
	SET
	SBBQ $-1, DX
	SUBQ $2, left
	JNE  two
done:
	MOVQ DX, ret+32(FP)
	VZEROUPPER
	RET

// func splitAddAllAVX2(f *Split, hashes []uint64) int
// hashes is not empty.
TEXT ·splitAddAllAVX2(SB), NOSPLIT, $0-40
	BATCH
	XORL DX, DX
probe:
	NEXT(TO_WRITE)
	SET
	SBBQ $-1, DX
	DECQ left
	JNE  probe
	MOVQ DX, ret+32(FP)
	VZEROUPPER
	RET
