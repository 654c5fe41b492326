// The pages of a filter file, as docs/format.md draws them: header, state, checksums.
// Nothing that a file says is believed before it is checked, in the order of that page.

export const pageBytes = 4096;
export const bodyOffset = 3 * pageBytes;
const spanBytes = 1 << 20; // of the body under one checksum
const maxSections = 62;
const maxKeys = 2n ** 44n;
export const maxListed = 1 << 20; // keys in a list of keys
export const maxListedBytes = 64 << 20; // bytes of these keys

// FormatError: the bytes are not a filter file that this reader knows. code is one of
//   format    not a filter file, or a damaged one
//   version   a version, kind, scheme or hash that this reader does not know
//   checksum  a stored checksum does not match the bytes
//   unclean   the file is being changed, or its writer was cut off
export class FormatError extends Error {
  constructor(message, code = 'format') {
    super(message);
    this.name = 'FormatError';
    this.code = code;
  }
}

// CRC-32C, eight bytes at a time.
const tables = (() => {
  const made = Array.from({ length: 8 }, () => new Int32Array(256));
  for (let i = 0; i < 256; i++) {
    let c = i;
    for (let bit = 0; bit < 8; bit++) {
      c = c & 1 ? (c >>> 1) ^ 0x82f63b78 : c >>> 1;
    }
    made[0][i] = c;
  }
  for (let t = 1; t < 8; t++) {
    for (let i = 0; i < 256; i++) {
      const c = made[t - 1][i];
      made[t][i] = (c >>> 8) ^ made[0][c & 255];
    }
  }
  return made;
})();
const [t0, t1, t2, t3, t4, t5, t6, t7] = tables;

// crc32c returns the checksum of bytes from one index to another.
export function crc32c(bytes, from = 0, to = bytes.length) {
  let c = -1, i = from;
  for (; i + 8 <= to; i += 8) {
    c ^= bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24);
    c = t7[c & 255] ^ t6[(c >>> 8) & 255] ^ t5[(c >>> 16) & 255] ^ t4[c >>> 24] ^
      t3[bytes[i + 4]] ^ t2[bytes[i + 5]] ^ t1[bytes[i + 6]] ^ t0[bytes[i + 7]];
  }
  for (; i < to; i++) {
    c = (c >>> 8) ^ t0[(c ^ bytes[i]) & 255];
  }
  return ~c >>> 0;
}

const filterHashes = [1, 2];

// The kinds of filter by their numbers: the hashes that they may have, and the kinds of
// their sections, of which the last may be repeated in a kind with layers.
const kinds = {
  1: { name: 'filter', article: 'a Filter', hashes: filterHashes, sections: [1] },
  2: { name: 'splitblock', article: 'a SplitBlock', hashes: [3, 2], sections: [2] },
  3: { name: 'classic', article: 'a Classic', hashes: [0, 1, 2, 3], sections: [3] },
  4: { name: 'counting', article: 'a Counting', hashes: filterHashes, sections: [4] },
  5: { name: 'scalable', article: 'a Scalable', hashes: filterHashes, sections: [1], layered: true },
  6: { name: 'window', article: 'a Window', hashes: filterHashes, sections: [1], layered: true },
  7: { name: 'exceptions', article: 'a Filter with exceptions', hashes: filterHashes, sections: [1, 5] },
  8: { name: 'cuckoo', article: 'a Cuckoo', hashes: [4, 2], sections: [6], layered: true },
  9: { name: 'scalablecounting', article: 'a ScalableCounting', hashes: filterHashes, sections: [4], layered: true },
};

const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

const pageIntact = (page) => crc32c(page, 0, pageBytes - 4) === viewOf(page).getUint32(pageBytes - 4, true);

const allZero = (bytes, from = 0, to = bytes.length) => {
  for (let i = from; i < to; i++) {
    if (bytes[i] !== 0) {
      return false;
    }
  }
  return true;
};

const rateFits = (p) => p >= 0 && p <= 1; // NaN does not

