// node pure.mjs PLAN [VECTORS]: compares hashes, rates and normal forms with those in the
// plan, and prints "fine" or what differs. Called by pure_test.go.

import { readFileSync } from 'node:fs';
import { cuckooPlace, murmur64a, normalizer, pairedRate, sipHash, xxh3, xxh64 } from '../bloomery.js';
import { CuckooLayer } from '../layout.js';
import { fromBigInt } from '../words.js';
import { bytesOfHex } from './answers.mjs';

const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const problems = [];
const same = (what, got, want) => {
  if (got !== want) {
    problems.push(`${what}: got ${got}, want ${want}`);
  }
};

const pattern = Uint8Array.from({ length: 70_000 }, (_, i) => 167 * i + 13);
const key = (length) => pattern.subarray(0, length);

for (const { Length, Seed, XXH3, XXH64, Murmur64A, Secret, SipHex } of plan.hashes ?? []) {
  const seed = BigInt(Seed);
  same(`XXH3 of ${Length} bytes, seed ${Seed}`, xxh3(key(Length), seed).toString(16), XXH3);
  same(`XXH64 of ${Length} bytes, seed ${Seed}`, xxh64(key(Length), seed).toString(16), XXH64);
  same(`MurmurHash64A of ${Length} bytes, seed ${Seed}`, murmur64a(key(Length), seed).toString(16), Murmur64A);
  same(`SipHash of ${Length} bytes`, sipHash(key(Length), bytesOfHex(Secret)).toString(16), SipHex);
}

if (process.argv[3] !== undefined) {
  const vectors = JSON.parse(readFileSync(process.argv[3], 'utf8'));
  for (const { len, seed, xxh3_64 } of vectors.xxh3_64) {
    same(`vector of XXH3, ${len} bytes, seed ${seed}`, xxh3(key(len), BigInt('0x' + seed)), BigInt('0x' + xxh3_64));
  }
  const reversed = (hex) => [...bytesOfHex(hex)].reverse();
  for (const { len, sip_k0, sip_k1, siphash24 } of vectors.siphash24) {
    const secret = Uint8Array.from([...reversed(sip_k0), ...reversed(sip_k1)]);
    same(`vector of SipHash, ${len} bytes`, sipHash(key(len), secret), BigInt('0x' + siphash24));
  }
  if (vectors.xxh3_64.length < 400 || vectors.siphash24.length < 50) {
    problems.push('the file of vectors has too few');
  }
}

for (const { Keys, Blocks, K, Rate } of plan.rates ?? []) {
  const rate = pairedRate(Keys, Blocks, K);
  if (!(Math.abs(rate - Rate) <= 1e-7 * Rate)) {
    problems.push(`rate of ${Keys} keys in ${Blocks} blocks, k ${K}: got ${rate}, want ${Rate}`);
  }
}

for (const { Hash, Blocks, Fingerprint, One, Other } of plan.places ?? []) {
  const hash = BigInt(Hash), layer = new CuckooLayer({ blocks: Blocks, k: 2 });
  fromBigInt(hash);
  const want = [Fingerprint, One, Other].join(), { fingerprint, buckets } = cuckooPlace(hash, Blocks);
  same(`place of ${Hash} in ${Blocks} buckets`, [fingerprint, ...buckets].join(), want);
  same(`layer's place of ${Hash} in ${Blocks} buckets`, [layer.fingerprint(), layer.one(), layer.other(layer.fingerprint())].join(), want);
}

for (const { Forms, Line, Key } of plan.forms ?? []) {
  same(`${Forms} of ${Buffer.from(Line, 'hex')}`, Buffer.from(normalizer(Forms)(bytesOfHex(Line))).toString('hex'), Key);
}

console.log(problems.length === 0 ? 'fine' : `${problems.length} differ:\n${problems.slice(0, 10).join('\n')}`);
