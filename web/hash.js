// The hashes of keys: XXH3-64, XXH64 and MurmurHash64A with seeds, and SipHash-2-4 with a
// secret.
// docs/format.md says which a file may have. A hasher leaves the hash in out of
// words.js; xxh3, xxh64 and sipHash return it as a BigInt.

import { add, fromBigInt, mul, mulFold, out, rotate, swapBytes, toBigInt } from './words.js';

const longestKept = 1 << 16; // bytes of a key; a longer one gets memory of its own

let buffer = new Uint8Array(longestKept);
let view = new DataView(buffer.buffer);
const encoder = new TextEncoder();

// A loaded key: its bytes are text.bytes up to text.length, until the next load.
export const text = { bytes: buffer, view, length: 0 };

// load makes a key, a string or bytes, the one to hash. A string is its UTF-8; what
// UTF-8 cannot hold, half of a surrogate pair, becomes U+FFFD.
export function load(key) {
  if (typeof key === 'string') {
    const length = key.length;
    if (length * 3 > longestKept) {
      loadBytes(encoder.encode(key));
      return;
    }
    for (let i = 0; i < length; i++) {
      const unit = key.charCodeAt(i);
      if (unit >= 0x80) {
        text.bytes = buffer;
        text.view = view;
        text.length = encoder.encodeInto(key, buffer).written;
        return;
      }
      buffer[i] = unit;
    }
    text.bytes = buffer;
    text.view = view;
    text.length = length;
    return;
  }
  if (!(key instanceof Uint8Array)) {
    throw new TypeError('a key is a string or a Uint8Array');
  }
  loadBytes(key);
}

function loadBytes(key) {
  if (key.length > longestKept) {
    text.bytes = key;
    text.view = new DataView(key.buffer, key.byteOffset, key.length);
  } else {
    text.bytes = buffer;
    text.view = view;
    for (let i = 0; i < key.length; i++) {
      buffer[i] = key[i];
    }
  }
  text.length = key.length;
}

// bytesOf returns the bytes of a key.
export const bytesOf = (key) => (typeof key === 'string' ? encoder.encode(key) : key);

// XXH3: Yann Collet's reference, xxhash.h, version 0.8. The names are those there.

const defaultSecret =
  'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f' +
  'cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c' +
  '3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8' +
  'a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364' +
  'eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e' +
  '2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e';

const secretBytes = Uint8Array.from(defaultSecret.match(/../g), (pair) => parseInt(pair, 16));

// Halves of the primes.
const prime1High = 0x9e3779b1 | 0, prime1Low = 0x85ebca87 | 0;
const prime2High = 0xc2b2ae3d | 0, prime2Low = 0x27d4eb4f | 0;
const prime3High = 0x165667b1 | 0, prime3Low = 0x9e3779f9 | 0;
const prime4High = 0x85ebca77 | 0, prime4Low = 0xc2b2ae63 | 0;
const prime5High = 0x27d4eb2f | 0, prime5Low = 0x165667c5 | 0;
const prime321 = 0x9e3779b1 | 0, prime322 = 0x85ebca77 | 0, prime323 = 0xc2b2ae3d | 0;

// halves returns, for each byte, the little-endian half that begins there.
function halves(bytes) {
  const found = new Int32Array(bytes.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let i = 0; i + 4 <= bytes.length; i++) {
    found[i] = view.getInt32(i, true);
  }
  return found;
}

const plain = halves(secretBytes); // of the secret itself

// avalanche finishes a hash: h ^= h>>37, times a constant, h ^= h>>32.
function avalanche(high, low) {
  low ^= high >>> 5;
  mul(high, low, 0x16566791, 0x9e3779f9 | 0);
  out[0] ^= out[1];
}

// avalanche64 finishes short keys, and all of XXH64.
function avalanche64(high, low) {
  low ^= high >>> 1;
  mul(high, low, prime2High, prime2Low);
  high = out[1];
  low = out[0];
  const shiftedLow = (low >>> 29) | (high << 3), shiftedHigh = high >>> 29;
  mul(high ^ shiftedHigh, low ^ shiftedLow, prime3High, prime3Low);
  out[0] ^= out[1];
}

