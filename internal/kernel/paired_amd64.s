// The paired-line kernels in AVX2 and BMI2. The comments say which register holds what;
// paired_generic.go, the same in plain Go, explains the steps.

//go:build !purego && !race

#include "textflag.h"
#include "go_asm.h"

DATA mixB<>+0(SB)/8, $0x9fb21c651e98df25
GLOBL mixB<>(SB), RODATA|NOPTR, $8

// Registers, the same in every function. hash is in DX because MULX multiplies by DX.
#define s      CX  // low word of h * mixA: picks lines and lanes
#define hash   DX  // the key's hash ...
#define g      DX  // ... and then g, which picks the bits
#define lineA  BX
#define lineB  AX
#define base   DI  // the filter's first word
#define blocks R8
#define rows   R9
#define slot   R10 // offset in the ring
#define left   R11 // keys still to probe
#define hashes R12
#define mixA   R13
#define out    R14 // where the next answer goes
#define sixes  R15 // 0x3f in each byte
#define ones   Y0  // 1 in each 64-bit lane

#define CONSTANTS \
	MOVQ     $0xd1342543de82ef95, mixA  \
	MOVQ     $0x3f3f3f3f3f3f3f3f, sixes \
	VPCMPEQD ones, ones, ones           \
	VPSRLQ   $63, ones, ones

#define FILTER \
	MOVQ f+0(FP), AX              \
	MOVQ Paired_Words(AX), base   \
	MOVQ Paired_Blocks(AX), blocks \
	MOVQ Paired_Rows(AX), rows    \
	CONSTANTS

#define RETURN VZEROUPPER; RET

// PLACE_A: hash -> lineA, s, g. Uses AX.
#define PLACE_A \
	MULXQ blocks, AX, lineA \ // the high word is the block
	MULXQ mixA, s, DX       \
	XORQ  s, g              \
	SHLQ  $9, lineA         \
	ADDQ  base, lineA       \
	RORXL $18, s, AX        \ // (s>>24 & 7) * 64 bytes
	ANDL  $0x1C0, AX        \
	ADDQ  AX, lineA

// PLACE_B: s, lineA -> lineB. A block begins on a 512-byte boundary, so addresses can
// be XORed instead of line numbers.
#define PLACE_B \
	MOVL   s, AX           \
	ANDL   $0xFFFFFF, AX   \
	IMUL3Q $448, AX, AX    \ // 7 lines * 64 bytes
	SHRQ   $24, AX         \
	ANDL   $0x1C0, AX      \
	ADDL   $64, AX         \
	XORQ   lineA, lineB

// COUNTS_A: s, g -> counts. Uses SI.
#define COUNTS_A(counts) \
	MOVBLZX CL, SI         \
	MOVQ    g, counts      \
	ANDQ    sixes, counts  \
	ORQ     (rows)(SI*8), counts

// COUNTS_B: s, g -> counts, which is not SI. Uses SI and overwrites g.
#define COUNTS_B(counts) \
	MULXQ   mixB<>(SB), counts, DX \
	MOVBLZX CH, SI           \
	XORQ    DX, counts       \
	ANDQ    sixes, counts    \
	ORQ     (rows)(SI*8), counts

// MASKS: eight shift counts in memory -> the masks of lanes 0..3 and 4..7.
#define MASKS(counts, high, lo, hi) \
	VPMOVZXBQ counts, lo   \
	VPMOVZXBQ high, hi     \
	VPSLLVQ   lo, ones, lo \
	VPSLLVQ   hi, ones, hi

// MASKS_R: the same from a register. x is the X register of hi.
#define MASKS_R(counts, x, lo, hi) \
	VMOVQ     counts, x    \
	VPMOVZXBQ x, lo        \
	VPSHUFD   $1, x, x     \
	VPMOVZXBQ x, hi        \
	VPSLLVQ   lo, ones, lo \
	VPSLLVQ   hi, ones, hi

// MISSING: bits of the masks lo, hi that the line lacks -> lo. Uses t.
#define MISSING(line, lo, hi, t) \
	VMOVDQU 0(line), t  \
	VPANDN  lo, t, lo   \
	VMOVDQU 32(line), t \
	VPANDN  hi, t, hi   \
	VPOR    lo, hi, lo

