// node hostile.mjs CHANGES: reads files that were changed, for hostile_test.go, and prints
// which are accepted: 1 or 0 for each. A problem is any outcome but an answer or a
// FormatError, one that takes long, and much memory.

import { readFileSync } from 'node:fs';
import { FormatError, open, openBytes, SecretError, SourceError } from '../bloomery.js';
import { bytesOfHex } from './answers.mjs';

const longest = 2000; // milliseconds for a file, on a slow machine
const mostMemory = 400 << 20;

const bases = new Map();
const problems = [], messages = [];
let accepted = '';

function changed({ base, length, patches }) {
  if (!bases.has(base)) {
    bases.set(base, readFileSync(base));
  }
  const file = new Uint8Array(length);
  file.set(bases.get(base).subarray(0, length));
  for (const { at, bytes } of patches) {
    file.set(bytesOfHex(bytes), at);
  }
  return file;
}

function unlessRefused(error, ...classes) {
  if (!classes.some((one) => error instanceof one)) {
    problems.push(`change ${accepted.length}: ${error.stack}`);
  }
}

const changes = JSON.parse(readFileSync(process.argv[2], 'utf8'));
for (const change of changes) {
  const file = changed(change), began = performance.now();
  let filter = null, message = '';
  try {
    filter = openBytes(file);
  } catch (error) {
    message = error.message;
    unlessRefused(error, FormatError);
  }
  if (filter !== null) {
    try {
      filter.hasMany(['key 1', 'absent', '']);
      filter.where('key 1');
    } catch (error) {
      unlessRefused(error, SecretError);
    }
  }
  if (accepted.length % 5 === 0) { // the same by ranges, which leave out the checksums of the bits
    try {
      const remote = await open(new Blob([file]), { ranges: true });
      await remote.hasMany(['key 1', 'absent', '']);
      await remote.where('key 1');
    } catch (error) {
      unlessRefused(error, FormatError, SecretError, SourceError);
    }
  }
  if (performance.now() - began > longest) {
    problems.push(`change ${accepted.length} took ${performance.now() - began} ms`);
  }
  accepted += filter === null ? '0' : '1';
  messages.push(message);
}
const { rss } = process.memoryUsage();
if (rss > mostMemory) {
  problems.push(`${rss} bytes of memory`);
}
console.log(JSON.stringify({ Accepted: accepted, Messages: messages, Problems: problems.slice(0, 10) }));
