// SipHash-2-4 of eight keys at a time, in AVX2. siphash_generic.go, the same in plain Go,
// explains the steps. Nothing outside a key is ever read: the last bytes come from the
// word that ends with the key.

//go:build !purego && !race

#include "textflag.h"

DATA start<>+0(SB)/8, $0x736f6d6570736575
DATA start<>+8(SB)/8, $0x646f72616e646f6d
DATA start<>+16(SB)/8, $0x6c7967656e657261
DATA start<>+24(SB)/8, $0x7465646279746573
GLOBL start<>(SB), RODATA|NOPTR, $32

DATA rotate16<>+0(SB)/8, $0x0504030201000706
DATA rotate16<>+8(SB)/8, $0x0d0c0b0a09080f0e
DATA rotate16<>+16(SB)/8, $0x0504030201000706
DATA rotate16<>+24(SB)/8, $0x0d0c0b0a09080f0e
GLOBL rotate16<>(SB), RODATA|NOPTR, $32

DATA numbers<>+0(SB)/8, $56
DATA numbers<>+8(SB)/8, $64
DATA numbers<>+16(SB)/8, $255
GLOBL numbers<>(SB), RODATA|NOPTR, $24

// Registers. Eight keys are hashed at a time, four in each of two sets of states, so that
// the processor has something to do while a round waits for its last result.
#define a0     Y0
#define a1     Y1
#define a2     Y2
#define a3     Y3
#define b0     Y4
#define b1     Y5
#define b2     Y6
#define b3     Y7
#define wordA  Y8  // a word of each key
#define wordB  Y9
#define turn   Y12 // shuffles for a rotation by 16
#define into   DI  // the hashes
#define turns  SI  // the order of the keys
#define at     CX
#define end    DX  // of the whole words

// ROTATE: a and b to the left by n bits; r is 64-n. Uses Y10 and Y11.
#define ROTATE(n, r, a, b) \
	VPSLLQ $n, a, Y10 \
	VPSLLQ $n, b, Y11 \
	VPSRLQ $r, a, a   \
	VPSRLQ $r, b, b   \
	VPOR   Y10, a, a  \
	VPOR   Y11, b, b

#define ROUND \
	VPADDQ  a1, a0, a0     \
	VPADDQ  b1, b0, b0     \
	VPADDQ  a3, a2, a2     \
	VPADDQ  b3, b2, b2     \
	ROTATE(13, 51, a1, b1) \
	VPSHUFB turn, a3, a3   \
	VPSHUFB turn, b3, b3   \
	VPXOR   a0, a1, a1     \
	VPXOR   b0, b1, b1     \
	VPXOR   a2, a3, a3     \
	VPXOR   b2, b3, b3     \
	VPSHUFD $0xB1, a0, a0  \
	VPSHUFD $0xB1, b0, b0  \
	VPADDQ  a3, a0, a0     \
	VPADDQ  b3, b0, b0     \
	VPADDQ  a1, a2, a2     \
	VPADDQ  b1, b2, b2     \
	ROTATE(21, 43, a3, b3) \
	ROTATE(17, 47, a1, b1) \
	VPXOR   a0, a3, a3     \
	VPXOR   b0, b3, b3     \
	VPXOR   a2, a1, a1     \
	VPXOR   b2, b1, b1     \
	VPSHUFD $0xB1, a2, a2  \
	VPSHUFD $0xB1, b2, b2

#define WORDS \
	VPXOR wordA, a3, a3 \
	VPXOR wordB, b3, b3 \
	ROUND               \
	ROUND               \
	VPXOR wordA, a0, a0 \
	VPXOR wordB, b0, b0

// KEY: a key of the group, whose place in the order is i2/2. Its last eight bytes go to
// BX, its length to AX.
#define KEY(i2, key) \
	MOVWLZX i2(turns), AX       \
	IMULQ   step+16(FP), AX     \
	ADDQ    first+8(FP), AX     \
	MOVQ    0(AX), key          \
	MOVQ    8(AX), AX           \
	MOVQ    -8(key)(AX*1), BX

// KEYS: four keys. Their lengths go to sizes, their last eight bytes to word. sizesX and
// wordX are their lower halves. Uses Y10 and Y11.
#define KEYS(i0, i2, i4, i6, k0, k1, k2, k3, sizes, sizesX, word, wordX) \
	KEY(i0, k0)                    \
	VMOVQ   AX, sizesX             \
	VMOVQ   BX, wordX              \
	KEY(i2, k1)                    \
	VPINSRQ $1, AX, sizesX, sizesX \
	VPINSRQ $1, BX, wordX, wordX   \
	KEY(i4, k2)                    \
	VMOVQ   AX, X10                \
	VMOVQ   BX, X11                \
	KEY(i6, k3)                    \
	VPINSRQ $1, AX, X10, X10       \
	VPINSRQ $1, BX, X11, X11       \
	VINSERTI128 $1, X10, sizes, sizes \
	VINSERTI128 $1, X11, word, word

