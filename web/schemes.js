// How other programs turn a key into positions: the schemes of a Classic, by the numbers
// that files store. Each is a function of the key's bytes, m bits, k and a seed, which
// returns the positions in the program's own order, as an iterable; they may repeat. internal/scheme has
// the same in Go, and says where each comes from.

import { md5, murmur3, murmur64A, sha256 } from './digests.js';
import { xxh64 } from './hash.js';

const low64 = (x) => BigInt.asUintN(64, x);

// upTo yields k positions, each when it is asked for: a lookup ends at the first clear bit.
function* upTo(k, position) {
  for (let i = 0; i < k; i++) {
    yield Number(position(i));
  }
}

// From UTF-8 to what Java, JavaScript and Python see. Half of a surrogate pair, which
// their strings can hold, comes from its three bytes ED A0..BF xx; any other byte that is
// not UTF-8 is U+FFFD.

function isSurrogate(key, at) {
  return at + 3 <= key.length && key[at] === 0xed && (key[at + 1] & 0xe0) === 0xa0 && (key[at + 2] & 0xc0) === 0x80;
}

// runeAt returns the code point at a byte, and the number of its bytes: 0xfffd and 1 if
// there is none.
function runeAt(key, at) {
  const first = key[at], continues = (i, low = 0x80, high = 0xbf) => key[at + i] >= low && key[at + i] <= high;
  const rest = (i) => key[at + i] & 0x3f;
  if (first < 0x80) {
    return [first, 1];
  }
  if (first >= 0xc2 && first <= 0xdf && continues(1)) {
    return [((first & 0x1f) << 6) | rest(1), 2];
  }
  if ((first & 0xf0) === 0xe0 && continues(1, first === 0xe0 ? 0xa0 : 0x80, first === 0xed ? 0x9f : 0xbf) && continues(2)) {
    return [((first & 0xf) << 12) | (rest(1) << 6) | rest(2), 3];
  }
  if (first >= 0xf0 && first <= 0xf4 && continues(1, first === 0xf0 ? 0x90 : 0x80, first === 0xf4 ? 0x8f : 0xbf) &&
      continues(2) && continues(3)) {
    return [((first & 7) << 18) | (rest(1) << 12) | (rest(2) << 6) | rest(3), 4];
  }
  if (isSurrogate(key, at)) {
    return [0xd000 | ((key[at + 1] & 0x3f) << 6) | (key[at + 2] & 0x3f), 3];
  }
  return [0xfffd, 1];
}

function* runes(key) {
  for (let at = 0; at < key.length;) {
    const [rune, size] = runeAt(key, at);
    yield rune;
    at += size;
  }
}

// units returns the UTF-16 units.
function units(key) {
  const found = [];
  for (const rune of runes(key)) {
    if (rune >= 0x10000) {
      found.push(0xd800 + ((rune - 0x10000) >> 10), 0xdc00 + ((rune - 0x10000) & 0x3ff));
    } else {
      found.push(rune);
    }
  }
  return found;
}

const encoder = new TextEncoder();
const digits = (i) => encoder.encode(String(i));

function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const bigEndian = (digest) => digest.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
const littleEndian = (digest) => bigEndian(digest.slice().reverse());

const md5IndexKey = (key, m, k) => upTo(k, (i) => bigEndian(md5(joined(digits(i), key))) % m);
const md5KeyIndex = (key, m, k) => upTo(k, (i) => bigEndian(md5(joined(key, digits(i + 1)))) % m);
const sha256MD5 = (key, m) => [sha256, md5].map((digest) => Number(littleEndian(digest(key)) % m));

// murmurFNVJS: a page's FNV in floating point, then its MurmurHash2 over UTF-16 units.
function murmurFNVJS(key, m) {
  const text = units(key);
  let fnv = 2166136261;
  for (const unit of text) {
    for (const byte of unit > 0xff ? [unit >> 8, unit & 0xff] : [unit]) {
      fnv = (fnv * 16777619) ^ byte;
    }
  }
  return [Number(BigInt(Math.abs(fnv)) % m), Number(BigInt(murmur2(text)) % m)];
}