// SET_BOTH: ORs the masks Y1, Y2 into lineA and Y3, Y4 into the other line, and
// leaves ZF set if all bits were there before. Uses Y5 to Y12.
#define SET_BOTH(lineB) \
	VMOVDQU 0(lineA), Y5   \
	VMOVDQU 32(lineA), Y6  \
	VMOVDQU 0(lineB), Y7   \
	VMOVDQU 32(lineB), Y8  \
	VPANDN  Y1, Y5, Y9     \
	VPANDN  Y2, Y6, Y10    \
	VPANDN  Y3, Y7, Y11    \
	VPANDN  Y4, Y8, Y12    \
	VPOR    Y1, Y5, Y5     \
	VPOR    Y2, Y6, Y6     \
	VPOR    Y3, Y7, Y7     \
	VPOR    Y4, Y8, Y8     \
	VMOVDQU Y5, 0(lineA)   \
	VMOVDQU Y6, 32(lineA)  \
	VMOVDQU Y7, 0(lineB)   \
	VMOVDQU Y8, 32(lineB)  \
	VPOR    Y9, Y10, Y9    \
	VPOR    Y11, Y12, Y11  \
	VPOR    Y9, Y11, Y9    \
	VPTEST  Y9, Y9

// The ring: the lines and shift counts of the next 32 keys, whose lines are on their
// way from memory. 32 slots of 32 bytes at the bottom of the frame.
#define RING      32
#define RINGBYTES 1024

#define BATCH(answers) \
	FILTER                       \
	MOVQ hashes_base+8(FP), hashes \
	MOVQ hashes_len+16(FP), left \
	MOVQ answers+32(FP), out     \
	XORL slot, slot

#define NEXT_SLOT \
	ADDL $32, slot             \
	ANDL $(RINGBYTES-1), slot

// FETCH_BOTH: takes the next hash, prefetches both its lines with the given
// instructions, and fills the slot: counts a, counts b, line a, line b.
#define FETCH_BOTH(prefetchA, prefetchB) \
	MOVQ  (hashes), hash       \
	ADDQ  $8, hashes           \
	PLACE_A                    \
	prefetchA                  \
	PLACE_B                    \
	prefetchB                  \
	MOVQ  lineA, 16(SP)(slot*1) \
	MOVQ  lineB, 24(SP)(slot*1) \
	COUNTS_A(AX)               \
	MOVQ  AX, 0(SP)(slot*1)    \
	COUNTS_B(AX)               \
	MOVQ  AX, 8(SP)(slot*1)

#define TO_READ_A PREFETCHT0 (lineA)
#define TO_READ_B PREFETCHT0 (lineB)
// PREFETCHW (BX) and (AX), which the assembler lacks: 0F 0D /1.
#define TO_WRITE_A BYTE $0x0F; BYTE $0x0D; BYTE $0x0B
#define TO_WRITE_B BYTE $0x0F; BYTE $0x0D; BYTE $0x08

// PROBE_BOTH: loads the slot's masks into Y1..Y4 and its lines into lineA, lineB.
#define PROBE_BOTH \
	MASKS(0(SP)(slot*1), 4(SP)(slot*1), Y1, Y2)  \
	MASKS(8(SP)(slot*1), 12(SP)(slot*1), Y3, Y4) \
	MOVQ 16(SP)(slot*1), lineA \
	MOVQ 24(SP)(slot*1), lineB

// PRIME: fills the ring with the first 32 keys, or all if there are fewer. fetch is
// FETCH_A or FETCH_BOTH. COUNTS uses SI, so the loop counter is kept in the frame.
#define PRIME(fetch, again) \
	MOVQ    left, SI        \
	CMPQ    SI, $RING       \
	JLE     2(PC)           \
	MOVQ    $RING, SI       \
	MOVQ    SI, (RINGBYTES)(SP) \
again:                      \
	fetch                   \
	NEXT_SLOT               \
	DECQ    (RINGBYTES)(SP) \
	JNE     again           \
	XORL    slot, slot

// The survivors: keys that passed line a and wait for line b. 16 slots of 32 bytes
// above the ring, each with counts b, line b and the address for the answer.
#define SURVIVORS      1024
#define SURVIVORBYTES  512
#define oldest         1536(SP) // offset of the oldest slot, which is used next
#define nobody         1544(SP) // where the answers of empty slots go

// FETCH_A: takes the next hash, prefetches its first line, and fills the slot:
// counts a, line a, s, g.
#define FETCH_A \
	MOVQ (hashes), hash        \
	ADDQ $8, hashes            \
	PLACE_A                    \
	TO_READ_A                  \
	MOVQ lineA, 8(SP)(slot*1)  \
	MOVQ s, 16(SP)(slot*1)     \
	MOVQ g, 24(SP)(slot*1)     \
	COUNTS_A(AX)               \
	MOVQ AX, 0(SP)(slot*1)