// compareBytes is negative, zero or positive as a comes before b, is b, or comes after.
export function compareBytes(a, b) {
  const least = Math.min(a.length, b.length);
  for (let i = 0; i < least; i++) {
    if (a[i] !== b[i]) {
      return a[i] - b[i];
    }
  }
  return a.length - b.length;
}

// decodeHead checks the first three pages, and returns what they say: the header, the
// state in force, and damaged: what is wrong with the other state page, if anything.
export function decodeHead(head) {
  if (head.length < bodyOffset) {
    throw new FormatError(`not a filter file: it has only ${head.length} bytes`);
  }
  const header = decodeHeader(head.subarray(0, pageBytes));
  const { state, damaged } = decodeState(head);
  checkKind(header, state);
  return { header, state, damaged };
}

function decodeHeader(page) {
  const view = viewOf(page);
  if (String.fromCharCode(...page.subarray(0, 8)) !== 'bloomery') {
    throw new FormatError('not a filter file: it does not begin with "bloomery"');
  }
  const version = view.getUint16(8, true);
  if (version !== 1) {
    throw new FormatError(`file version ${version}: this reader knows version 1`, 'version');
  }
  if (!pageIntact(page)) {
    throw new FormatError('the header page is damaged', 'checksum');
  }
  const number = view.getUint16(10, true);
  const known = kinds[number];
  const scheme = view.getUint32(12, true), algorithm = view.getUint32(16, true);
  const n = view.getBigUint64(32, true), p = view.getFloat64(40, true);
  const parameters = [view.getBigUint64(48, true), view.getBigUint64(56, true)];
  if (known === undefined) {
    throw new FormatError(`filters of kind ${number} are unknown`, 'version');
  }
  const schemeFits = number === 3 ? scheme <= 0xffff : scheme === ({ 2: 2, 8: 3 }[number] ?? 1);
  if (!schemeFits) {
    throw new FormatError(`scheme ${scheme} in the file of ${known.article} is unknown`, 'version');
  }
  if (!known.hashes.includes(algorithm)) {
    throw new FormatError(`hash ${algorithm} in the file of ${known.article} is unknown`, 'version');
  }
  if (n === 0n || n > maxKeys || !rateFits(p)) {
    throw new FormatError(`planned for ${n} keys at rate ${p}`);
  }
  if (!known.layered && (parameters[0] !== 0n || parameters[1] !== 0n)) {
    throw new FormatError(`the header page has bytes in use that mean nothing to ${known.article}`);
  }
  const { metadata, end } = decodeMetadata(page);
  if (!allZero(page, 20, 24) || !allZero(page, end, pageBytes - 4)) {
    throw new FormatError('the header page has bytes in use that mean nothing');
  }
  return {
    number, kind: known.name, article: known.article, layered: known.layered === true, sections: known.sections,
    scheme, algorithm, hashKey: view.getBigUint64(24, true), n: Number(n), p, parameters, metadata,
  };
}

// decodeMetadata returns the pairs as an object without a prototype, and where they end.
function decodeMetadata(page) {
  const view = viewOf(page), limit = pageBytes - 4;
  const pairs = view.getUint16(64, true);
  const metadata = Object.create(null);
  const text = new TextDecoder();
  let at = 66, before = null;
  const next = () => {
    if (at + 2 > limit || at + 2 + view.getUint16(at, true) > limit) {
      throw new FormatError('the metadata run over the header page');
    }
    const from = at + 2;
    at = from + view.getUint16(at, true);
    return page.subarray(from, at);
  };
  for (let i = 0; i < pairs; i++) {
    const key = next(), value = next();
    if (before !== null && compareBytes(before, key) >= 0) {
      throw new FormatError('the metadata are out of order');
    }
    before = key;
    metadata[text.decode(key)] = text.decode(value);
  }
  return { metadata: Object.freeze(metadata), end: at };
}

