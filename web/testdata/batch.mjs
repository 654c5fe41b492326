// node batch.mjs PLAN: opens a URL and looks all keys up in one call, for range_test.go.

import { readFileSync } from 'node:fs';
import { openBytes, openURL } from '../bloomery.js';
import { unpack } from './answers.mjs';

const [plan] = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const done = { Opened: '', Wrong: 0 };
try {
  const filter = await openURL(plan.url);
  const keys = [...unpack(readFileSync(plan.keys))];
  const local = openBytes(readFileSync(plan.local)).hasMany(keys);
  done.Wrong = (await filter.hasMany(keys)).filter((found, i) => found !== local[i]).length;
} catch (error) {
  done.Opened = String(error);
}
console.log(JSON.stringify([done]));
