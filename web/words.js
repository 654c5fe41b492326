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

// mulFold leaves the two halves of the 128-bit product a * b in out, one XORed with
// the other. It is most of the time that a hash takes. So it computes the product of the
// sixteen pairs of 16-bit digits in place, instead of calling mulHigh four times, and
// shares what their low and high halves have in common.
export function mulFold(aHigh, aLow, bHigh, bLow) {
  const a0 = aLow & 0xffff, a1 = aLow >>> 16, a2 = aHigh & 0xffff, a3 = aHigh >>> 16;
  const b0 = bLow & 0xffff, b1 = bLow >>> 16, b2 = bHigh & 0xffff, b3 = bHigh >>> 16;
  // Each pair of halves: t and u collect its middle digits, and never overflow.
  let p = Math.imul(a0, b0);
  let t = ((p >>> 16) + Math.imul(a1, b0)) | 0;
  let u = (Math.imul(a0, b1) + (t & 0xffff)) | 0;
  const low00 = (u << 16) | (p & 0xffff), high00 = (Math.imul(a1, b1) + (t >>> 16) + (u >>> 16)) | 0;
  p = Math.imul(a2, b0);
  t = ((p >>> 16) + Math.imul(a3, b0)) | 0;
  u = (Math.imul(a2, b1) + (t & 0xffff)) | 0;
  const low10 = (u << 16) | (p & 0xffff), high10 = (Math.imul(a3, b1) + (t >>> 16) + (u >>> 16)) | 0;
  p = Math.imul(a0, b2);
  t = ((p >>> 16) + Math.imul(a1, b2)) | 0;
  u = (Math.imul(a0, b3) + (t & 0xffff)) | 0;
  const low01 = (u << 16) | (p & 0xffff), high01 = (Math.imul(a1, b3) + (t >>> 16) + (u >>> 16)) | 0;
  p = Math.imul(a2, b2);
  t = ((p >>> 16) + Math.imul(a3, b2)) | 0;
  u = (Math.imul(a2, b3) + (t & 0xffff)) | 0;
  const low11 = (u << 16) | (p & 0xffff), high11 = (Math.imul(a3, b3) + (t >>> 16) + (u >>> 16)) | 0;

  let second = (high00 + low10) | 0;
  let carry = (second >>> 0) < (low10 >>> 0) ? 1 : 0;
  second = (second + low01) | 0;
  carry += (second >>> 0) < (low01 >>> 0) ? 1 : 0;
  // high10 is at most 2^32-2, and then low10 is 1 and carry at most 1: no overflow.
  let third = (high10 + carry) | 0;
  third = (third + high01) | 0;
  let over = (third >>> 0) < (high01 >>> 0) ? 1 : 0;
  third = (third + low11) | 0;
  over += (third >>> 0) < (low11 >>> 0) ? 1 : 0;
  out[0] = low00 ^ third;
  out[1] = second ^ (high11 + over);
}

// mulTop returns the high 64 bits of a * b as a number: exact below 2^53.
export function mulTop(aHigh, aLow, bHigh, bLow) {
  if (bHigh === 0) { // then it has 32 bits
    const low = Math.imul(aHigh, bLow);
    const sum = (low + mulHigh(aLow, bLow)) | 0;
    return (mulHigh(aHigh, bLow) + ((sum >>> 0) < (low >>> 0) ? 1 : 0)) >>> 0;
  }
  const product = ((BigInt(aHigh >>> 0) << 32n) | BigInt(aLow >>> 0)) * ((BigInt(bHigh >>> 0) << 32n) | BigInt(bLow >>> 0));
  return Number(product >> 64n); // of a filter beyond 2 TiB, or another program's beyond 512 MiB
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