// LAST: the bytes that remain after the whole words, and size << 56: word is shifted by
// 64 - 8*(size & 7), which leaves 0 if no byte remains. Uses Y10 and Y11.
#define LAST(sizes, word) \
	VPSLLQ $3, sizes, Y10                \
	VPBROADCASTQ numbers<>+0(SB), Y11    \
	VPAND  Y11, Y10, Y10                 \
	VPBROADCASTQ numbers<>+8(SB), Y11    \
	VPSUBQ Y10, Y11, Y10                 \
	VPSRLVQ Y10, word, word              \
	VPSLLQ $56, sizes, sizes             \
	VPOR   sizes, word, word

// START: word n of start exclusive or k, in every lane of both states.
#define START(n, k, x, a, b) \
	MOVQ start<>+n(SB), AX \
	XORQ k, AX             \
	VMOVQ AX, x            \
	VPBROADCASTQ x, a      \
	VMOVDQA a, b

// STORE: the low half of the hashes of two keys, in x.
#define STORE(i0, i2, x) \
	MOVWLZX i0(turns), AX         \
	MOVWLZX i2(turns), BX         \
	VMOVQ   x, (into)(AX*8)       \
	VPEXTRQ $1, x, (into)(BX*8)

// func sipHashAVX2(hashes *uint64, first unsafe.Pointer, step uintptr, order *uint16, groups int, k0, k1 uint64)
// groups is not 0.
TEXT ·sipHashAVX2(SB), NOSPLIT, $64-56
	MOVQ hashes+0(FP), into
	MOVQ order+24(FP), turns
	VMOVDQU rotate16<>(SB), turn

group:
	KEYS(0, 2, 4, 6, R8, R9, R10, R11, Y13, X13, wordA, X8)
	KEYS(8, 10, 12, 14, R12, R13, R14, R15, Y14, X14, wordB, X9)
	MOVQ AX, end
	ANDQ $~7, end
	LAST(Y13, wordA)
	LAST(Y14, wordB)
	VMOVDQU wordA, lastA-32(SP)
	VMOVDQU wordB, lastB-64(SP)

	MOVQ k0+40(FP), CX
	MOVQ k1+48(FP), BX
	START(0, CX, X0, a0, b0)
	START(8, BX, X1, a1, b1)
	START(16, CX, X2, a2, b2)
	START(24, BX, X3, a3, b3)
	XORL at, at
words:
	VMOVQ (R8)(at*1), X8
	VMOVQ (R10)(at*1), X10
	VMOVQ (R12)(at*1), X9
	VMOVQ (R14)(at*1), X11
	VPINSRQ $1, (R9)(at*1), X8, X8
	VPINSRQ $1, (R11)(at*1), X10, X10
	VPINSRQ $1, (R13)(at*1), X9, X9
	VPINSRQ $1, (R15)(at*1), X11, X11
	VINSERTI128 $1, X10, wordA, wordA
	VINSERTI128 $1, X11, wordB, wordB
	WORDS
	ADDQ $8, at
	CMPQ at, end
	JB   words

	VMOVDQU lastA-32(SP), wordA
	VMOVDQU lastB-64(SP), wordB
	WORDS
	VPBROADCASTQ numbers<>+16(SB), Y10
	VPXOR Y10, a2, a2
	VPXOR Y10, b2, b2
	ROUND
	ROUND
	ROUND
	ROUND
	VPXOR a1, a0, a0
	VPXOR b1, b0, b0
	VPXOR a3, a2, a2
	VPXOR b3, b2, b2
	VPXOR a2, a0, a0
	VPXOR b2, b0, b0
	VEXTRACTI128 $1, a0, X1
	VEXTRACTI128 $1, b0, X5
	STORE(0, 2, X0)
	STORE(4, 6, X1)
	STORE(8, 10, X4)
	STORE(12, 14, X5)
	ADDQ $16, turns
	DECQ groups+32(FP)
	JNE  group
	VZEROUPPER
	RET

// func prefetchKeys(first unsafe.Pointer, step uintptr, n int)
// Fetches the first and the last line of each key into the second-level cache.
TEXT ·prefetchKeys(SB), NOSPLIT, $0-24
	MOVQ first+0(FP), SI
	MOVQ step+8(FP), CX
	MOVQ n+16(FP), DX
	TESTQ DX, DX
	JEQ  fetched
fetch:
	MOVQ 0(SI), R8
	MOVQ 8(SI), AX
	ADDQ CX, SI
	PREFETCHT1 (R8)
	PREFETCHT1 -1(R8)(AX*1)
	DECQ DX
	JNE  fetch
fetched:
	RET
