// The kinds of filter: what a file's head and sections must be for each, and lookups in
// a file that is in memory. range.js looks up in files that are not.

import { checkBody, compareBytes, decodeHead, fits, FormatError, maxListed, maxListedBytes, mustBeWhole } from './format.js';
import { bytesOf, load, Murmur64A, SipHash, sipHash, XXH3, XXH64 } from './hash.js';
import { ClassicLayer, CountingLayer, CuckooLayer, PairedLayer, SchemeLayer, SplitLayer } from './layout.js';
import { normalizer } from './normalize.js';
import { paired as pairedRate } from './rate.js';
import { refusal, schemes } from './schemes.js';
import { out, toBigInt } from './words.js';

// SecretError: a keyed filter, and no secret or a wrong one.
export class SecretError extends Error {
  constructor(message) {
    super(message);
    this.name = 'SecretError';
  }
}

const hashNames = ['scheme', 'xxh3', 'siphash', 'xxh64', 'murmur64a'];

// What filters in memory and elsewhere have in common: all that the head says.
export class Head {
  constructor(head, options = {}) {
    const { header, state } = head;
    this.kind = header.kind;
    this.n = header.n;
    this.p = header.p;
    this.added = Number(state.added);
    this.metadata = header.metadata;
    this.fileBytes = state.fileBytes;
    this.hash = { name: hashNames[header.algorithm], key: header.hashKey };
    this.scheme = header.kind === 'classic' ? schemeOf(header).name : '';
    this.layers = layersOf(header, state);
    this.bits = this.layers.reduce((sum, layer) => sum + layer.m, 0);
    this.k = this.layers[this.layers.length - 1].k;
    this.hasher = null;
    if (header.kind === 'window') {
      this.window = new Clock(header, this.layers, options.now ?? Date.now);
    }
    if (header.algorithm === 1) {
      this.hasher = new XXH3(header.hashKey);
    } else if (header.algorithm === 3 && header.scheme !== 14) {
      this.hasher = new XXH64(header.hashKey);
    } else if (header.algorithm === 4) {
      this.hasher = new Murmur64A(header.hashKey);
    }
    if (options.secret !== undefined) {
      this.setSecret(options.secret);
    }
  }

  // needsSecret: the filter is keyed, and lookups throw until setSecret.
  get needsSecret() {
    return this.hash.name === 'siphash' && this.hasher === null;
  }

  // setSecret gives a keyed filter its secret, 16 bytes.
  setSecret(secret) {
    if (this.hash.name !== 'siphash') {
      throw new SecretError('the filter was made without a secret');
    }
    const hasher = new SipHash(secret);
    const fingerprint = sipHash('bloomery: fingerprint of a secret', secret);
    if (fingerprint !== this.hash.key) {
      throw new SecretError('the filter was made with another secret');
    }
    this.hasher = hasher;
  }

  // normalizer names the normal forms that the keys were converted to before they were
  // added, such as "trim,url"; '' for none.
  get normalizer() {
    return this.metadata.normalize ?? '';
  }

  // normalized returns a key in that form, as bytes.
  normalized(key) {
    return normalizer(this.normalizer)(bytesOf(key));
  }

  // hashKey loads and hashes a key.
  hashKey(key) {
    load(key);
    if (this.hasher !== null) {
      this.hasher.hash();
    } else if (this.needsSecret) {
      throw new SecretError('the filter is keyed: give its secret');
    }
  }

  // live returns the layers that count now, newest first.
  live() {
    return this.window === undefined ? this.searched() : this.window.live();
  }

  searched() {
    this.newestFirst ??= [...this.layers].reverse();
    return this.newestFirst;
  }
}

function schemeOf(header) {
  if (header.scheme === 0) {
    const name = header.metadata.scheme;
    throw new FormatError(name === undefined ? 'it does not name its scheme'
      : `the file is of the scheme "${name}", which this reader does not know`, name === undefined ? 'format' : 'version');
  }
  const scheme = schemes[header.scheme];
  if (scheme === undefined) {
    throw new FormatError(`scheme ${header.scheme} is unknown`, 'version');
  }
  return scheme;
}