export class XXH3 {
  // For a seed, a BigInt of 64 bits, the words of the secret that begin at each byte,
  // plus the seed and minus it.
  constructor(seed) {
    this.seed = seed;
    fromBigInt(seed);
    this.seedLow = out[0];
    this.seedHigh = out[1];
    this.plusLow = new Int32Array(185);
    this.plusHigh = new Int32Array(185);
    this.minusLow = new Int32Array(185);
    this.minusHigh = new Int32Array(185);
    fromBigInt(BigInt.asUintN(64, -seed));
    const negativeLow = out[0], negativeHigh = out[1];
    for (let i = 0; i < 185; i++) {
      add(plain[i + 4], plain[i], this.seedHigh, this.seedLow);
      this.plusLow[i] = out[0];
      this.plusHigh[i] = out[1];
      add(plain[i + 4], plain[i], negativeHigh, negativeLow);
      this.minusLow[i] = out[0];
      this.minusHigh[i] = out[1];
    }
    this.long = null; // the secret of long keys
    this.lanes = null;
  }

  // hash leaves the hash of the loaded key in out.
  hash() {
    const view = text.view, length = text.length;
    if (length > 16) {
      if (length <= 128) {
        this.hash17to128(view, length);
      } else if (length <= 240) {
        this.hash129to240(view, length);
      } else {
        this.hashLong(view, length);
      }
    } else if (length > 8) {
      this.hash9to16(view, length);
    } else if (length >= 4) {
      this.hash4to8(view, length);
    } else if (length > 0) {
      this.hash1to3(text.bytes, length);
    } else {
      avalanche64(this.seedHigh ^ plain[60] ^ plain[68], this.seedLow ^ plain[56] ^ plain[64]);
    }
  }

  hash1to3(bytes, length) {
    const combined = (bytes[0] << 16) | (bytes[length >> 1] << 24) | bytes[length - 1] | (length << 8);
    add(0, plain[0] ^ plain[4], this.seedHigh, this.seedLow);
    avalanche64(out[1], out[0] ^ combined);
  }

  hash4to8(view, length) {
    const seedHigh = this.seedHigh ^ swapBytes(this.seedLow);
    const first = view.getInt32(0, true), last = view.getInt32(length - 4, true);
    const flipLow = plain[8] ^ plain[16], flipHigh = plain[12] ^ plain[20];
    const low = (flipLow - this.seedLow) | 0;
    const high = (flipHigh - seedHigh - ((flipLow >>> 0) < (this.seedLow >>> 0) ? 1 : 0)) | 0;
    this.rrmxmx(high ^ first, low ^ last, length);
  }

  rrmxmx(high, low, length) {
    rotate(high, low, 49);
    const low49 = out[0], high49 = out[1];
    rotate(high, low, 24);
    mul(high ^ high49 ^ out[1], low ^ low49 ^ out[0], 0x9fb21c65 | 0, 0x1e98df25);
    high = out[1];
    low = out[0];
    low ^= ((high >>> 3) + length) | 0; // h>>35 has 29 bits, and length is at most 8
    mul(high, low, 0x9fb21c65 | 0, 0x1e98df25);
    high = out[1];
    out[0] ^= (out[0] >>> 28) | (high << 4);
    out[1] = high ^ (high >>> 28);
  }

