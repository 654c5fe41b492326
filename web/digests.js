// MD5, SHA-256 and the Murmur hashes, which some other programs' filters use. They are
// here because a filter answers at once, and the browser's own digests are asynchronous.

const blockBytes = 64; // bytes of a block of MD5 and SHA-256

// padded returns the message with a one bit, zeros and its length in bits, as both digests
// define.
function padded(message, littleEndian) {
  const blocks = Math.ceil((message.length + 9) / blockBytes);
  const bytes = new Uint8Array(blocks * blockBytes);
  bytes.set(message);
  bytes[message.length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setBigUint64(bytes.length - 8, BigInt(message.length) * 8n, littleEndian);
  return view;
}

const md5Shifts = Int32Array.of(7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21);
const md5Sines = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 0x100000000));

// md5 returns the 16 bytes of RFC 1321.
export function md5(message) {
  const view = padded(message, true);
  const words = new Int32Array(16);
  let a0 = 0x67452301, b0 = 0xefcdab89 | 0, c0 = 0x98badcfe | 0, d0 = 0x10325476;
  for (let at = 0; at < view.byteLength; at += 64) {
    for (let i = 0; i < 16; i++) {
      words[i] = view.getInt32(at + 4 * i, true);
    }
    let a = a0, b = b0, c = c0, d = d0;
    for (let i = 0; i < 64; i++) {
      const round = i >> 4;
      let f = 0, word = 0;
      if (round === 0) {
        f = (b & c) | (~b & d);
        word = i;
      } else if (round === 1) {
        f = (d & b) | (~d & c);
        word = (5 * i + 1) & 15;
      } else if (round === 2) {
        f = b ^ c ^ d;
        word = (3 * i + 5) & 15;
      } else {
        f = c ^ (b | ~d);
        word = (7 * i) & 15;
      }
      const x = (a + f + md5Sines[i] + words[word]) | 0;
      const shift = md5Shifts[4 * round + (i & 3)];
      a = d;
      d = c;
      c = b;
      b = (b + ((x << shift) | (x >>> (32 - shift)))) | 0;
    }
    a0 = (a0 + a) | 0;
    b0 = (b0 + b) | 0;
    c0 = (c0 + c) | 0;
    d0 = (d0 + d) | 0;
  }
  const digest = new DataView(new ArrayBuffer(16));
  [a0, b0, c0, d0].forEach((word, i) => digest.setInt32(4 * i, word, true));
  return new Uint8Array(digest.buffer);
}

// The first 32 bits of the fractional parts of roots of the first primes, as FIPS 180-4
// defines SHA-256's constants; computed in integers, because a double has too few bits.
const firstPrimes = (() => {
  const found = [];
  for (let n = 2; found.length < 64; n++) {
    if (found.every((prime) => n % prime !== 0)) {
      found.push(n);
    }
  }
  return found;
})();

function rootBits(n, power) { // floor(n^(1/power) * 2^32) mod 2^32
  const target = BigInt(n) << BigInt(32 * power);
  let low = 0n, high = 1n << 40n;
  while (low < high) {
    const middle = (low + high + 1n) >> 1n;
    if (middle ** BigInt(power) <= target) {
      low = middle;
    } else {
      high = middle - 1n;
    }
  }
  return Number(BigInt.asIntN(32, low));
}

const sha256Start = firstPrimes.slice(0, 8).map((prime) => rootBits(prime, 2));
const sha256Constants = Int32Array.from(firstPrimes, (prime) => rootBits(prime, 3));

const turnRight = (x, n) => (x >>> n) | (x << (32 - n));

// sha256 returns the 32 bytes of FIPS 180-4.
export function sha256(message) {
  const view = padded(message, false);
  const state = Int32Array.from(sha256Start), words = new Int32Array(64);
  for (let at = 0; at < view.byteLength; at += 64) {
    for (let i = 0; i < 16; i++) {
      words[i] = view.getInt32(at + 4 * i, false);
    }
    for (let i = 16; i < 64; i++) {
      const w15 = words[i - 15], w2 = words[i - 2];
      const s0 = turnRight(w15, 7) ^ turnRight(w15, 18) ^ (w15 >>> 3);
      const s1 = turnRight(w2, 17) ^ turnRight(w2, 19) ^ (w2 >>> 10);
      words[i] = words[i - 16] + s0 + words[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = turnRight(e, 6) ^ turnRight(e, 11) ^ turnRight(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + sha256Constants[i] + words[i]) | 0;
      const s0 = turnRight(a, 2) ^ turnRight(a, 13) ^ turnRight(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => {
      state[i] += word;
    });
  }
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, i) => digest.setInt32(4 * i, word, false));
  return new Uint8Array(digest.buffer);
}

const low64 = (x) => BigInt.asUintN(64, x);
const turnLeft = (x, n) => low64((x << n) | (x >> (64n - n)));

// wordAt is up to eight bytes as a little-endian number.
function wordAt(bytes, from, to) {
  let low = 0, high = 0;
  for (let i = from; i < to; i++) {
    if (i - from < 4) {
      low |= bytes[i] << (8 * (i - from));
    } else {
      high |= bytes[i] << (8 * (i - from - 4));
    }
  }
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

// murmur3 returns the two halves of MurmurHash3 x64-128 with seed 0 (Appleby).
export function murmur3(bytes) {
  const c1 = 0x87c37b91114253d5n, c2 = 0x4cf5ad432745937fn;
  const mixFirst = (k) => low64(turnLeft(low64(k * c1), 31n) * c2);
  const mixSecond = (k) => low64(turnLeft(low64(k * c2), 33n) * c1);
  const finish = (h) => {
    h = low64((h ^ (h >> 33n)) * 0xff51afd7ed558ccdn);
    h = low64((h ^ (h >> 33n)) * 0xc4ceb9fe1a85ec53n);
    return h ^ (h >> 33n);
  };
  let h1 = 0n, h2 = 0n, at = 0;
  for (; at + 16 <= bytes.length; at += 16) {
    h1 ^= mixFirst(wordAt(bytes, at, at + 8));
    h1 = low64((turnLeft(h1, 27n) + h2) * 5n + 0x52dce729n);
    h2 ^= mixSecond(wordAt(bytes, at + 8, at + 16));
    h2 = low64((turnLeft(h2, 31n) + h1) * 5n + 0x38495ab5n);
  }
  if (bytes.length - at > 8) {
    h2 ^= mixSecond(wordAt(bytes, at + 8, bytes.length));
  }
  h1 ^= mixFirst(wordAt(bytes, at, Math.min(at + 8, bytes.length)));
  h1 ^= BigInt(bytes.length);
  h2 ^= BigInt(bytes.length);
  h1 = low64(h1 + h2);
  h2 = low64(h2 + h1);
  h1 = finish(h1);
  h2 = finish(h2);
  h1 = low64(h1 + h2);
  return [h1, low64(h2 + h1)];
}

// murmur64A is MurmurHash64A, the 64-bit MurmurHash2 (Appleby).
export function murmur64A(bytes, seed) {
  const mul = 0xc6a4a7935bd1e995n;
  let h = seed ^ low64(BigInt(bytes.length) * mul), at = 0;
  for (; at + 8 <= bytes.length; at += 8) {
    let k = low64(wordAt(bytes, at, at + 8) * mul);
    k = low64((k ^ (k >> 47n)) * mul);
    h = low64((h ^ k) * mul);
  }
  if (at < bytes.length) {
    h = low64((h ^ wordAt(bytes, at, bytes.length)) * mul);
  }
  h = low64((h ^ (h >> 47n)) * mul);
  return h ^ (h >> 47n);
}
