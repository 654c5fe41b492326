// XXH3-64 of keys of up to 240 bytes, with BMI2's MULX. xxh3_generic.go, the same in
// plain Go, explains the steps. Nothing outside a key is ever read.

//go:build !purego && !race

#include "textflag.h"

DATA xxh64Prime1<>+0(SB)/8, $0x9e3779b185ebca87
GLOBL xxh64Prime1<>(SB), RODATA|NOPTR, $8
DATA xxh64Prime2<>+0(SB)/8, $0xc2b2ae3d27d4eb4f
GLOBL xxh64Prime2<>(SB), RODATA|NOPTR, $8
DATA xxh64Prime3<>+0(SB)/8, $0x165667b19e3779f9
GLOBL xxh64Prime3<>(SB), RODATA|NOPTR, $8
DATA rrmxmx<>+0(SB)/8, $0x9fb21c651e98df25
GLOBL rrmxmx<>(SB), RODATA|NOPTR, $8

// Registers. FOLD uses AX, BX and DX.
#define salt   CX  // the seed
#define hashes DI
#define header SI  // of the next key: its pointer and its length
#define key    R8
#define size   R9
#define h      R10
#define left   R11 // keys still to hash
#define step   R12 // from header to header
#define secret R13 // words 0 to 15 of the secret, with the seed
#define ahead  R14 // to the header whose key is prefetched, or 0 for the last keys
#define prime  R15 // of the avalanche

// How many keys ahead the keys' bytes are prefetched. Keys that lie in order in memory
// need no prefetching; those that do not take a third of the time with it.
#define AHEAD 16

// SEEDED: bytes i to i+15 of the secret, with the seed, into the table; j is i+8.
#define SEEDED(i, j) \
	MOVQ ·xxh3Secret+i(SB), AX \
	MOVQ ·xxh3Secret+j(SB), BX \
	ADDQ salt, AX              \
	SUBQ salt, BX              \
	MOVQ AX, i(secret)         \
	MOVQ BX, j(secret)

// FOLD: adds to h the product of 16 bytes of the key and bytes i to i+15 of the secret.
#define FOLD(lo, hi, i, j) \
	MOVQ  i(secret), DX   \
	MOVQ  j(secret), AX   \
	XORQ  lo, DX          \
	XORQ  hi, AX          \
	MULXQ AX, AX, BX      \
	XORQ  AX, BX          \
	ADDQ  BX, h

// FOLD_SEED: the same with any two words of the secret and the seed.
#define FOLD_SEED(lo, hi, even, odd) \
	MOVQ  even, DX     \
	MOVQ  odd, AX      \
	ADDQ  salt, DX     \
	SUBQ  salt, AX     \
	XORQ  lo, DX       \
	XORQ  hi, AX       \
	MULXQ AX, AX, BX   \
	XORQ  AX, BX       \
	ADDQ  BX, h

// XORSHIFT: h ^= h >> n
#define XORSHIFT(n) \
	MOVQ h, AX  \
	SHRQ $n, AX \
	XORQ AX, h

#define AVALANCHE \
	XORSHIFT(37)   \
	IMULQ prime, h \
	XORSHIFT(32)

// The parts for short keys; each but OF_4_TO_8 needs an avalanche afterwards. For 9 to
// 16 bytes the seed is added to the exclusive or of two words of the secret.
#define OF_9_TO_16 \
	MOVQ ·xxh3Secret+24(SB), DX \
	MOVQ ·xxh3Secret+40(SB), AX \
	XORQ ·xxh3Secret+32(SB), DX \
	XORQ ·xxh3Secret+48(SB), AX \
	ADDQ salt, DX \
	SUBQ salt, AX \
	XORQ (key), DX \
	XORQ -8(key)(size*1), AX \
	LEAQ (size)(AX*1), h \
	MOVQ DX, BX \
	BSWAPQ BX \
	ADDQ BX, h \
	MULXQ AX, AX, BX \
	XORQ AX, BX \
	ADDQ BX, h