  hash9to16(view, length) {
    const flip1Low = plain[24] ^ plain[32], flip1High = plain[28] ^ plain[36];
    const flip2Low = plain[40] ^ plain[48], flip2High = plain[44] ^ plain[52];
    add(flip1High, flip1Low, this.seedHigh, this.seedLow);
    const aLow = out[0] ^ view.getInt32(0, true), aHigh = out[1] ^ view.getInt32(4, true);
    const minusLow = (flip2Low - this.seedLow) | 0;
    const minusHigh = (flip2High - this.seedHigh - ((flip2Low >>> 0) < (this.seedLow >>> 0) ? 1 : 0)) | 0;
    const bLow = minusLow ^ view.getInt32(length - 8, true), bHigh = minusHigh ^ view.getInt32(length - 4, true);
    mulFold(aHigh, aLow, bHigh, bLow);
    add(out[1], out[0], swapBytes(aLow), swapBytes(aHigh));
    add(out[1], out[0], bHigh, bLow);
    add(out[1], out[0], 0, length);
    avalanche(out[1], out[0]);
  }

  // mix leaves acc + mix16B(key at i, secret at s) in out.
  mix(accHigh, accLow, view, i, s) {
    mulFold(
      view.getInt32(i + 4, true) ^ this.plusHigh[s], view.getInt32(i, true) ^ this.plusLow[s],
      view.getInt32(i + 12, true) ^ this.minusHigh[s + 8], view.getInt32(i + 8, true) ^ this.minusLow[s + 8]);
    const mixedLow = out[0];
    const low = (accLow + mixedLow) | 0;
    out[0] = low;
    out[1] = (accHigh + out[1] + ((low >>> 0) < (mixedLow >>> 0) ? 1 : 0)) | 0;
  }

  hash17to128(view, length) {
    mul(0, length, prime1High, prime1Low);
    if (length > 32) {
      if (length > 64) {
        if (length > 96) {
          this.mix(out[1], out[0], view, 48, 96);
          this.mix(out[1], out[0], view, length - 64, 112);
        }
        this.mix(out[1], out[0], view, 32, 64);
        this.mix(out[1], out[0], view, length - 48, 80);
      }
      this.mix(out[1], out[0], view, 16, 32);
      this.mix(out[1], out[0], view, length - 32, 48);
    }
    this.mix(out[1], out[0], view, 0, 0);
    this.mix(out[1], out[0], view, length - 16, 16);
    avalanche(out[1], out[0]);
  }

  hash129to240(view, length) {
    mul(0, length, prime1High, prime1Low);
    for (let i = 0; i < 8; i++) {
      this.mix(out[1], out[0], view, 16 * i, 16 * i);
    }
    avalanche(out[1], out[0]);
    for (let i = 8; i < length >> 4; i++) {
      this.mix(out[1], out[0], view, 16 * i, 16 * (i - 8) + 3);
    }
    this.mix(out[1], out[0], view, length - 16, 119);
    avalanche(out[1], out[0]);
  }

  // derive makes the secret of long keys, which has the seed in it.
  derive() {
    const secret = new Uint8Array(192);
    const view = new DataView(secret.buffer);
    for (let i = 0; i < 192; i += 16) {
      view.setInt32(i, this.plusLow[i], true);
      view.setInt32(i + 4, this.plusHigh[i], true);
      view.setInt32(i + 8, this.minusLow[i + 8], true);
      view.setInt32(i + 12, this.minusHigh[i + 8], true);
    }
    this.long = halves(secret);
    this.lanes = new Int32Array(16); // eight words, low half first
  }

  hashLong(view, length) {
    if (this.long === null) {
      this.derive();
    }
    const secret = this.long, lanes = this.lanes;
    lanes.set([
      prime323, 0, prime1Low, prime1High, prime2Low, prime2High, prime3Low, prime3High,
      prime4Low, prime4High, prime322, 0, prime5Low, prime5High, prime321, 0,
    ]);
    const stripes = Math.floor((length - 1) / 64);
    for (let i = 0; i < stripes; i++) {
      accumulate(lanes, view, i * 64, secret, (i % 16) * 8);
      if (i % 16 === 15) {
        scramble(lanes, secret);
      }
    }
    accumulate(lanes, view, length - 64, secret, 121);
    const lengthHigh = Math.floor(length / 0x100000000), lengthLow = length | 0;
    mul(lengthHigh, lengthLow, prime1High, prime1Low);
    let low = out[0], high = out[1];
    for (let i = 0; i < 4; i++) {
      const s = 11 + 16 * i, lane = 4 * i;
      mulFold(
        lanes[lane + 1] ^ secret[s + 4], lanes[lane] ^ secret[s],
        lanes[lane + 3] ^ secret[s + 12], lanes[lane + 2] ^ secret[s + 8]);
      add(high, low, out[1], out[0]);
      low = out[0];
      high = out[1];
    }
    avalanche(high, low);
  }
}

