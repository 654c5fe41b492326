// node check.mjs PLAN: answers what the plan asks, for reader_test.go. The plan is JSON:
// the file of the keys and, for each case, the filter's file, secret and clock, and where
// the answers go.

import { readFileSync, writeFileSync } from 'node:fs';
import { openBytes } from '../bloomery.js';
import { answers, bytesOfHex } from './answers.mjs';

const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const packed = readFileSync(plan.keys);
for (const { file, secret, now, out } of plan.cases) {
  const options = { now: () => now };
  if (secret !== '') {
    options.secret = bytesOfHex(secret);
  }
  writeFileSync(out, answers(openBytes(readFileSync(file), options), packed));
}
