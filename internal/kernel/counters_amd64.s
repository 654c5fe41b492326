// The loops over counters in AVX2 and BMI2. A lane's four words of digits are one
// register, so a probe loads, changes and stores 64 counters at once; counters.go, the
// same in plain Go, explains the steps.

//go:build !purego && !race

#include "textflag.h"
#include "go_asm.h"

DATA mixes<>+0(SB)/8, $0xd1342543de82ef95
DATA mixes<>+8(SB)/8, $0x9fb21c651e98df25
GLOBL mixes<>(SB), RODATA|NOPTR, $16
#define mixA mixes<>+0(SB)
#define mixB mixes<>+8(SB)

DATA bytes<>+0(SB)/8, $0x3f3f3f3f3f3f3f3f
DATA bytes<>+8(SB)/8, $0x0101010101010101
GLOBL bytes<>(SB), RODATA|NOPTR, $16
#define sixes bytes<>+0(SB) // 0x3f in each byte
#define each  bytes<>+8(SB) // 1 in each byte

// Registers. While a key's place is derived:
#define s      CX  // low word of h * mixA: picks lines and lanes
#define hash   DX  // the key's hash ...
#define g      DX  // ... and then g, which picks the bits
#define lineA  BX
#define lineB  AX
// While its counters are probed:
#define line   BX
#define on     CX  // lanes left to probe
#define sum    DX  // weights of the counters
#define at     AX  // 8*lane
#define digit  SI  // which digits of a counter are 0; then 64 times that
// Always:
#define base   DI  // the filter's first word
#define blocks R8
#define rows   R9
#define slot   R10 // offset in the ring
#define left   R11 // keys still to probe
#define hashes R12
#define steps  R13 // the table of steps
#define out    R14 // where the next answer goes
#define stuck  R15 // counters that have reached MaxCount
#define ones   Y0  // 1 in each 64-bit lane
#define zeros  Y8
#define all    Y9  // every bit

// The frame: the ring of the next 16 keys, whose counters are on their way from memory,
// in slots of 32 bytes; a loop's counter; and a key's eight masks for each line.
#define RING      16
#define RINGBYTES 512
#define counter   512(SP)
#define MASKSA    544
#define MASKSB    608

// Above them the survivors: keys that passed line a and wait for line b, in slots of 32
// bytes with an empty word, counts b, line b and the address for the answer.
#define SURVIVORS     672
#define SURVIVORBYTES 512
#define oldest        520(SP) // offset of the oldest slot, which is used next
#define nobody        528(SP) // where the answers of empty slots go

#define BATCH(answers) \
	MOVQ f+0(FP), AX                \
	MOVQ Counters_Words(AX), base   \
	MOVQ Counters_Blocks(AX), blocks \
	MOVQ Counters_Rows(AX), rows    \
	MOVQ hashes_base+8(FP), hashes  \
	MOVQ hashes_len+16(FP), left    \
	MOVQ answers+32(FP), out        \
	XORL slot, slot                 \
	VPCMPEQD ones, ones, ones       \
	VMOVDQA  ones, all              \
	VPSRLQ   $63, ones, ones        \
	VPXOR    zeros, zeros, zeros

#define NEXT_SLOT \
	ADDL $32, slot             \
	ANDL $(RINGBYTES-1), slot

// PLACE: takes the next hash and fills the slot: counts a, counts b, line a, line b.
#define PLACE \
	MOVQ    (hashes), hash      \
	ADDQ    $8, hashes          \
	MULXQ   blocks, AX, lineA   \ // the high word is the block
	MULXQ   mixA, s, DX         \
	XORQ    s, g                \
	SHLQ    $11, lineA          \
	ADDQ    base, lineA         \
	RORXL   $16, s, SI          \ // a * 256 bytes, a = s>>24 & 7
	ANDL    $0x700, SI          \
	MOVL    s, AX               \
	ANDL    $0xFFFFFF, AX       \
	IMUL3Q  $1792, AX, AX       \ // 7 lines * 256 bytes
	SHRQ    $24, AX             \
	ANDL    $0x700, AX          \
	ADDL    $256, AX            \
	XORL    SI, AX              \ // b * 256 bytes
	ADDQ    lineA, lineB        \
	ADDQ    SI, lineA           \
	MOVQ    lineA, 16(SP)(slot*1) \
	MOVQ    lineB, 24(SP)(slot*1) \
	MOVBLZX CL, SI              \
	MOVQ    g, AX               \
	ANDQ    sixes, AX           \
	ORQ     (rows)(SI*8), AX    \
	MOVQ    AX, 0(SP)(slot*1)   \
	MULXQ   mixB, AX, DX        \
	MOVBLZX CH, SI              \
	XORQ    DX, AX              \
	ANDQ    sixes, AX           \
	ORQ     (rows)(SI*8), AX    \
	MOVQ    AX, 8(SP)(slot*1)