// SETTLE: stores the answer for the survivor at AX. Uses SI.
#define SETTLE \
	MASKS(SURVIVORS(AX), (SURVIVORS+4)(AX), Y1, Y2) \
	MOVQ   (SURVIVORS+8)(AX), SI  \
	MISSING(SI, Y1, Y2, Y3)       \
	VPTEST Y1, Y1                 \
	MOVQ   (SURVIVORS+16)(AX), SI \
	SETEQ  (SI)

// LOOK: like SET_BOTH, but changes neither line. Uses Y5 to Y12.
#define LOOK(lineB) \
	VMOVDQU 0(lineA), Y5   \
	VMOVDQU 32(lineA), Y6  \
	VMOVDQU 0(lineB), Y7   \
	VMOVDQU 32(lineB), Y8  \
	VPANDN  Y1, Y5, Y9     \
	VPANDN  Y2, Y6, Y10    \
	VPANDN  Y3, Y7, Y11    \
	VPANDN  Y4, Y8, Y12    \
	VPOR    Y9, Y10, Y9    \
	VPOR    Y11, Y12, Y11  \
	VPOR    Y9, Y11, Y9    \
	VPTEST  Y9, Y9

// STRIPE: lineA -> CX, the stripe of its block. Moves lineB to SI, because CMPXCHG
// needs AX, and sets DX to 1, the value of a held lock.
#define STRIPE \
	MOVQ lineB, SI              \
	MOVQ lineA, CX              \
	SUBQ base, CX               \
	SHRQ $9, CX                 \ // the block's number
	MOVQ stripes_len+16(FP), DX \
	DECQ DX                     \
	ANDQ DX, CX                 \
	SHLQ $6, CX                 \
	ADDQ stripes_base+8(FP), CX \
	MOVL $1, DX

#define TRY_LOCK \
	XORL AX, AX  \
	LOCK         \
	CMPXCHGL DX, Stripe_lock(CX)

// UNLOCK: adds AX, which is 1 for a new key, to the count, and releases the lock. On
// amd64 a plain store has release semantics.
#define UNLOCK \
	ADDQ AX, Stripe_added(CX) \
	MOVL $0, Stripe_lock(CX)

// How often a held lock is read before Go is asked to run another goroutine.
#define PATIENCE $64

// ---------------------------------------------------------------- one key

// MASKS_BOTH: hash -> the lines, their masks Y1, Y2 and Y3, Y4.
#define MASKS_BOTH \
	PLACE_A                  \
	PLACE_B                  \
	COUNTS_A(R10)            \
	COUNTS_B(R11)            \
	MASKS_R(R10, X2, Y1, Y2) \
	MASKS_R(R11, X4, Y3, Y4)

// TEST_A, then TEST_B: leave ZF set if the line has all bits of the key.
#define TEST_A \
	PLACE_A                    \
	COUNTS_A(R10)              \
	MASKS_R(R10, X2, Y1, Y2)   \
	MISSING(lineA, Y1, Y2, Y3) \
	VPTEST Y1, Y1
#define TEST_B \
	PLACE_B                    \
	COUNTS_B(R10)              \
	MASKS_R(R10, X2, Y1, Y2)   \
	MISSING(lineB, Y1, Y2, Y3) \
	VPTEST Y1, Y1

// Paired.Contains and Paired.Add call these two, so that a lookup is one call. Without
// AVX2 they jump to the Go twin.

// func pairedContains(f *Paired, h uint64) bool
TEXT ·pairedContains(SB), NOSPLIT, $0-17
	CMPB ·useAVX2(SB), $0
	JEQ  twin
	FILTER
	MOVQ h+8(FP), hash
	TEST_A
	JNE  absent // most misses end here, with one line read
	TEST_B
absent:
	SETEQ ret+16(FP)
	RETURN
twin:
	JMP ·pairedContainsTwin(SB)

// func pairedAdd(f *Paired, h uint64) bool
TEXT ·pairedAdd(SB), NOSPLIT, $0-17
	CMPB ·useAVX2(SB), $0
	JEQ  twin
	FILTER
	MOVQ h+8(FP), hash
	MASKS_BOTH
	SET_BOTH(lineB)
	SETNE ret+16(FP)
	RETURN
twin:
	JMP ·pairedAddTwin(SB)

// The same two from the key: xxh3InRegisters takes its pointer, its length and the seed
// in R8, R9 and CX, and leaves the hash in R10. NOFRAME, since the jump to the twin would
// leave a frame.