function murmur2(text) {
  const mul = 0x5bd1e995;
  let h = text.length, at = 0;
  for (; at + 4 <= text.length; at += 4) {
    let k = (text[at] + (text[at + 1] << 8) + (text[at + 2] << 16) + (text[at + 3] << 24)) | 0;
    k = Math.imul(k, mul);
    k ^= k >>> 24;
    h = Math.imul(h, mul) ^ Math.imul(k, mul);
  }
  const left = text.length - at;
  if (left === 3) {
    h ^= text[at + 2] << 16;
  }
  if (left >= 2) {
    h ^= text[at] + (text[at + 1] << 8);
    h = Math.imul(h, mul);
  } else if (left === 1) {
    h = Math.imul(h ^ text[at], mul);
  }
  h = Math.imul(h ^ (h >>> 13), mul);
  return (h ^ (h >>> 15)) >>> 0;
}

const javaSeeds = [3, 5, 7, 11, 13, 31, 37, 61];

function javaBitSet(key, m, k) {
  const text = units(key);
  return upTo(k, (i) => (m - 1n) & BigInt(text.reduce((h, unit) => (Math.imul(javaSeeds[i], h) + unit) | 0, 0) >>> 0));
}

function guava32(key, m, k) {
  const [h] = murmur3(key);
  let a = Number(BigInt.asIntN(32, h));
  const b = Number(BigInt.asIntN(32, h >> 32n));
  return upTo(k, () => {
    a = (a + b) | 0;
    return BigInt(a < 0 ? ~a : a) % m;
  });
}

function guava64(key, m, k) {
  const [h1, h2] = murmur3(key);
  return upTo(k, (i) => BigInt.asUintN(63, low64(h1 + BigInt(i) * h2)) % m);
}

function redisBloom(key, m, k) {
  const first = murmur64A(key, 0xc6a4a7935bd1e995n), second = murmur64A(key, first);
  return upTo(k, (i) => low64(first + BigInt(i) * second) % m);
}

function bitsAndBlooms(key, m, k) {
  const h = [...murmur3(key), ...murmur3(joined(key, [1]))];
  return upTo(k, (i) => low64(h[i % 2] + BigInt(i) * h[2 + Math.floor(((i + (i % 2)) % 4) / 2)]) % m);
}

function dcso(key, m, k) {
  const modulus = 18446744073709551557n, multiplier = 18446744073709550147n;
  let h = 0xcbf29ce484222325n;
  for (const byte of key) {
    h = low64(h * 0x100000001b3n) ^ BigInt(byte);
  }
  h %= modulus;
  return upTo(k, () => {
    h = low64(h * multiplier) % modulus;
    return h % m;
  });
}

function fnvFinished(text, seed) {
  let h = 0x811c9dc5 ^ seed;
  for (const unit of text) {
    if (unit > 0xff) {
      h = Math.imul(h ^ (unit >> 8), 16777619);
    }
    h = Math.imul(h ^ (unit & 0xff), 16777619);
  }
  h = (h + (h << 13)) | 0;
  h ^= h >>> 7;
  h = (h + (h << 3)) | 0;
  h ^= h >>> 17;
  return (h + (h << 5)) | 0;
}

function bloomFilterJS32(key, m, k) {
  const text = units(key), size = Number(m);
  let x = fnvFinished(text, 0) % size;
  const step = fnvFinished(text, 1576284489);
  return upTo(k, () => {
    const position = x < 0 ? x + size : x;
    x = (x + step) % size;
    return position;
  });
}

function bloomFilterJS64(key, m, k) {
  let h = 0xcbf29ce484222325n;
  for (const unit of units(key)) {
    h = low64((h ^ BigInt(unit)) * 0x100000001b3n);
  }
  const size = Number(m);
  const signedMod = (x) => ((Number(BigInt.asIntN(32, x)) % size) + size) % size;
  let a = signedMod(h >> 32n), b = signedMod(h);
  return upTo(k, (i) => {
    const position = a;
    a = (a + b) % size;
    b = (b + i + 1) % size;
    return position;
  });
}

