// The batch loops of Modular. Go has no prefetch, and an assembly function is
// never inlined, so the whole loop is here. The comments say which register holds what;
// modular.go explains the steps, and modular_generic.go is the same in Go.

//go:build !purego && !race

#include "textflag.h"
#include "go_asm.h"

// Registers, the same in every function. AX, CX and DX are scratch.
#define at     BX  // position before the modulus: a + i*b
#define step   R10 // b
#define probe  SI  // counts probes
#define base   DI  // the filter's first word
#define m      R8
#define magic  R9
#define next   R11 // in places
#define pair   R12 // the current key
#define left   R13 // keys left, not counting those of the current chunk
#define has    R14 // how many of the key's bits are set
#define out    R15 // where the next answer goes, or the next key that is kept

// MODULUS: at -> AX = at mod m. Uses DX.
#define MODULUS \
	MOVQ    at, AX    \
	MULQ    magic     \
	IMULQ   m, DX     \
	MOVQ    at, AX    \
	SUBQ    DX, AX    \
	MOVQ    AX, DX    \
	SUBQ    m, DX     \
	CMOVQCC DX, AX

// PLACES: computes the positions of the key at CX, stores them from next on, and
// prefetches their lines with the instruction fetch. Advances next and CX.
#define PLACES(probes, again, fetch) \
	MOVQ 0(CX), at    \
	MOVQ 8(CX), step  \
	ADDQ $16, CX      \
	MOVQ probes, probe \
again:                \
	MODULUS           \
	MOVQ AX, (next)   \
	ADDQ $8, next     \
	SHRQ $6, AX       \
	fetch             \
	ADDQ step, at     \
	DECQ probe        \
	JNE  again

#define TO_READ PREFETCHT0 (base)(AX*8)
// PREFETCHW (DI)(AX*8), which the assembler lacks: 0F 0D /1.
#define TO_WRITE BYTE $0x0F; BYTE $0x0D; BYTE $0x0C; BYTE $0xC7

// LOOK: counts in has how many of the positions from next on are set. Advances next.
#define LOOK(probes, again) \
	XORL has, has         \
	MOVQ probes, probe    \
again:                    \
	MOVQ (next), AX       \
	ADDQ $8, next         \
	MOVQ AX, DX           \
	SHRQ $6, DX           \
	MOVQ (base)(DX*8), DX \
	BTQ  AX, DX           \
	ADCQ $0, has          \
	DECQ probe            \
	JNE  again

// BACK: moves next back to the key's first position.
#define BACK(probes) \
	MOVQ probes, AX \
	SHLQ $3, AX     \
	SUBQ AX, next

#define FILTER \
	MOVQ f+0(FP), AX            \
	MOVQ Modular_Words(AX), base \
	MOVQ Modular_Bits(AX), m    \
	MOVQ Modular_magic(AX), magic

// TO_ADD: begins a chunk of keys to add. Puts their positions into places, and their
// number into keys.
#define TO_ADD(chunk, next_chunk, place, again) \
next_chunk:                  \
	MOVQ left, DX            \
	CMPQ DX, chunk           \
	JLE  2(PC)               \
	MOVQ chunk, DX           \
	MOVQ DX, keys-8(SP)      \
	SUBQ DX, left            \
	MOVQ DX, toPlace-16(SP)  \
	MOVQ s+8(FP), next       \
	ADDQ $Sieve_places, next \
	MOVQ pair, CX            \
place:                       \
	PLACES(probes-24(SP), again, TO_WRITE) \
	DECQ toPlace-16(SP)      \
	JNE  place               \
	MOVQ s+8(FP), next       \
	ADDQ $Sieve_places, next

#define ADDING \
	FILTER                   \
	MOVQ Modular_Probes(AX), DX \
	MOVQ DX, probes-24(SP)   \
	MOVQ pairs_base+32(FP), pair \
	MOVQ pairs_len+40(FP), left \
	MOVQ isNew+56(FP), out

// func modularSieve(f *Modular, s *Sieve, n, probes, chunk int) (kept int)
// n is at least 1. The kept keys overwrite keys of the input, but only after those
// were read.
TEXT ·modularSieve(SB), NOSPLIT, $32-48
	FILTER
	MOVQ s+8(FP), AX
	LEAQ Sieve_pairs(AX), pair
	MOVQ pair, out
	LEAQ Sieve_at(AX), CX
	MOVQ CX, oldAt-8(SP)
	MOVQ CX, newAt-16(SP)
	MOVQ n+16(FP), left
chunk:
	MOVQ left, DX
	CMPQ DX, chunk+32(FP)
	JLE  2(PC)
	MOVQ chunk+32(FP), DX
	MOVQ DX, keys-24(SP)
	SUBQ DX, left
	MOVQ DX, toPlace-32(SP)
	MOVQ s+8(FP), next
	ADDQ $Sieve_places, next
	MOVQ pair, CX
place:
	PLACES(probes+24(FP), placeAgain, TO_READ)
	DECQ toPlace-32(SP)
	JNE  place
	MOVQ s+8(FP), next
	ADDQ $Sieve_places, next