function layersOf(header, state) {
  const { sections } = state;
  switch (header.kind) {
    case 'splitblock':
      return [new SplitLayer(sections[0])];
    case 'counting':
      return [new CountingLayer(sections[0])];
    case 'classic':
      return [classicLayer(header, sections[0])];
    case 'scalable':
      checkScalable(header, sections);
      break;
    case 'scalablecounting':
      checkScalable(header, sections);
      checkLayers(header, sections);
      return sections.map((section) => new CountingLayer(section));
    case 'window':
      checkWindow(header, sections);
      break;
    case 'exceptions':
      return [new PairedLayer(sections[0])];
    case 'cuckoo':
      checkCuckoo(header, sections);
      return sections.map((section) => new CuckooLayer(section));
  }
  return sections.map((section) => new PairedLayer(section));
}

function classicLayer(header, section) {
  const scheme = schemeOf(header), wrong = refusal(scheme, section.blocks, section.k);
  if (wrong !== null) {
    throw new FormatError(`the scheme ${scheme.name} with ${wrong}`);
  }
  const { algorithm } = header;
  const own = scheme.positions === undefined;
  const fit = own ? algorithm === 1 || algorithm === 2
    : scheme.seeded ? algorithm === 3 : algorithm === 0 && header.hashKey === 0n;
  if (!fit) {
    throw new FormatError(`the scheme ${scheme.name} with hash ${algorithm}`);
  }
  return own ? new ClassicLayer(section) : new SchemeLayer(section, scheme, header.hashKey);
}

function checkScalable(header, sections) {
  const [growth, limit] = header.parameters;
  if (growth < 2n || growth > 16n || !(header.p > 0 && header.p < 1)) {
    throw new FormatError(`growth ${growth} at rate ${header.p}`);
  }
  const bytes = sections.reduce((sum, section) => sum + section.length, 0);
  if (limit !== 0n && BigInt(bytes) > limit) {
    throw new FormatError(`layers of ${bytes} bytes under a limit of ${limit}`);
  }
}

// checkRate: n keys in B blocks have the section's rate.
function checkRate(section, i) {
  const rate = pairedRate(section.n, section.blocks, section.k);
  if (Math.abs(rate - section.p) > 1e-6 * section.p) {
    throw new FormatError(`layer ${i} has a rate of ${section.p}, where its keys and bits give ${rate}`);
  }
}

function checkLayers(header, sections) {
  sections.forEach(checkRate);
  const older = sections.slice(0, -1), rate = older.reduce((sum, section) => sum + section.p, sections[older.length].p);
  if (rate > header.p) {
    throw new FormatError(`layers of rate ${rate} in a filter of rate ${header.p}`);
  }
}

const maxSpan = 2n ** 61n, maxTime = 2n ** 62n; // nanoseconds: 73 and 146 years

const stepOf = ([generations, span]) => (span + generations - 1n) / generations;

function checkWindow(header, sections) {
  const [generations, span] = header.parameters, first = sections[0];
  if (generations < 1n || generations > 60n) {
    throw new FormatError(`a window of ${generations} generations; 1 to 60 are possible`);
  }
  if (span < generations || span > maxSpan || !(header.p > 0 && header.p < 1)) {
    throw new FormatError(`a window of ${span} nanoseconds at rate ${header.p}`);
  }
  let count = 0n;
  sections.forEach((section, i) => {
    checkRate(section, i);
    if (section.start < -maxTime || section.start > maxTime) {
      throw new FormatError(`layer ${i} begins at ${section.start}, before or after all time`);
    }
    if (i > 0 && section.start === sections[i - 1].start) {
      return;
    }
    if (i > 0 && section.start - sections[i - 1].start < stepOf(header.parameters)) {
      throw new FormatError(`the generation of layer ${i} begins less than a step after the one before`);
    }
    if (section.blocks !== first.blocks || section.k !== first.k) {
      throw new FormatError(`layer ${i} is not like the first ones of other generations`);
    }
    count++;
  });
  if (count > generations + 1n) {
    throw new FormatError(`${count} generations of ${generations}`);
  }
}

