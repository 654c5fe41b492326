// node secrets.mjs GOLDEN: keyed filters without their secret, with it and with another,
// for package_test.go. It prints "fine" or what is wrong.

import { readFileSync } from 'node:fs';
import { openBytes, SecretError } from '../bloomery.js';

const secret = new TextEncoder().encode('0123456789abcdef'), other = secret.slice().reverse();
const problems = [];
const mustThrow = (what, call) => {
  try {
    call();
    problems.push(`${what}: no error`);
  } catch (error) {
    if (!(error instanceof SecretError)) {
      problems.push(`${what}: ${error.stack}`);
    }
  }
};

for (const kind of ['filter', 'splitblock', 'classic', 'counting', 'scalable', 'window', 'exceptions']) {
  const file = readFileSync(`${process.argv[2]}/${kind}-keyed.bloom`);
  const filter = openBytes(file, { now: () => 1.8e12 });
  if (!filter.needsSecret) {
    problems.push(`${kind}: needs no secret`);
  }
  mustThrow(`${kind}: has`, () => filter.has('key 1'));
  mustThrow(`${kind}: where`, () => filter.where('key 1'));
  mustThrow(`${kind}: another secret`, () => filter.setSecret(other));
  mustThrow(`${kind}: opened with another secret`, () => openBytes(file, { secret: other }));
  mustThrow(`${kind}: has after another secret`, () => filter.has('key 1'));
  filter.setSecret(secret);
  if (filter.needsSecret || !filter.has('key 1')) {
    problems.push(`${kind}: does not find a key with its secret`);
  }
}
mustThrow('a filter without a secret', () => openBytes(readFileSync(`${process.argv[2]}/filter.bloom`), { secret }));
console.log(problems.length === 0 ? 'fine' : problems.join('\n'));