function accumulate(lanes, view, at, secret, s) {
  for (let lane = 0; lane < 8; lane++) {
    const low = view.getInt32(at + 8 * lane, true), high = view.getInt32(at + 8 * lane + 4, true);
    const keyLow = low ^ secret[s + 8 * lane], keyHigh = high ^ secret[s + 8 * lane + 4];
    const other = (lane ^ 1) * 2, own = lane * 2;
    add(lanes[other + 1], lanes[other], high, low);
    lanes[other] = out[0];
    lanes[other + 1] = out[1];
    add(lanes[own + 1], lanes[own], mulHigh32(keyLow, keyHigh), Math.imul(keyLow, keyHigh));
    lanes[own] = out[0];
    lanes[own + 1] = out[1];
  }
}

function mulHigh32(a, b) {
  mul(0, a, 0, b);
  return out[1];
}

function scramble(lanes, secret) {
  for (let lane = 0; lane < 8; lane++) {
    const low = lanes[2 * lane], high = lanes[2 * lane + 1];
    mul(high ^ secret[128 + 8 * lane + 4], low ^ (high >>> 15) ^ secret[128 + 8 * lane], 0, prime321);
    lanes[2 * lane] = out[0];
    lanes[2 * lane + 1] = out[1];
  }
}

// XXH64: the same reference.
export class XXH64 {
  constructor(seed) {
    this.seed = seed;
    fromBigInt(seed);
    this.seedLow = out[0];
    this.seedHigh = out[1];
    this.lanes = new Int32Array(8);
  }

  hash() {
    const view = text.view, length = text.length;
    let at = 0;
    if (length >= 32) {
      at = this.stripes(view, length);
    } else {
      add(this.seedHigh, this.seedLow, prime5High, prime5Low);
    }
    add(out[1], out[0], Math.floor(length / 0x100000000), length | 0);
    for (; at + 8 <= length; at += 8) {
      const low = out[0], high = out[1];
      round(0, 0, view.getInt32(at + 4, true), view.getInt32(at, true));
      rotate(high ^ out[1], low ^ out[0], 27);
      mul(out[1], out[0], prime1High, prime1Low);
      add(out[1], out[0], prime4High, prime4Low);
    }
    if (at + 4 <= length) {
      const low = out[0], high = out[1];
      mul(0, view.getInt32(at, true), prime1High, prime1Low);
      rotate(high ^ out[1], low ^ out[0], 23);
      mul(out[1], out[0], prime2High, prime2Low);
      add(out[1], out[0], prime3High, prime3Low);
      at += 4;
    }
    for (; at < length; at++) {
      const low = out[0], high = out[1];
      mul(0, view.getUint8(at), prime5High, prime5Low);
      rotate(high ^ out[1], low ^ out[0], 11);
      mul(out[1], out[0], prime1High, prime1Low);
    }
    const high = out[1], low = out[0];
    avalanche64(high, low);
  }

