// The paired-line batch loops for arm64, with PRFM and NEON. The comments say which
// register holds what; paired_generic.go, the same in plain Go, explains the steps.

//go:build !purego && !race

#include "textflag.h"
#include "go_asm.h"

// Registers, the same in every function. R18, R27 and R28 belong to the system and Go.
#define hashes R1
#define left   R2  // keys still to probe
#define out    R3  // where the next answer goes
#define base   R4  // the filter's first word
#define blocks R5
#define rows   R6
#define mixA   R7
#define mixB   R8
#define ring   R9
#define slot   R10 // offset in the ring
#define at     R11 // ring + slot
#define hash   R12
#define p      R13 // low word of h * mixA: picks lines and lanes
#define g      R14 // picks the bits
#define lineA  R15
#define lineB  R19
#define a      R20 // counts a
#define b      R21 // counts b
#define t      R22
#define toFill R23 // slots still to fill at first

// V0..V7 are the masks of lines a and b, V8..V15 the lines, V16 both counts.
// V17 is 1 in each lane. V24..V31 pick the bytes of the counts: byte 0 of V24 is 0 and
// byte 8 is 1, those of V25 are 2 and 3, and so on.
DATA bytes<>+0(SB)/8, $0
DATA bytes<>+8(SB)/8, $1
DATA bytes<>+16(SB)/8, $2
DATA bytes<>+24(SB)/8, $3
DATA bytes<>+32(SB)/8, $4
DATA bytes<>+40(SB)/8, $5
DATA bytes<>+48(SB)/8, $6
DATA bytes<>+56(SB)/8, $7
DATA bytes<>+64(SB)/8, $8
DATA bytes<>+72(SB)/8, $9
DATA bytes<>+80(SB)/8, $10
DATA bytes<>+88(SB)/8, $11
DATA bytes<>+96(SB)/8, $12
DATA bytes<>+104(SB)/8, $13
DATA bytes<>+112(SB)/8, $14
DATA bytes<>+120(SB)/8, $15
GLOBL bytes<>(SB), RODATA|NOPTR, $128

// Two instructions that the assembler lacks, for registers V(d), V(n) and V(m).
// USHL, n << m in each of two lanes, looks only at the low byte of a lane of m, and a
// shift by 64 or more leaves no bit. ANDNOT, which Arm calls BIC, is n &^ m.
#define USHL(d, n, m)   WORD $(0x6EE04400 + (m<<16) + (n<<5) + d)
#define ANDNOT(d, n, m) WORD $(0x4E601C00 + (m<<16) + (n<<5) + d)

// The ring: the lines and shift counts of the next keys, whose lines are on their way
// from memory, in slots of 32 bytes at the bottom of the frame. The loops that fetch both
// lines have 16 slots, the one that fetches only line a has 32: 32 lines each. No arm64
// processor was at hand to measure other sizes.
#define BOTH  16
#define FIRST 32

#define BATCH(answers) \
	MOVD f+0(FP), R0                \
	MOVD Paired_Words(R0), base     \
	MOVD Paired_Blocks(R0), blocks  \
	MOVD Paired_Rows(R0), rows      \
	MOVD hashes_base+8(FP), hashes  \
	MOVD hashes_len+16(FP), left    \
	MOVD answers+32(FP), out        \
	MOVD $0xd1342543de82ef95, mixA  \
	MOVD $0x9fb21c651e98df25, mixB  \
	MOVD $bytes<>(SB), t            \
	VLD1.P 64(t), [V24.B16, V25.B16, V26.B16, V27.B16] \
	VLD1 (t), [V28.B16, V29.B16, V30.B16, V31.B16]     \
	MOVD $1, t                      \
	VDUP t, V17.D2                  \
	MOVD $0, slot                   \
	MOVD ring, at

#define NEXT_SLOT(slots) \
	ADD $32, slot               \
	AND $(32*slots-1), slot     \
	ADD slot, ring, at

