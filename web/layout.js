// The layouts: from a key's hash to the bits that it sets. A layer is a section of a
// file with such bits. The positions functions say the same for people and pictures, with
// every step of the way, straight from docs/format.md.

import { text } from './hash.js';
import { mul, mulFold, mulHigh, mulTop, out } from './words.js';

const mixA = 0xd1342543de82ef95n, mixB = 0x9fb21c651e98df25n;
const mixAHigh = 0xd1342543 | 0, mixALow = 0xde82ef95 | 0;
const mixBHigh = 0x9fb21c65 | 0, mixBLow = 0x1e98df25;

const low64 = (x) => BigInt.asUintN(64, x);

// lanesFor is the table of rows for K bits per line, 1 to 8: the lanes that take part
// in row r are at r*K to r*K+K-1, in ascending order.
const lanesFor = (() => {
  const made = [];
  const turned = (set, by) => ((set << by) | (set >> (8 - by))) & 255;
  return (perLine) => {
    if (made[perLine] !== undefined) {
      return made[perLine];
    }
    const families = [];
    const seen = new Set();
    for (let lanes = 0; lanes < 256; lanes++) {
      if (lanes.toString(2).replaceAll('0', '').length !== perLine || seen.has(lanes)) {
        continue;
      }
      const family = [];
      for (let set = lanes; !seen.has(set); set = turned(set, 1)) {
        seen.add(set);
        family.push(set);
      }
      families.push(family);
    }
    families.sort((a, b) => a.length - b.length); // stable: then by the smallest set
    const sets = families.flat();
    const table = new Uint8Array(256 * perLine);
    for (let r = 0, at = 0; r < 256; r++) {
      for (let lane = 0; lane < 8; lane++) {
        if ((sets[r % sets.length] >> lane) & 1) {
          table[at++] = lane;
        }
      }
    }
    made[perLine] = table;
    return table;
  };
})();

// rowOf returns rows[r] for K bits per line, as docs/format.md defines it.
export function rowOf(perLine, r) {
  let row = 0x4040404040404040n;
  for (const lane of lanesFor(perLine).subarray(r * perLine, (r + 1) * perLine)) {
    row ^= 0x40n << BigInt(8 * lane);
  }
  return row;
}

// pairedPositions returns the bits of a hash in paired lines, B blocks and k bits per key:
// its block, its two lines, what they are computed from, and the bits: line, lane and bit
// of a lane, and position, the number of the bit in the section.
export function pairedPositions(hash, blocks, k) {
  const h = low64(BigInt(hash)), perLine = k / 2;
  if (![1, 2, 3, 4, 5, 6, 7, 8].includes(perLine)) {
    throw new RangeError('k of paired lines is even, 2 to 16');
  }
  const block = Number((h * BigInt(blocks)) >> 64n);
  const p = low64(h * mixA), q = (h * mixA) >> 64n;
  const g = p ^ q;
  const x = low64(g * mixB) ^ ((g * mixB) >> 64n);
  const s = Number(p & 0xffffffffn);
  const a = (s >>> 24) & 7;
  const b = a ^ (1 + Math.floor(((s & 0xffffff) * 7) / 0x1000000));
  const rows = [s & 255, (s >>> 8) & 255];
  const bits = [];
  [[a, g], [b, x]].forEach(([line, word], i) => {
    const lanes = lanesFor(perLine).subarray(rows[i] * perLine, (rows[i] + 1) * perLine);
    for (const lane of lanes) {
      const bit = Number((word >> BigInt(8 * lane)) & 63n);
      bits.push({ line, lane, bit, position: block * 4096 + line * 512 + lane * 64 + bit });
    }
  });
  return { block, lines: [a, b], rows, p, q, g, x, s, bits };
}

const salts = Int32Array.of(
  0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31);

// splitPositions returns the bits of a hash in split blocks: its block, and the bits:
// lane, bit of the lane, and position in the section.
export function splitPositions(hash, blocks) {
  const h = low64(BigInt(hash));
  const block = Number(((h >> 32n) * BigInt(blocks)) >> 32n), low = Number(h & 0xffffffffn);
  const bits = Array.from(salts, (salt, lane) => {
    const bit = Math.imul(low, salt) >>> 27;
    return { lane, bit, position: block * 256 + lane * 32 + bit };
  });
  return { block, bits };
}

// classicPositions returns the bits of a hash in a Classic of Bloomery's own scheme with
// m bits, and the step between them. Positions may repeat.
export function classicPositions(hash, m, k) {
  const h = low64(BigInt(hash));
  const turned = low64(h * mixA);
  const step = low64((turned << 32n) | (turned >> 32n)) | 1n;
  const bits = [];
  for (let i = 0n; i < BigInt(k); i++) {
    const x = low64(h + i * step);
    const y = low64((x ^ (x >> 32n)) * mixB);
    bits.push({ position: Number(((y ^ (y >> 29n)) * BigInt(m)) >> 64n) });
  }
  return { step, bits };
}