look:
	LOOK(probes+24(FP), lookAgain)
	MOVQ  0(pair), at
	MOVQ  8(pair), step
	ADDQ  $16, pair
	MOVQ  probes+24(FP), AX
	MOVQ  AX, CX
	IMULQ step, AX
	ADDQ  AX, at
	MOVQ  at, 0(out)
	MOVQ  step, 8(out)
	MOVQ  oldAt-8(SP), AX
	MOVWLZX (AX), DX
	ADDQ  $2, oldAt-8(SP)
	MOVQ  newAt-16(SP), AX
	MOVW  DX, (AX)
	XORL  DX, DX
	CMPQ  has, CX
	SETEQ DL
	LEAQ  (AX)(DX*2), AX
	MOVQ  AX, newAt-16(SP)
	SHLQ  $4, DX
	ADDQ  DX, out
	DECQ  keys-24(SP)
	JNE   look
	TESTQ left, left
	JNE   chunk
	MOVQ  s+8(FP), AX
	LEAQ  Sieve_pairs(AX), AX
	SUBQ  AX, out
	SHRQ  $4, out
	MOVQ  out, kept+40(FP)
	RET

// func modularAdd(f *Modular, s *Sieve, size *uint64, most uint64, pairs [][2]uint64, isNew *bool, chunk int) (done, why int)
// pairs is not empty.
TEXT ·modularAdd(SB), NOSPLIT, $32-88
	ADDING
	TO_ADD(chunk+64(FP), chunk, place, placeAgain)
look:
	LOOK(probes-24(SP), lookAgain)
	ADDQ $16, pair
	CMPQ has, probes-24(SP)
	JEQ  old
	MOVQ size+16(FP), CX
	MOVQ (CX), DX
	CMPQ DX, most+24(FP)
	JAE  full
	INCQ DX
	MOVQ DX, (CX)
	BACK(probes-24(SP))
	MOVQ probes-24(SP), probe
set:
	MOVQ (next), AX
	ADDQ $8, next
	MOVQ AX, DX
	SHRQ $6, DX
	MOVQ (base)(DX*8), CX
	BTSQ AX, CX
	MOVQ CX, (base)(DX*8)
	DECQ probe
	JNE  set
	MOVB $1, (out)
	INCQ out
	DECQ keys-8(SP)
	JNE  look
	JMP  more
old:
	MOVB $0, (out)
	INCQ out
	DECQ keys-8(SP)
	JNE  look
more:
	TESTQ left, left
	JNE  chunk
	MOVQ $0, why+80(FP)
	JMP  done
full:
	MOVQ $1, why+80(FP)
done:
	SUBQ isNew+56(FP), out
	MOVQ out, done+72(FP)
	RET

// How often a held lock is read before Go is asked to run another goroutine.
#define PATIENCE $64

// func modularAddSync(f *Modular, s *Sieve, size *uint64, most uint64, pairs [][2]uint64, isNew *bool, chunk int, stripes []Stripe) (done, why int)
// pairs is not empty.
TEXT ·modularAddSync(SB), NOSPLIT, $32-112
	ADDING
	TO_ADD(chunk+64(FP), chunk, place, placeAgain)
look:
	LOOK(probes-24(SP), lookAgain)
	ADDQ $16, pair
	CMPQ has, probes-24(SP)
	JEQ  old
	MOVQ stripes_len+80(FP), CX
	DECQ CX
	ANDQ -16(pair), CX
	SHLQ $6, CX
	ADDQ stripes_base+72(FP), CX // the key's stripe
	MOVL PATIENCE, at
	MOVL $1, DX
try:
	XORL AX, AX
	LOCK
	CMPXCHGL DX, Stripe_lock(CX)
	JNE  wait
	BACK(probes-24(SP))
	LOOK(probes-24(SP), lookLocked) // another goroutine may have added it meanwhile
	CMPQ has, probes-24(SP)
	JEQ  oldLocked
	MOVQ size+16(FP), step
	MOVQ (step), AX
count:
	CMPQ AX, most+24(FP)
	JAE  full
	LEAQ 1(AX), DX
	LOCK
	CMPXCHGQ DX, (step)
	JNE  count
	BACK(probes-24(SP))
	MOVQ probes-24(SP), probe
set:
	MOVQ (next), AX
	ADDQ $8, next
	MOVQ AX, DX
	SHRQ $6, DX
	MOVQ (base)(DX*8), step
	BTSQ AX, step
	JCS  isSet
	XORL at, at
	BTSQ AX, at
	LOCK // other keys' bits in this word are guarded by other stripes
	ORQ  at, (base)(DX*8)
isSet:
	DECQ probe
	JNE  set
	MOVL $0, Stripe_lock(CX)
	MOVB $1, (out)
	INCQ out
	DECQ keys-8(SP)
	JNE  look
	JMP  more
wait:
	PAUSE
	DECL at
	JEQ  busy
	CMPL Stripe_lock(CX), $0
	JNE  wait
	JMP  try
oldLocked:
	MOVL $0, Stripe_lock(CX)
old:
	MOVB $0, (out)
	INCQ out
	DECQ keys-8(SP)
	JNE  look
more:
	TESTQ left, left
	JNE  chunk
	MOVQ $0, why+104(FP)
	JMP  done
full:
	MOVL $0, Stripe_lock(CX)
	MOVQ $1, why+104(FP)
	JMP  done
busy:
	MOVQ $2, why+104(FP)
done:
	SUBQ isNew+56(FP), out
	MOVQ out, done+96(FP)
	RET
