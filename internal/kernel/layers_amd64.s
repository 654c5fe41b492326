// The lookup in several paired-line filters in AVX2 and BMI2. The arithmetic is that of
// paired_amd64.s. Of what it derives from a hash only the block and the lanes depend on the
// filter, so the rest is done once for all of them.

//go:build !purego && !race

#include "textflag.h"
#include "go_asm.h"

DATA mixB<>+0(SB)/8, $0x9fb21c651e98df25
GLOBL mixB<>(SB), RODATA|NOPTR, $8

#define filter  AX  // one of the filters
#define offset  BX  // of line a in its block
#define line    CX
#define hash    DX  // MULX multiplies by DX
#define filters DI
#define i       SI
#define rowA    R8  // which row of the lane table line a uses
#define rowB    R9
#define bitsA   R10 // six bits of shift count per lane, without the row
#define bitsB   R11
#define n       R12 // the number of filters
#define flip    R13 // address of line a XOR that of line b
#define rows    R14
#define t       R15
#define ones    Y0  // 1 in each 64-bit lane

// LINE_A: hash, filter -> line. Uses t.
#define LINE_A \
	MULXQ Paired_Blocks(filter), t, line \ // the high word is the block
	SHLQ  $9, line                       \
	ADDQ  Paired_Words(filter), line     \
	ADDQ  offset, line

// ABSENT: clears ZF if the line lacks one of the bits that t, six bits per lane, selects
// in the lanes of the row.
#define ABSENT(row) \
	ORQ       (rows)(row*8), t \
	VMOVQ     t, X2        \
	VPMOVZXBQ X2, Y1       \
	VPSHUFD   $1, X2, X2   \
	VPMOVZXBQ X2, Y2       \
	VPSLLVQ   Y1, ones, Y1 \
	VPSLLVQ   Y2, ones, Y2 \
	VMOVDQU   0(line), Y3  \
	VPANDN    Y1, Y3, Y1   \
	VMOVDQU   32(line), Y4 \
	VPANDN    Y2, Y4, Y2   \
	VPOR      Y1, Y2, Y1   \
	VPTEST    Y1, Y1

// func pairedFirstAVX2(filters []*Paired, h uint64) int
TEXT ·pairedFirstAVX2(SB), NOSPLIT, $0-40
	MOVQ filters_base+0(FP), filters
	MOVQ filters_len+8(FP), n
	XORL i, i
	TESTQ n, n
	JEQ  done
	VPCMPEQD ones, ones, ones
	VPSRLQ   $63, ones, ones
	MOVQ h+24(FP), hash

	// s in CX, g in AX
	MOVQ  $0xd1342543de82ef95, t
	MULXQ t, CX, AX
	XORQ  CX, AX
	MOVQ  $0x3f3f3f3f3f3f3f3f, t
	MOVQ  AX, bitsA
	ANDQ  t, bitsA
	MOVQ  AX, DX
	MULXQ mixB<>(SB), bitsB, AX
	XORQ  AX, bitsB
	ANDQ  t, bitsB
	MOVQ  h+24(FP), hash
	RORXL $18, CX, offset // (s>>24 & 7) * 64 bytes
	ANDL  $0x1C0, offset
	MOVL  CX, flip
	ANDL  $0xFFFFFF, flip
	IMUL3Q $448, flip, flip // 7 lines * 64 bytes
	SHRQ  $24, flip
	ANDL  $0x1C0, flip
	ADDL  $64, flip
	MOVBLZX CL, rowA
	SHRL  $8, CX
	MOVBLZX CL, rowB

	CMPQ n, $1
	JEQ  probe
fetch:
	MOVQ (filters)(i*8), filter
	LINE_A
	PREFETCHT0 (line)
	XORQ flip, line
	PREFETCHT0 (line)
	INCQ i
	CMPQ i, n
	JLT  fetch
	XORL i, i

probe:
	MOVQ (filters)(i*8), filter
	LINE_A
	MOVQ Paired_Rows(filter), rows
	MOVQ bitsA, t
	ABSENT(rowA)
	JNE  next // most misses end here, with one line read
	XORQ flip, line
	MOVQ bitsB, t
	ABSENT(rowB)
	JEQ  found
next:
	INCQ i
	CMPQ i, n
	JLT  probe
found:
	VZEROUPPER
done:
	MOVQ i, ret+32(FP)
	RET