// LANES: the lanes that a counts word in the slot selects -> on. Uses AX.
#define LANES(counts) \
	MOVQ  counts(SP)(slot*1), AX \
	SHRQ  $6, AX                 \
	ANDNQ each, AX, on

// PREFETCH: of the four cache lines of a line, those of the lanes that a counts word in
// the slot selects. It takes longer than to prefetch all four, and less memory traffic.
#define PREFETCH(counts, again) \
	LANES(counts)           \
again:                      \
	TZCNTQ     on, at       \
	PREFETCHT0 (line)(at*4) \
	BLSRQ      on, on       \
	JNE        again

#define FETCH_A(laneA, laneB) \
	PLACE                     \
	PREFETCH(0, laneA)

#define FETCH_BOTH(laneA, laneB) \
	FETCH_A(laneA, laneB)        \
	MOVQ 24(SP)(slot*1), line    \
	PREFETCH(8, laneB)

// PRIME: fills the ring with the first keys, or all if there are fewer. fetch is FETCH_A
// or FETCH_BOTH.
#define PRIME(fetch, again) \
	MOVQ left, SI           \
	CMPQ SI, $RING          \
	JLE  2(PC)              \
	MOVQ $RING, SI          \
	MOVQ SI, counter        \
again:                      \
	fetch(primeA, primeB)   \
	NEXT_SLOT               \
	DECQ counter            \
	JNE  again              \
	XORL slot, slot

// MASKS: the masks that the counts word at an address selects. lo and hi are Y registers.
#define MASKS(counts, high, lo, hi, masks, more) \
	VPMOVZXBQ counts, lo    \
	VPMOVZXBQ high, hi      \
	VPSLLVQ   lo, ones, lo  \
	VPSLLVQ   hi, ones, hi  \
	VMOVDQU   lo, masks(SP) \
	VMOVDQU   hi, more(SP)

#define MASKS_A MASKS(0(SP)(slot*1), 4(SP)(slot*1), Y1, Y2, MASKSA, (MASKSA+32))
#define MASKS_B MASKS(8(SP)(slot*1), 12(SP)(slot*1), Y3, Y4, MASKSB, (MASKSB+32))

// STEP: moves the counter of one lane on, and adds its weight.
#define STEP(masks, again) \
again:                                 \
	TZCNTQ       on, at                \
	VPBROADCASTQ masks(SP)(at*1), Y5   \
	VMOVDQU      (line)(at*4), Y6      \
	VPAND        Y5, Y6, Y7            \
	VPCMPEQQ     zeros, Y7, Y7         \
	VMOVMSKPD    Y7, digit             \
	SHLL         $6, digit             \
	ADDQ         step_weight(steps)(digit*1), sum \
	VPAND        step_delta(steps)(digit*1), Y5, Y7 \
	VPXOR        Y7, Y6, Y6            \
	VMOVDQU      Y6, (line)(at*4)      \
	BLSRQ        on, on                \
	JNE          again

// LOOK: counts the lanes whose counter is 0. VPTEST sets the carry if no digit has the
// bit that the inverted mask lacks.
#define LOOK(masks, again) \
again:                                 \
	TZCNTQ       on, at                \
	VPBROADCASTQ masks(SP)(at*1), Y5   \
	VPXOR        all, Y5, Y5            \
	VPTEST       (line)(at*4), Y5      \
	ADCL         $0, sum               \
	BLSRQ        on, on                \
	JNE          again

// ADD: moves the slot's counters on, and stores the answer.
#define ADD \
	MASKS_A                   \
	MASKS_B                   \
	XORL sum, sum             \
	MOVQ 16(SP)(slot*1), line \
	LANES(0)                  \
	STEP(MASKSA, stepA)       \
	MOVQ 24(SP)(slot*1), line \
	LANES(8)                  \
	STEP(MASKSB, stepB)       \
	TESTL sum, sum            \
	SETNE (out)               \
	INCQ out                  \
	SHRQ $32, sum             \
	ADDQ sum, stuck

// LOOK_BOTH: stores the answer for the slot's counters.
#define LOOK_BOTH \
	MASKS_A                   \
	MASKS_B                   \
	XORL sum, sum             \
	MOVQ 16(SP)(slot*1), line \
	LANES(0)                  \
	LOOK(MASKSA, lookA)       \
	MOVQ 24(SP)(slot*1), line \
	LANES(8)                  \
	LOOK(MASKSB, lookB)       \
	TESTL sum, sum            \
	SETEQ (out)               \
	INCQ out