const maxCuckooLayers = 32;

function checkCuckoo(header, sections) {
  const [shape, limit] = header.parameters, { k } = sections[0];
  const iterations = shape & 0xffffffffn, growth = Number(shape >> 32n);
  if (iterations < 1n || iterations > 0xffffn || growth > 1 << 15 || (growth & (growth - 1)) !== 0) {
    throw new FormatError(`a cuckoo filter with parameters ${shape}`);
  }
  if (sections.length > maxCuckooLayers || (sections.length > 1 && growth === 0)) {
    throw new FormatError(`a cuckoo filter with ${sections.length} layers`);
  }
  let blocks = 1, slots = 0;
  while (blocks < (header.n - header.n % k) / k) {
    blocks *= 2;
  }
  sections.forEach((section, i) => {
    if (section.k !== k || section.blocks !== blocks || section.n !== blocks * k || section.pBits !== 0n) {
      throw new FormatError(`layer ${i} of a cuckoo filter has ${section.blocks} buckets of ${section.k}, not ${blocks} of ${k}`);
    }
    slots += blocks * k;
    blocks *= growth;
  });
  if (limit !== 0n && BigInt(slots) > limit) {
    throw new FormatError(`layers of ${slots} bytes under a limit of ${limit}`);
  }
}

// A Clock knows which layers of a window count at a time: when the newest generation of
// the file ends, empty ones follow it, and the oldest are forgotten.
class Clock {
  constructor(header, layers, now) {
    this.generations = header.parameters[0];
    this.span = header.parameters[1]; // nanoseconds
    this.step = stepOf(header.parameters);
    this.layers = [...layers].reverse();
    this.now = now;
    this.turn = -Infinity; // when a lookup must compute again, in milliseconds
    this.counted = this.layers;
  }

  live() {
    const now = this.now();
    if (now >= this.turn || now < this.since) {
      this.compute(now);
    }
    return this.counted;
  }

  compute(now) {
    const at = BigInt(Math.floor(now)) * 1_000_000n + BigInt(Math.floor((now % 1) * 1e6));
    let start = this.layers[0].start;
    if (at >= start + this.step) {
      start += ((at - start) / this.step) * this.step;
      const oldest = start - this.generations * this.step;
      this.counted = this.layers.filter((layer) => layer.start >= oldest);
    } else {
      this.counted = this.layers;
    }
    this.since = now;
    this.turn = Number((start + this.step) / 1_000_000n);
    if (this.turn <= now) { // the millisecond in which it turns
      this.turn = now + 1e-3;
    }
  }
}

// A list of exceptions: keys in ascending order, each after its length.
export class KeyList {
  constructor(bytes, count) {
    const bad = () => {
      throw new FormatError(`the exceptions are not a list of ${count} keys in order`);
    };
    if (count * 4 > bytes.length) {
      bad();
    }
    this.keys = bytes;
    this.from = new Float64Array(count);
    this.to = new Float64Array(count);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let at = 0, total = 0;
    for (let i = 0; i < count; i++) {
      if (at + 4 > bytes.length || view.getUint32(at, true) > bytes.length - at - 4) {
        bad();
      }
      this.from[i] = at + 4;
      this.to[i] = at = at + 4 + view.getUint32(at, true);
      total += this.to[i] - this.from[i];
      if (i > 0 && compareBytes(this.key(i - 1), this.key(i)) >= 0) {
        bad();
      }
    }
    if (bytes.length - at > 7 || bytes.subarray(at).some((byte) => byte !== 0)) {
      bad();
    }
    if (count > maxListed || total > maxListedBytes) {
      throw new FormatError(`${count} exceptions of ${total} bytes`);
    }
  }

  get length() {
    return this.from.length;
  }

  key(i) {
    return this.keys.subarray(this.from[i], this.to[i]);
  }