function decodeState(head) {
  let state = null, damaged = null;
  for (const page of [1, 2]) {
    const bytes = head.subarray(page * pageBytes, (page + 1) * pageBytes);
    if (allZero(bytes)) {
      continue;
    }
    if (!pageIntact(bytes)) {
      damaged = new FormatError(`state page ${page} is damaged`, 'checksum');
      continue;
    }
    const found = decodeStatePage(bytes, page);
    if (state !== null && found.generation === state.generation) {
      throw new FormatError(`both state pages claim generation ${found.generation}`);
    }
    if (state === null || found.generation > state.generation) {
      state = found;
    }
  }
  if (state === null) {
    throw damaged ?? new FormatError('no state page was ever written');
  }
  checkState(state);
  return { state, damaged };
}

function decodeStatePage(page, number) {
  const view = viewOf(page);
  const flags = view.getUint32(8, true), count = view.getUint32(12, true);
  if (count === 0 || count > maxSections) {
    throw new FormatError(`${count} sections; 1 to ${maxSections} are possible`);
  }
  if (flags > 1 || !allZero(page, 56, 64) || !allZero(page, 64 + 64 * count, pageBytes - 4)) {
    throw new FormatError(`state page ${number} has bytes in use that mean nothing`);
  }
  const sections = [];
  for (let at = 64; at < 64 + 64 * count; at += 64) {
    sections.push({
      kind: view.getUint32(at, true),
      k: view.getUint32(at + 4, true),
      offset: view.getBigUint64(at + 8, true),
      length: view.getBigUint64(at + 16, true),
      blocks: view.getBigUint64(at + 24, true),
      n: view.getBigUint64(at + 32, true),
      p: view.getFloat64(at + 40, true),
      pBits: view.getBigUint64(at + 40, true),
      added: view.getBigUint64(at + 48, true),
      start: view.getBigInt64(at + 56, true),
    });
  }
  return {
    generation: view.getBigUint64(0, true),
    clean: flags === 1,
    added: view.getBigUint64(16, true),
    checksums: view.getBigUint64(24, true),
    fileBytes: view.getBigUint64(32, true),
    removed: view.getBigUint64(40, true),
    dropped: view.getBigUint64(48, true),
    sections,
  };
}

// What a kind of section may have: its k, its most blocks, and their length.
const sectionKinds = {
  1: { kFits: (k) => k >= 2 && k <= 16 && k % 2 === 0, most: 2n ** 33n, length: (s) => s.blocks * 512n },
  2: { kFits: (k) => k === 8, most: 2n ** 31n - 1n, length: (s) => s.blocks * 32n },
  3: { kFits: (k) => k >= 1 && k <= 255, most: 2n ** 45n, length: (s) => ((s.blocks + 63n) / 64n) * 8n },
  4: { kFits: (k) => k >= 2 && k <= 16 && k % 2 === 0, most: 2n ** 33n, length: (s) => s.blocks * 2048n },
  5: {
    kFits: (k) => k === 0, most: BigInt(maxListed),
    length: (s) => {
      const most = BigInt(4 * maxListed + maxListedBytes + 8), whole = (s.length / 8n) * 8n;
      return whole < most ? whole : most;
    },
  },
  6: { kFits: (k) => k >= 1 && k <= 255, most: 2n ** 34n, length: (s) => roundUp(s.blocks * BigInt(s.k), 8n) },
};

const roundUp = (n, unit) => ((n + unit - 1n) / unit) * unit;

// checkState compares all numbers of a state with each other. Afterwards every length
// and offset is below 2^53, and becomes a plain number.
function checkState(state) {
  let at = BigInt(bodyOffset);
  state.sections.forEach((s, i) => {
    const rule = sectionKinds[s.kind];
    const bad = (what) => {
      throw new FormatError(`section ${i} has ${what}`);
    };
    if (rule === undefined) {
      throw new FormatError(`section ${i} has kind ${s.kind}, which is unknown`, 'version');
    }
    if (!rule.kFits(s.k)) {
      bad(`k ${s.k}`);
    }
    if (s.blocks > rule.most || (s.blocks === 0n && s.kind !== 5)) {
      bad(`${s.blocks} blocks`);
    }
    if (rule.length(s) !== s.length) {
      bad(`${s.blocks} blocks in ${s.length} bytes`);
    }
    if (s.n > maxKeys) {
      bad(`${s.n} keys`);
    }
    if (!rateFits(s.p)) {
      bad(`rate ${s.p}`);
    }
    if (s.offset !== at) {
      throw new FormatError(`section ${i} begins at byte ${s.offset}, not ${at}`);
    }
    at += s.length;
    if (i + 1 < state.sections.length) {
      at = roundUp(at, BigInt(pageBytes));
    }
  });
  const body = at - BigInt(bodyOffset), span = BigInt(spanBytes);
  if (state.checksums !== at || state.fileBytes !== at + (roundUp(body, span) / span + 1n) * 4n) {
    throw new FormatError(`checksums at byte ${state.checksums} of ${state.fileBytes}, where the sections end at ${at}`);
  }
  state.checksums = Number(state.checksums);
  state.fileBytes = Number(state.fileBytes);
}