// PLACE_A: hash -> lineA, p, g.
#define PLACE_A \
	UMULH blocks, hash, lineA   \ // the block
	MUL   mixA, hash, p         \
	UMULH mixA, hash, g         \
	EOR   p, g                  \
	ADD   lineA<<9, base, lineA \
	UBFX  $24, p, $3, t         \
	ADD   t<<6, lineA

// PLACE_B: p, lineA -> lineB. A block begins on a 512-byte boundary, so addresses can
// be XORed instead of line numbers.
#define PLACE_B \
	AND $0xFFFFFF, p, t         \
	LSL $3, t, lineB            \
	SUB t, lineB                \ // times 7
	LSR $24, lineB              \
	ADD $1, lineB               \
	EOR lineB<<6, lineA, lineB

// COUNTS_A: p, g -> a.
#define COUNTS_A \
	AND  $255, p, t             \
	MOVD (rows)(t<<3), t        \
	AND  $0x3f3f3f3f3f3f3f3f, g, a \
	ORR  t, a

// COUNTS_B: p, g -> b. Overwrites g.
#define COUNTS_B \
	MUL   mixB, g, b            \
	UMULH mixB, g, g            \
	EOR   g, b                  \
	UBFX  $8, p, $8, t          \
	MOVD  (rows)(t<<3), t       \
	AND   $0x3f3f3f3f3f3f3f3f, b \
	ORR   t, b

// FETCH_BOTH: takes the next hash, prefetches both its lines, and fills the slot: counts
// a, counts b, line a, line b.
#define FETCH_BOTH(how) \
	MOVD.P 8(hashes), hash      \
	PLACE_A                     \
	PRFM   (lineA), how         \
	PLACE_B                     \
	PRFM   (lineB), how         \
	COUNTS_A                    \
	COUNTS_B                    \
	STP    (a, b), 0(at)        \
	STP    (lineA, lineB), 16(at)

// PRIME: fills the ring with the first keys, or all if there are fewer than slots. fetch
// is FETCH_BOTH or FETCH_A.
#define PRIME(slots, fetch, again) \
	MOVD $slots, toFill         \
	CMP  toFill, left           \
	CSEL LT, left, toFill, toFill \
again:                          \
	fetch                       \
	NEXT_SLOT(slots)            \
	SUBS $1, toFill             \
	BNE  again                  \
	MOVD $0, slot               \
	MOVD ring, at

// PROBE_BOTH: loads the slot's masks and lines.
#define PROBE_BOTH \
	VLD1 (at), [V16.B16]               \
	LDP  16(at), (lineA, lineB)        \
	VLD1 (lineA), [V8.D2, V9.D2, V10.D2, V11.D2]   \
	VLD1 (lineB), [V12.D2, V13.D2, V14.D2, V15.D2] \
	VTBL V24.B16, [V16.B16], V0.B16    \
	VTBL V25.B16, [V16.B16], V1.B16    \
	VTBL V26.B16, [V16.B16], V2.B16    \
	VTBL V27.B16, [V16.B16], V3.B16    \
	VTBL V28.B16, [V16.B16], V4.B16    \
	VTBL V29.B16, [V16.B16], V5.B16    \
	VTBL V30.B16, [V16.B16], V6.B16    \
	VTBL V31.B16, [V16.B16], V7.B16    \
	USHL(0, 17, 0) \
	USHL(1, 17, 1) \
	USHL(2, 17, 2) \
	USHL(3, 17, 3) \
	USHL(4, 17, 4) \
	USHL(5, 17, 5) \
	USHL(6, 17, 6) \
	USHL(7, 17, 7)

// ANSWER: stores whether any bit of V8..V15 is set, or with EQ whether none is.
#define ANSWER(when) \
	VORR V8.B16, V9.B16, V8.B16        \
	VORR V10.B16, V11.B16, V10.B16     \
	VORR V12.B16, V13.B16, V12.B16     \
	VORR V14.B16, V15.B16, V14.B16     \
	VORR V8.B16, V10.B16, V8.B16       \
	VORR V12.B16, V14.B16, V12.B16     \
	VORR V8.B16, V12.B16, V8.B16       \
	VMOV V8.D[0], t                    \
	VMOV V8.D[1], R0                   \
	ORR  R0, t                         \
	CMP  $0, t                         \
	CSET when, t                       \
	MOVB.P t, 1(out)