// The loop for counters in the second-level cache: all keys use the first slot of the ring.
// Adds are quicker with prefetching even there.

// func countersContainsNearAVX2(f *Counters, hashes []uint64, found *bool)
// hashes is not empty.
TEXT ·countersContainsNearAVX2(SB), 0, $672-40
	BATCH(found)
probe:
	PLACE
	LOOK_BOTH
	DECQ left
	JNE  probe
	VZEROUPPER
	RET

// func countersAddAVX2(f *Counters, hashes []uint64, isNew *bool) (reached uint64)
// hashes is not empty.
TEXT ·countersAddAVX2(SB), 0, $672-48
	BATCH(isNew)
	LEAQ ·up(SB), steps
	XORL stuck, stuck
	PRIME(FETCH_BOTH, prime)
probe:
	ADD
	CMPQ left, $RING
	JLE  drain // no hash left to fetch
	FETCH_BOTH(fetchA, fetchB)
drain:
	NEXT_SLOT
	DECQ left
	JNE  probe
	MOVQ stuck, reached+40(FP)
	VZEROUPPER
	RET

// func countersContainsBothAVX2(f *Counters, hashes []uint64, found *bool)
// Reads both lines of every key. hashes is not empty.
TEXT ·countersContainsBothAVX2(SB), 0, $672-40
	BATCH(found)
	PRIME(FETCH_BOTH, prime)
probe:
	LOOK_BOTH
	CMPQ left, $RING
	JLE  drain
	FETCH_BOTH(fetchA, fetchB)
drain:
	NEXT_SLOT
	DECQ left
	JNE  probe
	VZEROUPPER
	RET

// SETTLE: stores the answer for the survivor at R13.
#define SETTLE(again) \
	MASKS((SURVIVORS+8)(R13), (SURVIVORS+12)(R13), Y3, Y4, MASKSB, (MASKSB+32)) \
	XORL  sum, sum                \
	MOVQ  (SURVIVORS+16)(R13), line \
	MOVQ  (SURVIVORS+8)(R13), AX  \
	SHRQ  $6, AX                  \
	ANDNQ each, AX, on            \
	LOOK(MASKSB, again)           \
	MOVQ  (SURVIVORS+24)(R13), AX \
	TESTL sum, sum                \
	SETEQ (AX)

// func countersContainsFirstAVX2(f *Counters, hashes []uint64, found *bool)
// Reads line a of every key and line b of those that pass it: for few hits. hashes is
// not empty.
TEXT ·countersContainsFirstAVX2(SB), 0, $1184-40
	BATCH(found)
	PRIME(FETCH_A, prime)
	// Fill the survivors with dummy keys, which look at lane 0 of the first line.
	MOVQ $0x4040404040404000, CX
	LEAQ nobody, DX
	XORL AX, AX
	MOVQ AX, oldest
empty:
	LEAQ 0(SP)(AX*1), R13
	MOVQ CX, (SURVIVORS+8)(R13)
	MOVQ base, (SURVIVORS+16)(R13)
	MOVQ DX, (SURVIVORS+24)(R13)
	ADDL $32, AX
	CMPL AX, $SURVIVORBYTES
	JLT  empty
probe:
	MASKS_A
	XORL sum, sum
	MOVQ 16(SP)(slot*1), line
	LANES(0)
	LOOK(MASKSA, lookA)
	TESTL sum, sum
	JEQ  passed
	MOVB $0, (out)
probed:
	INCQ out
	CMPQ left, $RING
	JLE  drain
	FETCH_A(fetchA, fetchB)
drain:
	NEXT_SLOT
	DECQ left
	JNE  probe

	// Settle what is left, in any order.
	XORL R15, R15
settle:
	LEAQ 0(SP)(R15*1), R13
	SETTLE(lookLast)
	ADDL $32, R15
	CMPL R15, $SURVIVORBYTES
	JLT  settle
	VZEROUPPER
	RET

passed:
	// The new survivor takes the place of the oldest, whose line b had as much time to
	// arrive as 15 other survivors took.
	MOVQ oldest, R13
	ADDQ SP, R13
	SETTLE(lookOldest)
	MOVQ 8(SP)(slot*1), AX
	MOVQ AX, (SURVIVORS+8)(R13)
	MOVQ out, (SURVIVORS+24)(R13)
	MOVQ 24(SP)(slot*1), line
	MOVQ line, (SURVIVORS+16)(R13)
	PREFETCH(8, survivor)
	MOVQ oldest, AX
	ADDL $32, AX
	ANDL $(SURVIVORBYTES-1), AX
	MOVQ AX, oldest
	JMP  probed
