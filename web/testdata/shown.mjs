// node shown.mjs: prints lines of docs/format.md, for package_test.go.

import { pairedPositions, rowOf, xxh3 } from '../bloomery.js';
import { crc32c } from '../format.js';

const hex = (x, digits) => x.toString(16).padStart(digits, '0');
const h = xxh3('Titanic');
const { block, lines, rows, p, q, g, x, s, bits } = pairedPositions(h, 3, 4);
console.log(`h         ${hex(h, 16)}    XXH3-64 of "Titanic", seed 0`);
console.log(`block     ${block}`);
console.log(`p         ${hex(p, 16)}\nq         ${hex(q, 16)}\ng         ${hex(g, 16)}\nx         ${hex(x, 16)}\ns         ${hex(s, 8)}`);
console.log(`a, b      ${lines.join(', ')}`);
console.log(`row a     ${hex(rowOf(2, rows[0]), 16)}    rows[${rows[0]}]`);
console.log(`row b     ${hex(rowOf(2, rows[1]), 16)}    rows[${rows[1]}]`);
for (const { line, lane, bit, position } of bits) {
  const byte = 12288 + Math.floor(position / 8), mask = 1 << (position % 8);
  console.log(`   ${line}     ${lane}   ${String(bit).padStart(2)}   byte ${hex(byte, 4)}, mask ${hex(mask, 2)}`);
}
for (let perLine = 1; perLine <= 8; perLine++) {
  const table = new DataView(new ArrayBuffer(8 * 256));
  for (let r = 0; r < 256; r++) {
    table.setBigUint64(8 * r, rowOf(perLine, r), true);
  }
  const shown = [0, 100, 255].map((r) => hex(rowOf(perLine, r), 16));
  console.log(` ${perLine}  ${shown.join('  ')}  ${hex(crc32c(new Uint8Array(table.buffer)), 8)}`);
}