  // stripes takes whole pieces of 32 bytes, and returns where they end.
  stripes(view, length) {
    const lanes = this.lanes;
    add(this.seedHigh, this.seedLow, prime1High, prime1Low);
    add(out[1], out[0], prime2High, prime2Low);
    lanes[0] = out[0];
    lanes[1] = out[1];
    add(this.seedHigh, this.seedLow, prime2High, prime2Low);
    lanes[2] = out[0];
    lanes[3] = out[1];
    lanes[4] = this.seedLow;
    lanes[5] = this.seedHigh;
    lanes[6] = (this.seedLow - prime1Low) | 0;
    lanes[7] = (this.seedHigh - prime1High - ((this.seedLow >>> 0) < (prime1Low >>> 0) ? 1 : 0)) | 0;
    let at = 0;
    for (; at + 32 <= length; at += 32) {
      for (let lane = 0; lane < 4; lane++) {
        round(lanes[2 * lane + 1], lanes[2 * lane], view.getInt32(at + 8 * lane + 4, true), view.getInt32(at + 8 * lane, true));
        lanes[2 * lane] = out[0];
        lanes[2 * lane + 1] = out[1];
      }
    }
    rotate(lanes[1], lanes[0], 1);
    for (let lane = 1; lane < 4; lane++) {
      const low = out[0], high = out[1];
      rotate(lanes[2 * lane + 1], lanes[2 * lane], [0, 7, 12, 18][lane]);
      add(high, low, out[1], out[0]);
    }
    for (let lane = 0; lane < 4; lane++) {
      const low = out[0], high = out[1];
      round(0, 0, lanes[2 * lane + 1], lanes[2 * lane]);
      mul(high ^ out[1], low ^ out[0], prime1High, prime1Low);
      add(out[1], out[0], prime4High, prime4Low);
    }
    return at;
  }
}

// round is rotate(acc + word * prime2, 31) * prime1.
function round(accHigh, accLow, wordHigh, wordLow) {
  mul(wordHigh, wordLow, prime2High, prime2Low);
  add(accHigh, accLow, out[1], out[0]);
  rotate(out[1], out[0], 31);
  mul(out[1], out[0], prime1High, prime1Low);
}

// MurmurHash64A, the 64-bit MurmurHash2: Appleby's reference, MurmurHash2.cpp.
export class Murmur64A {
  constructor(seed) {
    this.seed = seed;
    fromBigInt(seed);
    this.seedLow = out[0];
    this.seedHigh = out[1];
  }

  hash() {
    const view = text.view, length = text.length;
    mul(Math.floor(length / 0x100000000), length | 0, murmurHigh, murmurLow);
    let low = out[0] ^ this.seedLow, high = out[1] ^ this.seedHigh, at = 0;
    for (; at + 8 <= length; at += 8) {
      mul(view.getInt32(at + 4, true), view.getInt32(at, true), murmurHigh, murmurLow);
      mul(out[1], out[0] ^ (out[1] >>> 15), murmurHigh, murmurLow); // k ^= k>>47
      mul(high ^ out[1], low ^ out[0], murmurHigh, murmurLow);
      low = out[0];
      high = out[1];
    }
    if (at < length) {
      for (let i = 0; at + i < length; i++) {
        const byte = view.getUint8(at + i);
        if (i < 4) {
          low ^= byte << (8 * i);
        } else {
          high ^= byte << (8 * (i - 4));
        }
      }
      mul(high, low, murmurHigh, murmurLow);
      low = out[0];
      high = out[1];
    }
    mul(high, low ^ (high >>> 15), murmurHigh, murmurLow);
    out[0] ^= out[1] >>> 15;
  }
}

const murmurHigh = 0xc6a4a793 | 0, murmurLow = 0x5bd1e995;

// SipHash-2-4: Aumasson and Bernstein 2012.
export class SipHash {
  constructor(secret) {
    if (!(secret instanceof Uint8Array) || secret.length !== 16) {
      throw new TypeError('a secret is a Uint8Array of 16 bytes');
    }
    const view = new DataView(secret.buffer, secret.byteOffset, 16);
    const k = [0, 4, 8, 12].map((at) => view.getInt32(at, true));
    this.start = Int32Array.of(
      k[0] ^ 0x70736575, k[1] ^ 0x736f6d65, k[2] ^ 0x6e646f6d, k[3] ^ 0x646f7261,
      k[0] ^ 0x6e657261, k[1] ^ 0x6c796765, k[2] ^ 0x79746573, k[3] ^ 0x74656462);
    this.v = new Int32Array(8); // four words, low half first
  }

