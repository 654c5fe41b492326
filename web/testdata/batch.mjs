// node batch.mjs PLANS: for each plan opens a URL and looks all keys up in one call, for
// range_test.go.

import { readFileSync } from 'node:fs';
import { openBytes, openURL } from '../bloomery.js';
import { unpack } from './answers.mjs';

const all = [];
for (const plan of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  const done = { Opened: '', Wrong: 0 }, options = { now: () => plan.now };
  try {
    const filter = await openURL(plan.url, options);
    const keys = [...unpack(readFileSync(plan.keys))];
    const local = openBytes(readFileSync(plan.local), options).hasMany(keys);
    done.Wrong = (await filter.hasMany(keys)).filter((found, i) => found !== local[i]).length;
  } catch (error) {
    done.Opened = String(error);
  }
  all.push(done);
}
console.log(JSON.stringify(all));
