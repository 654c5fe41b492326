// node speed.mjs FILE: measures lookups, for speed_test.go, which made the file. It prints
// answers a second, the best of three rounds, for keys that are there and that are not.

import { readFileSync } from 'node:fs';
import { openBytes } from '../bloomery.js';

const many = 1e6;
const url = (i) => `https://example.com/${(Math.imul(i, 2654435761) >>> 0).toString(16).padStart(8, '0')}/articles/${i}.html`;
const began = performance.now();
const filter = openBytes(readFileSync(process.argv[2]));
const opened = performance.now() - began;
// From bytes, so that each is one string and not a tree of parts.
const flat = (i) => Buffer.from(url(i)).toString();
const sets = {
  hits: Array.from({ length: many }, (_, i) => flat((i * 7919) % 1e7)),
  misses: Array.from({ length: many }, (_, i) => flat(1e7 + i)),
};
const best = { hits: 0, misses: 0, opens: 1000 / opened };
for (let round = 0; round < 3; round++) {
  for (const [name, keys] of Object.entries(sets)) {
    let found = 0;
    const from = performance.now();
    for (let i = 0; i < keys.length; i++) {
      found += filter.has(keys[i]) ? 1 : 0;
    }
    best[name] = Math.max(best[name], (1000 * many) / (performance.now() - from));
    if (name === 'hits' ? found !== many : found > 0.012 * many) {
      throw new Error(`${found} of ${many} ${name} are found`);
    }
  }
}
console.log(JSON.stringify(best));
