// node exports.mjs: prints what bloomery.js exports, in order, for package_test.go.

import * as bloomery from '../bloomery.js';

console.log(Object.keys(bloomery).sort().join('\n'));