// checkKind compares the sections with the kind of filter.
function checkKind(header, state) {
  const { sections } = state, { layered, article } = header;
  const counts = header.kind === 'scalablecounting';
  if ((state.removed !== 0n && header.kind !== 'cuckoo' && !counts) || (state.dropped !== 0n && !counts)) {
    throw new FormatError(`the state has bytes in use that mean nothing to ${article}`);
  }
  if (sections.length < header.sections.length || (sections.length > header.sections.length && !layered)) {
    throw new FormatError(`${article} with ${sections.length} sections`);
  }
  let added = 0n;
  sections.forEach((s, i) => {
    const want = header.sections[Math.min(i, header.sections.length - 1)];
    if (s.kind !== want) {
      throw new FormatError(`section ${i} of ${article} has kind ${s.kind}, not ${want}`);
    }
    const unused = s.n === 0n && s.pBits === 0n && s.added === 0n && s.start === 0n;
    if (layered ? s.n === 0n : !unused) {
      throw new FormatError(`section ${i} has bytes in use that mean nothing to ${article}, or none that must be`);
    }
    if (s.start !== 0n && header.kind !== 'window') {
      throw new FormatError(`section ${i} has a start, which means nothing to ${article}`);
    }
    added = BigInt.asUintN(64, added + s.added);
    s.offset = Number(s.offset);
    s.length = Number(s.length);
    s.blocks = Number(s.blocks);
    s.n = Number(s.n);
  });
  if (layered && added !== state.added) {
    throw new FormatError(`${state.added} keys added, in the sections ${added}`);
  }
}

// fits compares the length in the state with the file's. A file that is being changed
// may be longer: it grows before its state says so.
export function fits(state, size) {
  if (size !== state.fileBytes && (state.clean || size < state.fileBytes)) {
    throw new FormatError(`the file has ${size} bytes, its header says ${state.fileBytes}`);
  }
}

// mustBeWhole refuses a file whose checksums are not, or may not be, those of its body.
export function mustBeWhole({ state, damaged }) {
  const advice = 'the file is being changed or was not closed cleanly; a saved copy can be read';
  if (damaged !== null) {
    throw new FormatError(`${damaged.message}: ${advice}`, 'checksum');
  }
  if (!state.clean) {
    throw new FormatError(`its checksums are old: ${advice}`, 'unclean');
  }
}

// checkBody checks the zeros between sections and every checksum of a whole file.
export function checkBody(file, state) {
  const view = viewOf(file);
  const end = state.fileBytes - 4;
  let before = bodyOffset;
  state.sections.forEach((s, i) => {
    if (!allZero(file, before, s.offset)) {
      throw new FormatError(`bytes in use before section ${i}`);
    }
    before = s.offset + s.length;
  });
  if (crc32c(file, state.checksums, end) !== view.getUint32(end, true)) {
    throw new FormatError('the list of checksums is damaged', 'checksum');
  }
  for (let from = bodyOffset, at = state.checksums; from < state.checksums; from += spanBytes, at += 4) {
    if (crc32c(file, from, Math.min(from + spanBytes, state.checksums)) !== view.getUint32(at, true)) {
      throw new FormatError(`the file is damaged within the MiB at byte ${from}`, 'checksum');
    }
  }
}
