// Words of 64 bits as two halves of 32, which JavaScript computes without allocating.
// A function that returns a word leaves its low half in out[0] and its high half in
// out[1]; halves are signed, as bitwise operators make them.

export const out = new Int32Array(2);

// mulHigh returns the high half of the 64-bit product of two unsigned halves.
export function mulHigh(a, b) {
  const aLow = a & 0xffff, aHigh = a >>> 16, bLow = b & 0xffff, bHigh = b >>> 16;
  const t = ((Math.imul(aLow, bLow) >>> 16) + Math.imul(aHigh, bLow)) | 0;
  const u = (Math.imul(aLow, bHigh) + (t & 0xffff)) | 0;
  return (Math.imul(aHigh, bHigh) + (t >>> 16) + (u >>> 16)) | 0;
}

// mul leaves the low 64 bits of a * b in out.
export function mul(aHigh, aLow, bHigh, bLow) {
  out[0] = Math.imul(aLow, bLow);
  out[1] = (mulHigh(aLow, bLow) + Math.imul(aHigh, bLow) + Math.imul(aLow, bHigh)) | 0;
}

// The four quarters of a 128-bit product, lowest first; product fills them.
const quarters = new Int32Array(4);

function product(aHigh, aLow, bHigh, bLow) {
  const r0 = Math.imul(aLow, bLow);
  const low10 = Math.imul(aHigh, bLow), low01 = Math.imul(aLow, bHigh), low11 = Math.imul(aHigh, bHigh);
  const high10 = mulHigh(aHigh, bLow), high01 = mulHigh(aLow, bHigh);
  let r1 = (mulHigh(aLow, bLow) + low10) | 0;
  let carry = (r1 >>> 0) < (low10 >>> 0) ? 1 : 0;
  r1 = (r1 + low01) | 0;
  carry += (r1 >>> 0) < (low01 >>> 0) ? 1 : 0;
  let r2 = (high10 + carry) | 0; // high10 is at most 2^32-2, and 2^32-1 times something never carries twice
  let over = (r2 >>> 0) < carry ? 1 : 0;
  r2 = (r2 + high01) | 0;
  over += (r2 >>> 0) < (high01 >>> 0) ? 1 : 0;
  r2 = (r2 + low11) | 0;
  over += (r2 >>> 0) < (low11 >>> 0) ? 1 : 0;
  quarters[0] = r0;
  quarters[1] = r1;
  quarters[2] = r2;
  quarters[3] = (mulHigh(aHigh, bHigh) + over) | 0;
}

// mulFold leaves the two halves of the 128-bit product a * b in out, one XORed with
// the other.
export function mulFold(aHigh, aLow, bHigh, bLow) {
  product(aHigh, aLow, bHigh, bLow);
  out[0] = quarters[0] ^ quarters[2];
  out[1] = quarters[1] ^ quarters[3];
}

// mulTop returns the high 64 bits of a * b as a number: exact below 2^53.
export function mulTop(aHigh, aLow, bHigh, bLow) {
  if (bHigh === 0) { // then it has 32 bits
    const low = Math.imul(aHigh, bLow);
    const sum = (low + mulHigh(aLow, bLow)) | 0;
    return (mulHigh(aHigh, bLow) + ((sum >>> 0) < (low >>> 0) ? 1 : 0)) >>> 0;
  }
  product(aHigh, aLow, bHigh, bLow);
  return (quarters[3] >>> 0) * 0x100000000 + (quarters[2] >>> 0);
}

// add leaves a + b in out.
export function add(aHigh, aLow, bHigh, bLow) {
  const low = (aLow + bLow) | 0;
  out[0] = low;
  out[1] = (aHigh + bHigh + ((low >>> 0) < (bLow >>> 0) ? 1 : 0)) | 0;
}

// rotate leaves a, rotated to the left by 0 < n < 64, in out.
export function rotate(high, low, n) {
  if (n >= 32) {
    const swapped = high;
    high = low;
    low = swapped;
    n -= 32;
  }
  if (n === 0) {
    out[0] = low;
    out[1] = high;
  } else {
    out[0] = (low << n) | (high >>> (32 - n));
    out[1] = (high << n) | (low >>> (32 - n));
  }
}

// toBigInt is the word in out.
export const toBigInt = () => (BigInt(out[1] >>> 0) << 32n) | BigInt(out[0] >>> 0);

// fromBigInt leaves a word in out.
export function fromBigInt(word) {
  out[0] = Number(BigInt.asIntN(32, word));
  out[1] = Number(BigInt.asIntN(32, word >> 32n));
}

// swapBytes reverses the bytes of a half.
export const swapBytes = (x) => ((x << 24) | ((x & 0xff00) << 8) | ((x >>> 8) & 0xff00) | (x >>> 24)) | 0;
