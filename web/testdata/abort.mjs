// node abort.mjs PLAN: gives up on a server that does not answer, for range_test.go.

import { readFileSync } from 'node:fs';
import { openURL } from '../bloomery.js';

const [plan] = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const stop = new AbortController();
setTimeout(() => stop.abort(), 200);
let outcome = 'an answer';
try {
  const filter = await openURL(plan.url, { signal: plan.url.includes('first') ? undefined : stop.signal });
  await filter.has('a', { signal: stop.signal });
} catch (error) {
  outcome = error.name;
}
console.log(JSON.stringify([{ Many: outcome }]));