// func pairedContainsKey(f *Paired, key []byte, seed uint64) bool
TEXT ·pairedContainsKey(SB), NOSPLIT|NOFRAME, $0-41
	CMPB ·useAVX2(SB), $0
	JEQ  twin
	MOVQ key_base+8(FP), R8
	MOVQ key_len+16(FP), R9
	MOVQ seed+32(FP), CX
	CALL ·xxh3InRegisters(SB)
	MOVQ R10, hash
	FILTER
	TEST_A
	JNE  absent
	TEST_B
absent:
	SETEQ ret+40(FP)
	RETURN
twin:
	JMP ·pairedContainsKeyTwin(SB)

// func pairedAddKey(f *Paired, key []byte, seed uint64) bool
TEXT ·pairedAddKey(SB), NOSPLIT|NOFRAME, $0-41
	CMPB ·useAVX2(SB), $0
	JEQ  twin
	MOVQ key_base+8(FP), R8
	MOVQ key_len+16(FP), R9
	MOVQ seed+32(FP), CX
	CALL ·xxh3InRegisters(SB)
	MOVQ R10, hash
	FILTER
	MASKS_BOTH
	SET_BOTH(lineB)
	SETNE ret+40(FP)
	RETURN
twin:
	JMP ·pairedAddKeyTwin(SB)

// func addSyncAVX2(f *Paired, stripes []Stripe, h uint64) uint8
// Returns 0 for an old key, 1 for a new one and 2 if the lock was held for too long.
TEXT ·addSyncAVX2(SB), NOSPLIT, $0-41
	FILTER
	MOVQ h+32(FP), hash
	MASKS_BOTH
	LOOK(lineB)
	JEQ  old
	STRIPE
	MOVL PATIENCE, R10
try:
	TRY_LOCK
	JNE  wait
	SET_BOTH(SI)
	SETNE AL
	MOVBLZX AL, AX
	UNLOCK
answer:
	MOVB AL, ret+40(FP)
	RETURN
wait:
	PAUSE
	DECL R10
	JEQ  giveUp
	CMPL Stripe_lock(CX), $0
	JNE  wait
	JMP  try
giveUp:
	MOVL $2, AX
	JMP  answer
old:
	XORL AX, AX
	JMP  answer

// ---------------------------------------------------------------- many keys

// The loops for filters in the second-level cache: they need no prefetching, so they
// have no ring.

// func addNearAVX2(f *Paired, hashes []uint64, isNew *bool)
// hashes is not empty.
TEXT ·addNearAVX2(SB), NOSPLIT, $0-40
	BATCH(isNew)
probe:
	MOVQ (hashes), hash
	ADDQ $8, hashes
	PLACE_A
	COUNTS_A(R10)
	MASKS_R(R10, X2, Y1, Y2)
	PLACE_B
	MOVQ lineB, R10
	COUNTS_B(AX)
	MASKS_R(AX, X4, Y3, Y4)
	SET_BOTH(R10)
	SETNE (out)
	INCQ out
	DECQ left
	JNE  probe
	RETURN

// func containsNearAVX2(f *Paired, hashes []uint64, found *bool)
// hashes is not empty.
TEXT ·containsNearAVX2(SB), NOSPLIT, $0-40
	BATCH(found)
probe:
	MOVQ (hashes), hash
	ADDQ $8, hashes
	PLACE_A
	COUNTS_A(R10)
	MASKS_R(R10, X2, Y1, Y2)
	MISSING(lineA, Y1, Y2, Y5)
	PLACE_B
	MOVQ lineB, R10
	COUNTS_B(AX)
	MASKS_R(AX, X4, Y3, Y4)
	MISSING(R10, Y3, Y4, Y6)
	VPOR Y1, Y3, Y1
	VPTEST Y1, Y1
	SETEQ (out)
	INCQ out
	DECQ left
	JNE  probe
	RETURN

// func addBatchAVX2(f *Paired, hashes []uint64, isNew *bool)
// hashes is not empty.
TEXT ·addBatchAVX2(SB), 0, $1032-40
	BATCH(isNew)
	PRIME(FETCH_BOTH(TO_WRITE_A, TO_WRITE_B), prime)
probe:
	PROBE_BOTH
	SET_BOTH(lineB)
	SETNE (out)
	INCQ out
	CMPQ left, $RING
	JLE  drain // no hash left to fetch
	FETCH_BOTH(TO_WRITE_A, TO_WRITE_B)
drain:
	NEXT_SLOT
	DECQ left
	JNE  probe
	RETURN