  has(key) {
    let low = 0, high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1, order = compareBytes(this.key(middle), key);
      if (order === 0) {
        return true;
      }
      if (order < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return false;
  }
}

// describe returns what filter.where promises, from positions and a source of bytes:
// source(at) returns bytes and the index of byte at of the file in them.
export function describe(filter, key, source, list) {
  filter.hashKey(key);
  const hash = filter.hasher === null ? null : toBigInt();
  const live = filter.live();
  const layers = filter.layers.map((layer, i) => {
    const positions = layer.positions(hash);
    const bits = positions.bits.map((bit) => {
      const [bytes, at] = source(layer.placeOf(positions, bit));
      return { ...bit, ...layer.read(bytes, at, bit) };
    });
    const found = filter.kind === 'cuckoo' ? bits.some((bit) => bit.set) : bits.every((bit) => bit.set);
    return { ...positions, layer: i, live: live.includes(layer), bits, found };
  });
  const set = layers.some((layer) => layer.found && layer.live);
  const excepted = set && list !== null && list.has(bytesOf(key));
  return { hash, layers, excepted, found: set && !excepted };
}

// A Filter is a whole file in memory.
export class Filter extends Head {
  constructor(file, options = {}) {
    const head = decodeHead(file);
    fits(head.state, file.length);
    if (options.verify !== false) {
      mustBeWhole(head);
      checkBody(file, head.state);
    }
    super(head, options);
    this.file = file;
    this.only = this.layers.length === 1 ? this.layers[0] : null;
    this.list = null;
    const section = head.state.sections[0];
    if (this.kind === 'classic' && section.blocks % 64 !== 0) {
      this.noneBehind(section);
    }
    if (this.kind === 'exceptions') {
      const { offset, length, blocks } = head.state.sections[1];
      this.list = new KeyList(file.subarray(offset, offset + length), blocks);
      this.checkExceptions();
    }
    if (this.kind === 'cuckoo') {
      this.layers.forEach((layer) => this.checkSlots(layer));
    }
  }

  // checkSlots: as many slots are in use as the section says, and no bytes behind them.
  checkSlots({ offset, length, slots, added }) {
    let used = 0;
    for (let at = offset; at < offset + slots; at++) {
      if (this.file[at] !== 0) {
        used++;
      }
    }
    if (BigInt(used) !== added || this.file.subarray(offset + slots, offset + length).some((byte) => byte !== 0)) {
      throw new FormatError(`a layer of a cuckoo filter has ${used} fingerprints, not ${added}, or bytes behind its slots`);
    }
  }

  noneBehind({ offset, length, blocks }) {
    const last = Array.from({ length: 8 }, (_, i) => BigInt(this.file[offset + length - 8 + i]) << BigInt(8 * i));
    if (last.reduce((word, byte) => word | byte) >> BigInt(blocks % 64) !== 0n) {
      throw new FormatError(`bits set behind the last of ${blocks}`);
    }
  }

  // checkExceptions: the bits contain each exception. In a keyed file only a reader with
  // the secret could tell; keys that they do not contain are answered no anyway.
  checkExceptions() {
    if (this.hash.name === 'siphash') {
      return;
    }
    for (let i = 0; i < this.list.length; i++) {
      this.hashKey(this.list.key(i));
      if (!this.only.has(this.file)) {
        throw new FormatError('the filter does not contain one of its exceptions');
      }
    }
  }

  // has reports whether a key, a string or bytes, is probably in the filter. No is
  // certain.
  has(key) {
    this.hashKey(key);
    if (this.only !== null && this.window === undefined) {
      return this.only.has(this.file) && (this.list === null || !this.list.has(bytesOf(key)));
    }
    const low = out[0], high = out[1], layers = this.live();
    for (let i = 0; i < layers.length; i++) {
      out[0] = low;
      out[1] = high;
      if (layers[i].has(this.file)) {
        return true;
      }
    }
    return false;
  }

  // hasMany returns an answer for each key.
  hasMany(keys) {
    return Array.from(keys, (key) => this.has(key));
  }

  // where shows how a key is answered: its hash and, for each layer, its bits.
  where(key) {
    return describe(this, key, (at) => [this.file, at], this.list);
  }
}