// FETCH_A: takes the next hash, prefetches its first line, and fills the slot: counts a,
// line a, p, g.
#define FETCH_A \
	MOVD.P 8(hashes), hash      \
	PLACE_A                     \
	PRFM   (lineA), PLDL1KEEP   \
	COUNTS_A                    \
	STP    (a, lineA), 0(at)    \
	STP    (p, g), 16(at)

// LACKS: the bits of the counts in F16 that the line lacks -> t. Uses R0.
#define LACKS(line) \
	VLD1 (line), [V8.D2, V9.D2, V10.D2, V11.D2] \
	VTBL V24.B16, [V16.B16], V0.B16    \
	VTBL V25.B16, [V16.B16], V1.B16    \
	VTBL V26.B16, [V16.B16], V2.B16    \
	VTBL V27.B16, [V16.B16], V3.B16    \
	USHL(0, 17, 0)                     \
	USHL(1, 17, 1)                     \
	USHL(2, 17, 2)                     \
	USHL(3, 17, 3)                     \
	ANDNOT(8, 0, 8)                    \
	ANDNOT(9, 1, 9)                    \
	ANDNOT(10, 2, 10)                  \
	ANDNOT(11, 3, 11)                  \
	VORR V8.B16, V9.B16, V8.B16        \
	VORR V10.B16, V11.B16, V10.B16     \
	VORR V8.B16, V10.B16, V8.B16       \
	VMOV V8.D[0], t                    \
	VMOV V8.D[1], R0                   \
	ORR  R0, t

// The survivors: keys that passed line a and wait for line b. 16 slots of 32 bytes above
// the ring, each with counts b, line b and the address for the answer.
#define SURVIVORBYTES 512
#define survivors R24 // the first of them
#define oldest    R25 // the one that is used next
#define last      R26 // the end of them

// SETTLE: stores the answer for the survivor at oldest. Uses R0, t and lineB.
#define SETTLE \
	FMOVD 0(oldest), F16 \
	MOVD  8(oldest), lineB \
	LACKS(lineB) \
	CMP   $0, t \
	CSET  EQ, t \
	MOVD  16(oldest), R0 \
	MOVB  t, (R0)

// func addBatchNEON(f *Paired, hashes []uint64, isNew *bool)
// hashes is not empty.
TEXT ·addBatchNEON(SB), 0, $520-40
	MOVD $slots-512(SP), ring
	BATCH(isNew)
	PRIME(BOTH, FETCH_BOTH(PSTL1KEEP), prime)
probe:
	PROBE_BOTH
	// The new lines go to V0..V7, and what they changed to V8..V15.
	VORR V8.B16, V0.B16, V0.B16
	VORR V9.B16, V1.B16, V1.B16
	VORR V10.B16, V2.B16, V2.B16
	VORR V11.B16, V3.B16, V3.B16
	VORR V12.B16, V4.B16, V4.B16
	VORR V13.B16, V5.B16, V5.B16
	VORR V14.B16, V6.B16, V6.B16
	VORR V15.B16, V7.B16, V7.B16
	VST1 [V0.D2, V1.D2, V2.D2, V3.D2], (lineA)
	VST1 [V4.D2, V5.D2, V6.D2, V7.D2], (lineB)
	VEOR V0.B16, V8.B16, V8.B16
	VEOR V1.B16, V9.B16, V9.B16
	VEOR V2.B16, V10.B16, V10.B16
	VEOR V3.B16, V11.B16, V11.B16
	VEOR V4.B16, V12.B16, V12.B16
	VEOR V5.B16, V13.B16, V13.B16
	VEOR V6.B16, V14.B16, V14.B16
	VEOR V7.B16, V15.B16, V15.B16
	ANSWER(NE)
	CMP  $BOTH, left
	BLE  drain // no hash left to fetch
	FETCH_BOTH(PSTL1KEEP)