// npmBytes is UTF-8 as the package encodes it: any surrogate swallows the unit after it.
// Bytes that are not text are unchanged.
function npmBytes(key) {
  let surrogates = false;
  for (let at = 0; at < key.length;) {
    const [rune, size] = runeAt(key, at);
    if (size === 1 && rune === 0xfffd) {
      return key;
    }
    surrogates ||= rune >= 0xd800 && rune <= 0xdfff;
    at += size;
  }
  if (!surrogates) {
    return key;
  }
  const text = units(key);
  let encoded = '';
  for (let i = 0; i < text.length; i++) {
    let rune = text[i];
    if ((rune & 0xf800) === 0xd800) {
      rune = 0x10000 + (((rune & 0x3ff) << 10) | ((text[++i] ?? 0) & 0x3ff));
    }
    encoded += String.fromCodePoint(rune);
  }
  return encoder.encode(encoded);
}

function npmBloomFilters(key, m, k, seed) {
  key = npmBytes(key);
  const hash = (plus) => BigInt.asUintN(32, xxh64(key, BigInt.asUintN(32, seed + plus)));
  const first = hash(1n), second = hash(2n);
  return upTo(k, (i) => {
    const n = BigInt(i);
    return low64(first + n * second + (n * n * n - n) / 6n) % m;
  });
}

function redisSetBit(key, m, k) {
  const at = new BigUint64Array(k);
  for (const rune of runes(key)) {
    for (let i = 0; i < k; i++) {
      at[i] = at[i] * BigInt(i + 1) + BigInt(rune);
    }
  }
  return upTo(k, (i) => at[i] & (m - 1n));
}

const javaLongs = { unit: 64, mostBits: (2 ** 31 - 1) * 64 };

// The schemes by number. unit: m is a multiple of it. Scheme 1, Bloomery's own, begins
// with a hash: classicPositions in layout.js.
export const schemes = {
  1: { name: 'bloomery' },
  2: { name: 'md5-index-key', positions: md5IndexKey },
  3: { name: 'sha256-md5', positions: sha256MD5, minK: 2, maxK: 2 },
  4: { name: 'md5-key-index', positions: md5KeyIndex },
  5: { name: 'murmur2-fnv-js', positions: murmurFNVJS, minK: 2, maxK: 2 },
  6: { name: 'java-bitset', positions: javaBitSet, maxK: 8, powerOfTwo: true, mostBits: 2 ** 30 },
  7: { name: 'guava-mitz-32', positions: guava32, ...javaLongs },
  8: { name: 'guava-mitz-64', positions: guava64, ...javaLongs },
  9: { name: 'redisbloom', positions: redisBloom, unit: 64 },
  10: { name: 'bits-and-blooms', positions: bitsAndBlooms },
  11: { name: 'dcso', positions: dcso },
  12: { name: 'bloomfilter.js-32', positions: bloomFilterJS32, unit: 32, mostBits: 2 ** 31 },
  13: { name: 'bloomfilter.js-64', positions: bloomFilterJS64, unit: 32, mostBits: 2 ** 31 },
  14: { name: 'npm-bloom-filters', positions: npmBloomFilters, mostBits: 2 ** 32, seeded: true },
  15: { name: 'redis-setbit', positions: redisSetBit, powerOfTwo: true, mostBits: 2 ** 32 },
};

// refusal returns what is wrong with m and k for a scheme, or null.
export function refusal(scheme, m, k) {
  const { unit = 1, minK = 1, maxK = 255, mostBits = 2 ** 45, powerOfTwo = false } = scheme;
  if (m > mostBits || m % unit !== 0 || (powerOfTwo && 2 ** Math.round(Math.log2(m)) !== m)) {
    return `${m} bits`;
  }
  return k < minK || k > maxK ? `k ${k}` : null;
}
