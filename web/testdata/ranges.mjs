// node ranges.mjs PLANS: for each plan opens a URL and looks keys up one after the other,
// for range_test.go, and prints what happened.

import { readFileSync } from 'node:fs';
import { openBytes, openURL } from '../bloomery.js';
import { bytesOfHex, unpack } from './answers.mjs';

const told = (error) => `${error.name} ${error.code}: ${error.message}`;

async function run(plan) {
  const options = { now: () => plan.now };
  if (plan.secret !== '') {
    options.secret = bytesOfHex(plan.secret);
  }
  const done = { Opened: '', Requests: 0, BytesRead: 0, Wrong: 0, Lookups: [] };

  // The reader counts what it read also when it fails; fetch is where to see it from here.
  const counted = async (...request) => {
    const response = await fetch(...request);
    return new Proxy(response, {
      get(_, name) {
        if (name !== 'body' || response.body === null) {
          const value = response[name];
          return typeof value === 'function' ? value.bind(response) : value;
        }
        const reader = response.body.getReader();
        return { getReader: () => ({
          async read() {
            const part = await reader.read();
            done.BytesRead += part.value?.length ?? 0;
            return part;
          },
        }) };
      },
    });
  };

  try {
    const filter = await openURL(plan.url, { ...options, fetch: counted });
    const local = openBytes(readFileSync(plan.local), options);
    for (const key of unpack(readFileSync(plan.keys))) {
      try {
        if (await filter.has(key) !== local.has(key)) {
          done.Wrong++;
        }
        done.Lookups.push('');
      } catch (error) {
        done.Lookups.push(told(error));
      }
    }
    done.Requests = filter.requests;
    if (filter.bytesRead !== done.BytesRead) {
      done.Opened = `the reader counts ${filter.bytesRead} bytes, fetch ${done.BytesRead}`;
    }
  } catch (error) {
    done.Opened = told(error);
  }
  return done;
}

const all = [];
for (const plan of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  all.push(await run(plan));
}
console.log(JSON.stringify(all));