drain:
	NEXT_SLOT(BOTH)
	SUBS $1, left
	BNE  probe
	RET

// func containsBothNEON(f *Paired, hashes []uint64, found *bool)
// Reads both lines of every key and never branches on an answer. hashes is not empty.
TEXT ·containsBothNEON(SB), 0, $520-40
	MOVD $slots-512(SP), ring
	BATCH(found)
	PRIME(BOTH, FETCH_BOTH(PLDL1KEEP), prime)
probe:
	PROBE_BOTH
	// The bits that the lines lack go to V8..V15.
	ANDNOT(8, 0, 8)
	ANDNOT(9, 1, 9)
	ANDNOT(10, 2, 10)
	ANDNOT(11, 3, 11)
	ANDNOT(12, 4, 12)
	ANDNOT(13, 5, 13)
	ANDNOT(14, 6, 14)
	ANDNOT(15, 7, 15)
	ANSWER(EQ)
	CMP  $BOTH, left
	BLE  drain
	FETCH_BOTH(PLDL1KEEP)
drain:
	NEXT_SLOT(BOTH)
	SUBS $1, left
	BNE  probe
	RET

// func containsFirstNEON(f *Paired, hashes []uint64, found *bool)
// Reads line a of every key and line b of those that pass it: for DRAM and few hits.
// hashes is not empty.
TEXT ·containsFirstNEON(SB), 0, $1544-40
	MOVD $slots-1536(SP), ring
	BATCH(found)
	PRIME(FIRST, FETCH_A, prime)
	// Fill the survivors with dummy keys that select no bit of the filter's first line,
	// and whose answers nobody reads.
	ADD  $(32*FIRST), ring, survivors
	ADD  $SURVIVORBYTES, survivors, last
	MOVD $0x4040404040404040, b
	MOVD $nobody-1544(SP), t
	MOVD survivors, oldest
empty:
	STP  (b, base), 0(oldest)
	MOVD t, 16(oldest)
	ADD  $32, oldest
	CMP  last, oldest
	BNE  empty
	MOVD survivors, oldest
probe:
	FMOVD 0(at), F16
	MOVD  8(at), lineA
	LACKS(lineA)
	CBZ  t, passed
	MOVB ZR, (out)
probed:
	ADD  $1, out
	CMP  $FIRST, left
	BLE  drain
	FETCH_A
drain:
	NEXT_SLOT(FIRST)
	SUBS $1, left
	BNE  probe

	// Settle what is left, in any order.
	MOVD survivors, oldest
settle:
	SETTLE
	ADD  $32, oldest
	CMP  last, oldest
	BNE  settle
	RET

passed:
	// The new survivor takes the place of the oldest, whose line b had as much time to
	// arrive as 15 other survivors took.
	SETTLE
	LDP  16(at), (p, g)
	PLACE_B
	PRFM (lineB), PLDL1KEEP
	COUNTS_B
	STP  (b, lineB), 0(oldest)
	MOVD out, 16(oldest)
	ADD  $32, oldest
	CMP  last, oldest
	CSEL EQ, survivors, oldest, oldest
	B    probed

// func fetchLines(f *Paired, hashes []uint64)
// Prefetches both lines of each key, for the Go twin. hashes is not empty.
TEXT ·fetchLines(SB), NOSPLIT, $0-32
	MOVD f+0(FP), R0
	MOVD Paired_Words(R0), base
	MOVD Paired_Blocks(R0), blocks
	MOVD hashes_base+8(FP), hashes
	MOVD hashes_len+16(FP), left
	MOVD $0xd1342543de82ef95, mixA
next:
	MOVD.P 8(hashes), hash
	PLACE_A
	PRFM (lineA), PLDL1KEEP
	PLACE_B
	PRFM (lineB), PLDL1KEEP
	SUBS $1, left
	BNE  next
	RET