// The seed counts as seed ^ reversed low half << 32.
#define OF_4_TO_8 \
	MOVL (key), BX \
	MOVL -4(key)(size*1), h \
	SHLQ $32, BX \
	ADDQ BX, h \
	MOVL salt, AX \
	BSWAPL AX \
	SHLQ $32, AX \
	XORQ salt, AX \
	MOVQ ·xxh3Secret+8(SB), BX \
	XORQ ·xxh3Secret+16(SB), BX \
	SUBQ AX, BX \
	XORQ BX, h \
	RORXQ $15, h, AX \
	RORXQ $40, h, BX \
	XORQ AX, h \
	XORQ BX, h \
	IMULQ rrmxmx<>(SB), h \
	MOVQ h, AX \
	SHRQ $35, AX \
	ADDQ size, AX \
	XORQ AX, h \
	IMULQ rrmxmx<>(SB), h \
	XORSHIFT(28)

// The first byte, the middle one, the last one and the length.
#define OF_1_TO_3 \
	MOVBLZX (key), h \
	MOVQ size, AX \
	SHRQ $1, AX \
	MOVBLZX (key)(AX*1), BX \
	SHLQ $16, h \
	SHLQ $24, BX \
	ORQ  BX, h \
	MOVBLZX -1(key)(size*1), BX \
	ORQ  BX, h \
	MOVQ size, AX \
	SHLQ $8, AX \
	ORQ  AX, h \
	MOVL ·xxh3Secret+0(SB), AX \
	XORL ·xxh3Secret+4(SB), AX \
	ADDQ salt, AX \
	XORQ AX, h

// No bytes.
#define OF_0 \
	MOVQ salt, h \
	XORQ ·xxh3Secret+56(SB), h \
	XORQ ·xxh3Secret+64(SB), h

// XXH64's avalanche.
#define AVALANCHE64 \
	XORSHIFT(33) \
	IMULQ xxh64Prime2<>(SB), h \
	XORSHIFT(29) \
	IMULQ xxh64Prime3<>(SB), h \
	XORSHIFT(32)

// func xxh3Batch(hashes []uint64, first unsafe.Pointer, stride uintptr, seed uint64) (longer int)
TEXT ·xxh3Batch(SB), NOSPLIT, $144-56
	MOVQ hashes_base+0(FP), hashes
	MOVQ hashes_len+8(FP), left
	MOVQ first+24(FP), header
	MOVQ stride+32(FP), step
	MOVQ seed+40(FP), salt
	MOVQ $0, longer+48(FP)
	MOVQ $0x165667919e3779f9, prime
	LEAQ table-144(SP), secret
	SEEDED(0, 8)
	SEEDED(16, 24)
	SEEDED(32, 40)
	SEEDED(48, 56)
	SEEDED(64, 72)
	SEEDED(80, 88)
	SEEDED(96, 104)
	SEEDED(112, 120)
	XORL ahead, ahead
	MOVQ left, rest-8(SP)
	SUBQ $AHEAD, left
	JLE  last
	MOVQ $AHEAD, rest-8(SP)
	IMUL3Q $AHEAD, step, ahead

next:
	MOVQ (header)(ahead*1), AX
	PREFETCHT0 (AX)
	MOVQ 0(header), key
	MOVQ 8(header), size
	ADDQ step, header
	CMPQ size, $16
	JBE  short
	MOVQ  xxh64Prime1<>(SB), h
	IMULQ size, h
	CMPQ size, $32
	JBE  to32
	CMPQ size, $64
	JBE  to64
	CMPQ size, $128
	JA   long
	CMPQ size, $96
	JBE  to96
	FOLD(48(key), 56(key), 96, 104)
	FOLD(-64(key)(size*1), -56(key)(size*1), 112, 120)
to96:
	FOLD(32(key), 40(key), 64, 72)
	FOLD(-48(key)(size*1), -40(key)(size*1), 80, 88)
to64:
	FOLD(16(key), 24(key), 32, 40)
	FOLD(-32(key)(size*1), -24(key)(size*1), 48, 56)
to32:
	FOLD(0(key), 8(key), 0, 8)
	FOLD(-16(key)(size*1), -8(key)(size*1), 16, 24)
avalanche:
	AVALANCHE
hashed:
	MOVQ h, (hashes)
skipped:
	ADDQ $8, hashes
	DECQ left
	JNE  next
	XORL ahead, ahead
last:
	MOVQ rest-8(SP), left
	MOVQ $0, rest-8(SP)
	TESTQ left, left
	JNE  next
	RET

short:
	CMPQ size, $8
	JBE  to8
	OF_9_TO_16
	JMP  avalanche

to8:
	CMPQ size, $3
	JBE  to3
	OF_4_TO_8
	JMP  hashed

