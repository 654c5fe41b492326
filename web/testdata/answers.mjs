// The reader's answers for packed keys, in Node.js and in browsers: a character for each
// key, 1 if it is found, otherwise 0, and x if the reader contradicts itself.

export function* unpack(packed) {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.length);
  for (let at = 0; at < packed.length;) {
    const length = view.getUint32(at, true);
    yield packed.subarray(at + 4, at + 4 + length);
    at += 4 + length;
  }
}

export function answers(filter, packed) {
  const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const keys = [...unpack(packed)];
  const found = filter.hasMany(keys);
  return keys.map((key, i) => {
    if (i % 10 === 0) { // as a string, if it is one
      let text;
      try {
        text = strict.decode(key);
      } catch {
        text = key;
      }
      if (filter.has(text) !== found[i]) {
        return 'x';
      }
    }
    if (i % 500 === 0 && filter.where(key).found !== found[i]) {
      return 'x';
    }
    return found[i] ? '1' : '0';
  }).join('');
}

export const bytesOfHex = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