const isSet = (bytes, at, position) => (bytes[at + Math.floor(position / 8)] >>> (position % 8)) & 1;

// A layer of paired lines. The hash that its methods take is the one in out. offset and
// length are those of its section; blockBytes is what a lookup needs of it.
export class PairedLayer {
  constructor(section) {
    Object.assign(this, section);
    this.blockBytes = 512;
    this.lineBytes = 64;
    this.m = section.blocks * 4096;
    this.perLine = section.k / 2;
    this.lanes = lanesFor(this.perLine);
    this.blocksHigh = Math.floor(section.blocks / 0x100000000);
    this.blocksLow = section.blocks | 0;
  }

  // block is the number of the hash's block.
  block() {
    return mulTop(out[1], out[0], this.blocksHigh, this.blocksLow);
  }

  // has looks in the whole file.
  has(file) {
    return this.test(file, this.offset + this.block() * this.blockBytes);
  }

  // test looks in a block, which begins at a byte.
  test(bytes, at) {
    const s = Math.imul(out[0], mixALow);
    mulFold(out[1], out[0], mixAHigh, mixALow);
    const low = out[0], high = out[1];
    const a = (s >>> 24) & 7;
    if (!this.line(bytes, at + a * this.lineBytes, low, high, s & 255)) {
      return false;
    }
    mulFold(high, low, mixBHigh, mixBLow);
    const b = a ^ (1 + ((Math.imul(s & 0xffffff, 7) >>> 24)));
    return this.line(bytes, at + b * this.lineBytes, out[0], out[1], (s >>> 8) & 255);
  }

  line(bytes, at, low, high, row) {
    const lanes = this.lanes, perLine = this.perLine;
    for (let i = row * perLine, end = i + perLine; i < end; i++) {
      const lane = lanes[i];
      const count = ((lane & 4 ? high : low) >>> ((lane & 3) << 3)) & 63;
      if (((bytes[at + lane * 8 + (count >>> 3)] >>> (count & 7)) & 1) === 0) {
        return false;
      }
    }
    return true;
  }

  positions(hash) {
    return pairedPositions(hash, this.blocks, this.k);
  }

  // placeOf is the byte of the file where a bit's block begins.
  placeOf(positions) {
    return this.offset + positions.block * this.blockBytes;
  }

  read(bytes, at, bit) {
    const within = bit.position % 4096;
    return { byte: this.offset + Math.floor(bit.position / 8), mask: 1 << (within % 8), set: isSet(bytes, at, within) === 1 };
  }
}

// A layer of four-bit counters in paired lines.
export class CountingLayer extends PairedLayer {
  constructor(section) {
    super(section);
    this.blockBytes = 2048; // four words stand for each word of bits
    this.lineBytes = 256;
  }

  line(bytes, at, low, high, row) {
    const lanes = this.lanes, perLine = this.perLine;
    for (let i = row * perLine, end = i + perLine; i < end; i++) {
      const lane = lanes[i];
      const count = ((lane & 4 ? high : low) >>> ((lane & 3) << 3)) & 63;
      const byte = at + lane * 32 + (count >>> 3);
      const any = bytes[byte] | bytes[byte + 8] | bytes[byte + 16] | bytes[byte + 24];
      if (((any >>> (count & 7)) & 1) === 0) {
        return false;
      }
    }
    return true;
  }

  read(bytes, at, bit) {
    const word = bit.position % 4096 >>> 6, byte = word * 32 + (bit.bit >>> 3);
    let count = 0;
    for (let digit = 0; digit < 4; digit++) {
      count |= ((bytes[at + byte + digit * 8] >>> (bit.bit & 7)) & 1) << digit;
    }
    const block = Math.floor(bit.position / 4096);
    return { byte: this.offset + block * 2048 + byte, mask: 1 << (bit.bit & 7), set: count > 0, count };
  }
}

// A layer of split blocks.
export class SplitLayer {
  constructor(section) {
    Object.assign(this, section);
    this.blockBytes = 32;
    this.m = section.blocks * 256;
  }

  block() {
    return mulHigh(out[1], this.blocks) >>> 0;
  }

  has(file) {
    return this.test(file, this.offset + this.block() * 32);
  }

  test(bytes, at) {
    const low = out[0];
    for (let lane = 0; lane < 8; lane++) {
      const bit = Math.imul(low, salts[lane]) >>> 27;
      if (((bytes[at + lane * 4 + (bit >>> 3)] >>> (bit & 7)) & 1) === 0) {
        return false;
      }
    }
    return true;
  }

  positions(hash) {
    return splitPositions(hash, this.blocks);
  }

  placeOf(positions) {
    return this.offset + positions.block * this.blockBytes;
  }

  read(bytes, at, bit) {
    const within = bit.position % 256;
    return { byte: this.offset + Math.floor(bit.position / 8), mask: 1 << (within % 8), set: isSet(bytes, at, within) === 1 };
  }
}

