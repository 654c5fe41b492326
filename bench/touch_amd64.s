// The least that a lookup and an add can cost: a filter's memory traffic without the
// filter, with lines prefetched 24 keys ahead (touchAhead). The twin in Go is
// touch_noasm.go.

#include "textflag.h"

#define MEMORY DI
#define COUNT R8    // of lines or blocks
#define HASHES SI
#define LEFT CX
#define HASH DX     // where MULXQ reads it
#define LOW AX
#define AT BX       // multiply-high of HASH and COUNT, then a line's offset or address
#define SUM R9

#define AHEAD 192   // 24 hashes of 8 bytes

// func touchOne(memory *byte, lines uint64, hashes *uint64, n int) uint64
TEXT ·touchOne(SB), NOSPLIT, $0-40
	MOVQ memory+0(FP), MEMORY
	MOVQ lines+8(FP), COUNT
	MOVQ hashes+16(FP), HASHES
	MOVQ n+24(FP), LEFT
	XORL SUM, SUM

	PCALIGN $32
one:
	// Prefetch the line of the hash 24 further on.
	MOVQ       AHEAD(HASHES), HASH
	MULXQ      COUNT, LOW, AT
	SHLQ       $6, AT
	PREFETCHT0 (MEMORY)(AT*1)

	// Read this hash's line.
	MOVQ  (HASHES), HASH
	MULXQ COUNT, LOW, AT
	SHLQ  $6, AT
	XORQ  (MEMORY)(AT*1), SUM

	ADDQ $8, HASHES
	DECQ LEFT
	JNE  one
	MOVQ SUM, ret+32(FP)
	RET

// AT = MEMORY + 64*(8*block + HASH&7): the first of the key's two lines. XOR with
// 3*64 leads to the second, in the same block.
#define FIRST_LINE \
	MULXQ COUNT, LOW, AT \
	ANDL  $7, HASH       \
	SHLQ  $3, AT         \
	ORQ   HASH, AT       \
	SHLQ  $6, AT         \
	ADDQ  MEMORY, AT

// PREFETCHW (AT), which the Go assembler lacks: 0F 0D /1 with BX.
#define PREFETCHW_AT BYTE $0x0F; BYTE $0x0D; BYTE $0x0B

// func touchTwo(memory *byte, blocks uint64, hashes *uint64, n int)
TEXT ·touchTwo(SB), NOSPLIT, $0-32
	MOVQ memory+0(FP), MEMORY
	MOVQ blocks+8(FP), COUNT
	MOVQ hashes+16(FP), HASHES
	MOVQ n+24(FP), LEFT
	MOVL $1, SUM

	PCALIGN $32
two:
	// Prefetch both lines of the hash 24 further on, for writing.
	MOVQ AHEAD(HASHES), HASH
	FIRST_LINE
	PREFETCHW_AT
	XORQ $192, AT
	PREFETCHW_AT

	// Set a bit in each of this hash's lines.
	MOVQ (HASHES), HASH
	FIRST_LINE
	ORQ  SUM, (AT)
	XORQ $192, AT
	ORQ  SUM, (AT)

	ADDQ $8, HASHES
	DECQ LEFT
	JNE  two
	RET

// Of a block of 2048 bytes, 32 lines, a key of a Counting has some of the four lines of a
// group, and of those of another. From HASH: AT is the address of one line, block*2048 +
// (HASH&31)*64, and THIRD that of the third of three lines of the group, AT^128, or for
// half of the keys AT itself. The second is AT^64; XOR with 3*256 leads to the other group.
#define THIRD DX
#define GROUP \
	MULXQ COUNT, LOW, AT \
	MOVL  HASH, LOW      \
	ANDL  $31, LOW       \
	SHLQ  $5, AT         \
	ORQ   LOW, AT        \
	SHLQ  $6, AT         \
	ADDQ  MEMORY, AT     \
	SHLL  $2, HASH       \
	ANDL  $128, HASH     \
	XORQ  AT, THIRD

#define OTHER_GROUP \
	XORQ $(768^64), AT \
	XORQ $768, THIRD

// PREFETCHW (THIRD): 0F 0D /1 with DX.
#define PREFETCHW_THIRD BYTE $0x0F; BYTE $0x0D; BYTE $0x0A

#define PREFETCH_GROUP \
	PREFETCHT0 (AT)    \
	PREFETCHT0 (THIRD) \
	XORQ       $64, AT \
	PREFETCHT0 (AT)

#define READ_GROUP \
	XORQ (AT), SUM    \
	XORQ (THIRD), SUM \
	XORQ $64, AT      \
	XORQ (AT), SUM

// func touchGroup(memory *byte, blocks uint64, hashes *uint64, n int) uint64
TEXT ·touchGroup(SB), NOSPLIT, $0-40
	MOVQ memory+0(FP), MEMORY
	MOVQ blocks+8(FP), COUNT
	MOVQ hashes+16(FP), HASHES
	MOVQ n+24(FP), LEFT
	XORL SUM, SUM

	PCALIGN $32
group:
	MOVQ AHEAD(HASHES), HASH
	GROUP
	PREFETCH_GROUP

	MOVQ (HASHES), HASH
	GROUP
	READ_GROUP

	ADDQ $8, HASHES
	DECQ LEFT
	JNE  group
	MOVQ SUM, ret+32(FP)
	RET

// func touchGroups(memory *byte, blocks uint64, hashes *uint64, n int) uint64
TEXT ·touchGroups(SB), NOSPLIT, $0-40
	MOVQ memory+0(FP), MEMORY
	MOVQ blocks+8(FP), COUNT
	MOVQ hashes+16(FP), HASHES
	MOVQ n+24(FP), LEFT
	XORL SUM, SUM

	PCALIGN $32
groups:
	MOVQ AHEAD(HASHES), HASH
	GROUP
	PREFETCH_GROUP
	OTHER_GROUP
	PREFETCH_GROUP

	MOVQ (HASHES), HASH
	GROUP
	READ_GROUP
	OTHER_GROUP
	READ_GROUP

	ADDQ $8, HASHES
	DECQ LEFT
	JNE  groups
	MOVQ SUM, ret+32(FP)
	RET

#define PREFETCHW_GROUP \
	PREFETCHW_AT    \
	PREFETCHW_THIRD \
	XORQ $64, AT    \
	PREFETCHW_AT

#define WRITE_GROUP \
	ORQ  SUM, (AT)    \
	ORQ  SUM, (THIRD) \
	XORQ $64, AT      \
	ORQ  SUM, (AT)

// func touchGroupsToWrite(memory *byte, blocks uint64, hashes *uint64, n int)
TEXT ·touchGroupsToWrite(SB), NOSPLIT, $0-32
	MOVQ memory+0(FP), MEMORY
	MOVQ blocks+8(FP), COUNT
	MOVQ hashes+16(FP), HASHES
	MOVQ n+24(FP), LEFT
	MOVL $1, SUM

	PCALIGN $32
write:
	MOVQ AHEAD(HASHES), HASH
	GROUP
	PREFETCHW_GROUP
	OTHER_GROUP
	PREFETCHW_GROUP

	MOVQ (HASHES), HASH
	GROUP
	WRITE_GROUP
	OTHER_GROUP
	WRITE_GROUP

	ADDQ $8, HASHES
	DECQ LEFT
	JNE  write
	RET
