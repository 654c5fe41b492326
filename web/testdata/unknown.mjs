// node unknown.mjs FILE: prints why a file is refused, for package_test.go.

import { readFileSync } from 'node:fs';
import { openBytes } from '../bloomery.js';

try {
  openBytes(readFileSync(process.argv[2]));
  console.log('accepted');
} catch (error) {
  console.log(`${error.code}: ${error.message}`);
}