// A layer of bits that may lie anywhere: Bloomery's own scheme for a Classic.
export class ClassicLayer {
  constructor(section) {
    Object.assign(this, section);
    this.blockBytes = 0; // a lookup needs a byte here and there
    this.m = section.blocks;
    this.mHigh = Math.floor(section.blocks / 0x100000000);
    this.mLow = section.blocks | 0;
  }

  has(file) {
    let low = out[0], high = out[1];
    mul(high, low, mixAHigh, mixALow);
    const stepLow = out[1] | 1, stepHigh = out[0];
    for (let i = 0; i < this.k; i++) {
      mul(high, low ^ high, mixBHigh, mixBLow);
      const y = out[1], yLow = out[0] ^ ((out[0] >>> 29) | (y << 3)), yHigh = y ^ (y >>> 29);
      const position = mulTop(yHigh, yLow, this.mHigh, this.mLow);
      if (!isSet(file, this.offset, position)) {
        return false;
      }
      low = (low + stepLow) | 0;
      high = (high + stepHigh + ((low >>> 0) < (stepLow >>> 0) ? 1 : 0)) | 0;
    }
    return true;
  }

  positions(hash) {
    return classicPositions(hash, this.m, this.k);
  }

  // placeOf is the byte of the file that a bit is in.
  placeOf(_, bit) {
    return this.offset + Math.floor(bit.position / 8);
  }

  read(bytes, at, bit) {
    const mask = 1 << (bit.position % 8);
    return { byte: this.placeOf(null, bit), mask, set: (bytes[at] & mask) !== 0 };
  }
}

// A layer of another program's scheme, which begins with the loaded key, not a hash.
export class SchemeLayer extends ClassicLayer {
  constructor(section, scheme, seed) {
    super(section);
    this.scheme = scheme;
    this.seed = seed;
  }

  has(file) {
    for (const position of this.each()) {
      if (!isSet(file, this.offset, position)) {
        return false;
      }
    }
    return true;
  }

  positions() {
    return { bits: Array.from(this.each(), (position) => ({ position })) };
  }

  // each yields the positions of the loaded key.
  each() {
    const key = text.bytes.slice(0, text.length); // a scheme may load others
    return this.scheme.positions(key, BigInt(this.m), this.k, this.seed);
  }
}

// cuckooPlace returns a hash's fingerprint and its two buckets of B, which may be the same.
export function cuckooPlace(hash, blocks) {
  const h = low64(BigInt(hash)), fingerprint = h % 255n + 1n;
  const one = h % BigInt(blocks), other = (h ^ (fingerprint * 0x5bd1e995n)) % BigInt(blocks);
  return { fingerprint: Number(fingerprint), buckets: [Number(one), Number(other)] };
}

// A layer of buckets with a fingerprint of a byte in each slot. B is a power of two.
export class CuckooLayer {
  constructor(section) {
    Object.assign(this, section);
    this.blockBytes = section.k;
    this.slots = section.blocks * section.k;
    this.m = this.slots * 8;
    this.maskHigh = Math.floor((section.blocks - 1) / 0x100000000);
    this.maskLow = (section.blocks - 1) | 0;
  }

  // fingerprint is that of the hash: 2^32 is 1 mod 255.
  fingerprint() {
    return ((out[0] >>> 0) + (out[1] >>> 0)) % 255 + 1;
  }

  // one is the number of the hash's first bucket.
  one() {
    return ((out[0] & this.maskLow) >>> 0) + (out[1] & this.maskHigh) * 0x100000000;
  }

  // other is that of its second.
  other(fingerprint) {
    const apart = fingerprint * 0x5bd1e995;
    const low = out[0] ^ (apart | 0), high = out[1] ^ Math.floor(apart / 0x100000000);
    return ((low & this.maskLow) >>> 0) + (high & this.maskHigh) * 0x100000000;
  }

  has(file) {
    const fingerprint = this.fingerprint();
    return this.within(file, this.offset + this.one() * this.k, fingerprint) ||
      this.within(file, this.offset + this.other(fingerprint) * this.k, fingerprint);
  }

  // within looks for a fingerprint in the bucket that begins at a byte.
  within(bytes, at, fingerprint) {
    for (let slot = 0; slot < this.k; slot++) {
      if (bytes[at + slot] === fingerprint) {
        return true;
      }
    }
    return false;
  }

  // positions has the slots of both buckets as its bits.
  positions(hash) {
    const place = cuckooPlace(hash, this.blocks), bits = [];
    for (const bucket of new Set(place.buckets)) {
      for (let slot = 0; slot < this.k; slot++) {
        bits.push({ bucket, slot, position: bucket * this.k + slot, fingerprint: place.fingerprint });
      }
    }
    return { ...place, bits };
  }

  placeOf(_, bit) {
    return this.offset + bit.bucket * this.k;
  }

  read(bytes, at, bit) {
    const value = bytes[at + bit.slot];
    return { byte: this.offset + bit.position, mask: 255, value, set: value === bit.fingerprint };
  }
}