// func containsBothAVX2(f *Paired, hashes []uint64, found *bool)
// Reads both lines of every key and never branches on an answer. hashes is not
// empty.
TEXT ·containsBothAVX2(SB), 0, $1032-40
	BATCH(found)
	PRIME(FETCH_BOTH(TO_READ_A, TO_READ_B), prime)
probe:
	PROBE_BOTH
	MISSING(lineA, Y1, Y2, Y5)
	MISSING(lineB, Y3, Y4, Y6)
	VPOR Y1, Y3, Y1
	VPTEST Y1, Y1
	SETEQ (out)
	INCQ out
	CMPQ left, $RING
	JLE  drain
	FETCH_BOTH(TO_READ_A, TO_READ_B)
drain:
	NEXT_SLOT
	DECQ left
	JNE  probe
	RETURN

// func containsFirstAVX2(f *Paired, hashes []uint64, found *bool)
// Reads line a of every key and line b of those that pass it: for DRAM and few
// hits. hashes is not empty.
TEXT ·containsFirstAVX2(SB), 0, $1560-40
	BATCH(found)
	PRIME(FETCH_A, prime)
	// Fill the survivors with dummy keys that select no bit of the filter's first line.
	MOVQ $0x4040404040404040, CX
	LEAQ nobody, DX
	XORL AX, AX
	MOVQ AX, oldest
empty:
	LEAQ 0(SP)(AX*1), SI
	MOVQ CX, SURVIVORS(SI)
	MOVQ base, (SURVIVORS+8)(SI)
	MOVQ DX, (SURVIVORS+16)(SI)
	ADDL $32, AX
	CMPL AX, $SURVIVORBYTES
	JLT  empty
probe:
	MASKS(0(SP)(slot*1), 4(SP)(slot*1), Y1, Y2)
	MOVQ 8(SP)(slot*1), lineA
	MISSING(lineA, Y1, Y2, Y3)
	VPTEST Y1, Y1
	JEQ  passed
	MOVB $0, (out)
probed:
	INCQ out
	CMPQ left, $RING
	JLE  drain
	FETCH_A
drain:
	NEXT_SLOT
	DECQ left
	JNE  probe

	// Settle what is left, in any order.
	XORL CX, CX
settle:
	LEAQ 0(SP)(CX*1), AX
	SETTLE
	ADDL $32, CX
	CMPL CX, $SURVIVORBYTES
	JLT  settle
	RETURN

passed:
	// The new survivor takes the place of the oldest, whose line b had as much time to
	// arrive as 15 other survivors took.
	MOVQ oldest, AX
	ADDQ SP, AX
	SETTLE
	MOVQ 16(SP)(slot*1), s
	MOVQ 24(SP)(slot*1), g
	COUNTS_B(AX)
	MOVQ oldest, DX
	ADDQ SP, DX
	MOVQ AX, SURVIVORS(DX)
	MOVQ out, (SURVIVORS+16)(DX)
	PLACE_B
	TO_READ_B
	MOVQ lineB, (SURVIVORS+8)(DX)
	MOVQ oldest, DX
	ADDL $32, DX
	ANDL $(SURVIVORBYTES-1), DX
	MOVQ DX, oldest
	JMP  probed

// func addBatchSyncAVX2(f *Paired, stripes []Stripe, hashes []uint64, isNew *bool) (done int)
// Stops before the first key whose lock is held for too long. hashes is not empty.
TEXT ·addBatchSyncAVX2(SB), 0, $1032-72
	FILTER
	MOVQ hashes_base+32(FP), hashes
	MOVQ hashes_len+40(FP), left
	MOVQ isNew+56(FP), out
	XORL slot, slot
	PRIME(FETCH_BOTH(TO_READ_A, TO_READ_B), prime)
probe:
	PROBE_BOTH
	LOOK(lineB)
	JNE  missing
	MOVB $0, (out)
probed:
	INCQ out
	CMPQ left, $RING
	JLE  drain
	FETCH_BOTH(TO_READ_A, TO_READ_B)
drain:
	NEXT_SLOT
	DECQ left
	JNE  probe
stop:
	MOVQ hashes_len+40(FP), AX
	SUBQ left, AX
	MOVQ AX, done+64(FP)
	RETURN

missing:
	STRIPE
	MOVQ PATIENCE, (RINGBYTES)(SP)
try:
	TRY_LOCK
	JNE  wait
	SET_BOTH(SI)
	SETNE AL
	MOVB AL, (out)
	MOVBLZX AL, AX
	UNLOCK
	JMP  probed
wait:
	PAUSE
	DECQ (RINGBYTES)(SP)
	JEQ  stop
	CMPL Stripe_lock(CX), $0
	JNE  wait
	JMP  try