to3:
	TESTQ size, size
	JEQ  empty
	OF_1_TO_3
avalanche64:
	AVALANCHE64
	JMP  hashed
empty:
	OF_0
	JMP  avalanche64

long:
	CMPQ size, $240
	JA   tooLong
	FOLD(0(key), 8(key), 0, 8)
	FOLD(16(key), 24(key), 16, 24)
	FOLD(32(key), 40(key), 32, 40)
	FOLD(48(key), 56(key), 48, 56)
	FOLD(64(key), 72(key), 64, 72)
	FOLD(80(key), 88(key), 80, 88)
	FOLD(96(key), 104(key), 96, 104)
	FOLD(112(key), 120(key), 112, 120)
	AVALANCHE
	FOLD_SEED(-16(key)(size*1), -8(key)(size*1), xxh3Last<>+0(SB), xxh3Last<>+8(SB))
	SUBQ $144, size
	JCS  avalanche
	MOVQ ahead, saved-16(SP)
	LEAQ ·xxh3Trail(SB), R14
trail:
	FOLD_SEED(128(key), 136(key), 0(R14), 8(R14))
	ADDQ $16, key
	ADDQ $16, R14
	SUBQ $16, size
	JCC  trail
	MOVQ saved-16(SP), ahead
	JMP  avalanche

tooLong:
	INCQ longer+48(FP)
	JMP  skipped

DATA xxh3Last<>+0(SB)/8, $0x7378d9c97e9fc831
DATA xxh3Last<>+8(SB)/8, $0xebd33483acc5ea64
GLOBL xxh3Last<>(SB), RODATA|NOPTR, $16

// S: bytes i to i+7 of the secret.
#define S(i) ·xxh3Secret+i(SB)

// func xxh3InRegisters()
// Assembly calls it to hash a single key of at most 240 bytes: key, size and salt -> h.
// Uses AX, BX, DX, DI, R14 and R15.
TEXT ·xxh3InRegisters(SB), NOSPLIT, $0-0
	MOVQ $0x165667919e3779f9, prime
	CMPQ size, $16
	JBE  short
	MOVQ  xxh64Prime1<>(SB), h
	IMULQ size, h
	CMPQ size, $32
	JBE  to32
	CMPQ size, $64
	JBE  to64
	CMPQ size, $128
	JA   long
	CMPQ size, $96
	JBE  to96
	FOLD_SEED(48(key), 56(key), S(96), S(104))
	FOLD_SEED(-64(key)(size*1), -56(key)(size*1), S(112), S(120))
to96:
	FOLD_SEED(32(key), 40(key), S(64), S(72))
	FOLD_SEED(-48(key)(size*1), -40(key)(size*1), S(80), S(88))
to64:
	FOLD_SEED(16(key), 24(key), S(32), S(40))
	FOLD_SEED(-32(key)(size*1), -24(key)(size*1), S(48), S(56))
to32:
	FOLD_SEED(0(key), 8(key), S(0), S(8))
	FOLD_SEED(-16(key)(size*1), -8(key)(size*1), S(16), S(24))
avalanche:
	AVALANCHE
	RET

short:
	CMPQ size, $8
	JBE  to8
	OF_9_TO_16
	JMP  avalanche
to8:
	CMPQ size, $3
	JBE  to3
	OF_4_TO_8
	RET
to3:
	TESTQ size, size
	JEQ  empty
	OF_1_TO_3
	AVALANCHE64
	RET
empty:
	OF_0
	AVALANCHE64
	RET

long:
	LEAQ ·xxh3Secret(SB), R14
	LEAQ 128(R14), DI
begin:
	FOLD_SEED(0(key), 8(key), 0(R14), 8(R14))
	ADDQ $16, key
	ADDQ $16, R14
	CMPQ R14, DI
	JNE  begin
	AVALANCHE
	SUBQ $128, size
	FOLD_SEED(-16(key)(size*1), -8(key)(size*1), xxh3Last<>+0(SB), xxh3Last<>+8(SB))
	SUBQ $16, size
	JCS  avalanche
	LEAQ ·xxh3Trail(SB), R14
trail:
	FOLD_SEED(0(key), 8(key), 0(R14), 8(R14))
	ADDQ $16, key
	ADDQ $16, R14
	SUBQ $16, size
	JCC  trail
	JMP  avalanche