  hash() {
    const view = text.view, length = text.length, v = this.v;
    v.set(this.start);
    let at = 0;
    for (; at + 8 <= length; at += 8) {
      compress(v, view.getInt32(at + 4, true), view.getInt32(at, true));
    }
    let low = 0, high = length << 24;
    for (let i = 0; at + i < length; i++) {
      const byte = view.getUint8(at + i);
      if (i < 4) {
        low |= byte << (8 * i);
      } else {
        high |= byte << (8 * (i - 4));
      }
    }
    compress(v, high, low);
    v[4] ^= 0xff;
    for (let i = 0; i < 4; i++) {
      sipRound(v);
    }
    out[0] = v[0] ^ v[2] ^ v[4] ^ v[6];
    out[1] = v[1] ^ v[3] ^ v[5] ^ v[7];
  }
}

function compress(v, high, low) {
  v[6] ^= low;
  v[7] ^= high;
  sipRound(v);
  sipRound(v);
  v[0] ^= low;
  v[1] ^= high;
}

function sipRound(v) {
  let low0 = v[0], high0 = v[1], low1 = v[2], high1 = v[3], low2 = v[4], high2 = v[5], low3 = v[6], high3 = v[7], t = 0;
  low0 = (low0 + low1) | 0;
  high0 = (high0 + high1 + ((low0 >>> 0) < (low1 >>> 0) ? 1 : 0)) | 0;
  low2 = (low2 + low3) | 0;
  high2 = (high2 + high3 + ((low2 >>> 0) < (low3 >>> 0) ? 1 : 0)) | 0;
  t = (low1 << 13) | (high1 >>> 19);
  high1 = ((high1 << 13) | (low1 >>> 19)) ^ high0;
  low1 = t ^ low0;
  t = (low3 << 16) | (high3 >>> 16);
  high3 = ((high3 << 16) | (low3 >>> 16)) ^ high2;
  low3 = t ^ low2;
  t = low0; // rotated by 32
  low0 = high0;
  high0 = t;
  low2 = (low2 + low1) | 0;
  high2 = (high2 + high1 + ((low2 >>> 0) < (low1 >>> 0) ? 1 : 0)) | 0;
  low0 = (low0 + low3) | 0;
  high0 = (high0 + high3 + ((low0 >>> 0) < (low3 >>> 0) ? 1 : 0)) | 0;
  t = (low1 << 17) | (high1 >>> 15);
  high1 = ((high1 << 17) | (low1 >>> 15)) ^ high2;
  low1 = t ^ low2;
  t = (low3 << 21) | (high3 >>> 11);
  high3 = ((high3 << 21) | (low3 >>> 11)) ^ high0;
  low3 = t ^ low0;
  v[0] = low0;
  v[1] = high0;
  v[2] = low1;
  v[3] = high1;
  v[4] = high2; // rotated by 32
  v[5] = low2;
  v[6] = low3;
  v[7] = high3;
}

// hashOf hashes a key by a hasher, as a BigInt.
export function hashOf(hasher, key) {
  load(key);
  hasher.hash();
  return toBigInt();
}

let recent = new XXH3(0n);

// xxh3 returns XXH3-64 of a key, a string or bytes, with a seed.
export function xxh3(key, seed = 0n) {
  seed = BigInt.asUintN(64, BigInt(seed));
  if (recent.seed !== seed) {
    recent = new XXH3(seed);
  }
  return hashOf(recent, key);
}

// xxh64 returns XXH64 of a key with a seed.
export const xxh64 = (key, seed = 0n) => hashOf(new XXH64(BigInt.asUintN(64, BigInt(seed))), key);

// murmur64a returns MurmurHash64A of a key with a seed.
export const murmur64a = (key, seed = 0n) => hashOf(new Murmur64A(BigInt.asUintN(64, BigInt(seed))), key);

// sipHash returns SipHash-2-4 of a key under a secret of 16 bytes.
export const sipHash = (key, secret) => hashOf(new SipHash(secret), key);
