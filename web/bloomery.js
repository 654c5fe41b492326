// Bloomery's filter files in JavaScript: browsers and Node.js from 18 on, no dependencies.
// README.md has examples, bloomery.d.ts the types, docs/format.md the format.

import { decodeHead, bodyOffset, fits, mustBeWhole } from './format.js';
import { Filter } from './kinds.js';
import { openBlob } from './range.js';
import { bytesOf } from './hash.js';
import { schemes } from './schemes.js';

export { FormatError } from './format.js';
export { Filter, SecretError } from './kinds.js';
export { openURL, RemoteFilter, SourceError } from './range.js';
export { xxh3, xxh64, murmur64a, sipHash } from './hash.js';
export { pairedPositions, splitPositions, classicPositions, cuckooPlace, rowOf } from './layout.js';
export { paired as pairedRate } from './rate.js';
export { normalizer } from './normalize.js';

// openBytes returns the filter in the bytes of a whole file, which it keeps: they must not
// change. It verifies every checksum unless options.verify is false.
export function openBytes(file, options = {}) {
  if (file instanceof ArrayBuffer) {
    file = new Uint8Array(file);
  } else if (ArrayBuffer.isView(file)) {
    file = new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
  } else {
    throw new TypeError('a file is an ArrayBuffer, a Uint8Array, a Blob or a File');
  }
  return new Filter(file, options);
}

// open is openBytes also for a Blob or File, of which it reads the head first. With
// options.ranges it leaves a Blob where it is, and lookups read what they need.
export async function open(file, options = {}) {
  if (typeof Blob === 'undefined' || !(file instanceof Blob)) {
    return openBytes(file, options);
  }
  if (options.ranges === true) {
    return openBlob(file, options);
  }
  const head = decodeHead(new Uint8Array(await file.slice(0, bodyOffset).arrayBuffer()));
  fits(head.state, file.size);
  if (options.verify !== false) {
    mustBeWhole(head);
  }
  return openBytes(await file.arrayBuffer(), options);
}

// schemeNames are the schemes of a Classic.
export const schemeNames = Object.freeze(Object.values(schemes).map(({ name }) => name));

// schemePositions returns the positions of a key, a string or bytes, by the scheme of
// another program, in a filter of m bits. For Bloomery's own see classicPositions.
export function schemePositions(name, key, m, k, seed = 0n) {
  const scheme = Object.values(schemes).find((one) => one.name === name);
  if (scheme?.positions === undefined) {
    throw new RangeError(`no scheme of another program is named "${name}"`);
  }
  return [...scheme.positions(bytesOf(key), BigInt(m), k, BigInt(seed))];
}
