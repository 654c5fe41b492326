// The search of internal/sizing and the plans of `bloomery plan`: the same numbers, for
// the same n, p, m and k.

import { log2 } from "../elementary.js";
import * as rate from "../rate.js";

export const maxKeys = 2 ** 44;
const maxClassicBits = 2 ** 45;
const mostTriedProbes = 64;

const upTo = (last) => Array.from({ length: last }, (_, i) => i + 1);

const pairedLines = {
  blockBits: 4096,
  maxBlocks: 2 ** 33,
  probes: [2, 4, 6, 8, 10, 12, 14, 16],
  minRate: 1e-12,
  rate: rate.paired,
};

const splitBlocks = {
  blockBits: 256,
  maxBlocks: 2 ** 31 - 1,
  probes: [8],
  minRate: 1e-8,
  rate: (n, blocks) => rate.split(n, blocks),
};

// layouts are those of `bloomery plan`, in its order.
export const layouts = ["paired", "split", "classic", "counting"];

// Refused is a plan that cannot be made. Its why is a key of the pages' texts, and its
// values go into that text.
export class Refused extends Error {
  constructor(why, values = {}) {
    super(why + " " + JSON.stringify(values));
    this.why = why;
    this.values = values;
  }
}

// plan sizes a layout from two of keys (n), rate (p) and bits (m), and perhaps probes (k);
// 0 means not given. It returns {keys, rate, bits, probes, blocks} and throws Refused.
export function plan(layout, want) {
  const c = { keys: want.keys ?? 0, rate: want.rate ?? 0, bits: want.bits ?? 0, probes: want.probes ?? 0 };
  if (layout === "classic") return planClassic(c);
  return fit(layout === "split" ? splitBlocks : pairedLines, c);
}

// rateAt is the rate of a plan of the layout with n keys in it.
export function rateAt(layout, p, n) {
  if (layout === "classic") return rate.classic(n, p.bits, p.probes);
  return (layout === "split" ? splitBlocks : pairedLines).rate(n, p.blocks, p.probes);
}

function planClassic(c) {
  if (c.bits > maxClassicBits) throw new Refused("refusedLarge", { limit: maxClassicBits });
  if (c.probes > 255) throw new Refused("refusedProbes", { allowed: "1\u2013255", k: c.probes });
  if (c.bits !== 0 && c.probes !== 0 && c.keys === 0 && c.rate === 0) {
    c.keys = Math.trunc(Math.min(Math.max((c.bits * Math.LN2) / c.probes, 1), maxKeys));
  }
  const any = { blockBits: 1, maxBlocks: maxClassicBits, minRate: 1e-18, rate: rate.classic };
  any.probes = c.probes !== 0 ? [c.probes] : upTo(Math.max(mostUseful(c), 1));
  return fit(any, c);
}

function mostUseful(c) {
  let k = -log2(c.rate);
  if (c.rate === 0) k = Infinity;
  if (c.keys !== 0 && c.bits !== 0) k = (c.bits / c.keys) * Math.LN2;
  if (!(k > 0)) return 1;
  return Math.min(Math.ceil(k) + 2, mostTriedProbes);
}

function fit(g, c) {
  check(g, c);
  if (c.probes !== 0) g = { ...g, probes: [c.probes] };
  const size = c.keys !== 0 && c.bits !== 0 ? findRate(g, c) : c.keys !== 0 ? findBits(g, c) : findKeys(g, c);
  return { ...size, bits: size.blocks * g.blockBits };
}

function check(g, c) {
  const given = [c.keys, c.rate, c.bits].filter((x) => x !== 0).length;
  if (given < 2) throw new Refused("refusedTwo");
  if (c.keys > maxKeys) throw new Refused("refusedKeys", { limit: maxKeys });
  if (c.rate !== 0 && !(c.rate > 0 && c.rate < 1)) throw new Refused("refusedRate");
  if (c.rate !== 0 && c.rate < g.minRate) throw new Refused("refusedLow", { least: g.minRate });
  if (c.probes !== 0 && !g.probes.includes(c.probes)) throw new Refused("refusedProbes", { allowed: g.probes.join(", "), k: c.probes });
  if (Math.floor(c.bits / g.blockBits) > g.maxBlocks) throw new Refused("refusedLarge", { limit: g.maxBlocks * g.blockBits });
}

const blocksWithin = (g, c) => Math.max(Math.floor(c.bits / g.blockBits), 1);

function findRate(g, c) {
  const size = { keys: c.keys, blocks: blocksWithin(g, c), rate: 2, probes: 0 };
  for (const k of g.probes) {
    const r = g.rate(c.keys, size.blocks, k);
    if (r < size.rate * (1 - 1e-6)) {
      size.rate = r;
      size.probes = k;
    }
  }
  if (c.rate !== 0 && size.rate > c.rate) throw new Refused("refusedAll", { rate: size.rate, wanted: c.rate });
  return size;
}

function findBits(g, c) {
  if (rate.hashFloor(c.keys) > c.rate / 2) throw new Refused("refusedHash");
  let blocks = g.maxBlocks + 1;
  let probes = 0;
  const atLeast = Math.floor(Math.floor((c.keys * rate.textbook(c.rate)) / 2) / g.blockBits);
  for (const k of g.probes) {
    if (blocks === 1) break;
    const found = leastTrue(atLeast + 1, blocks - 1, (units) => g.rate(c.keys, units, k) <= c.rate);
    if (found !== 0) {
      blocks = found;
      probes = k;
    }
  }
  if (probes === 0) throw new Refused("refusedHuge", { limit: (g.maxBlocks * g.blockBits) / 8 });
  return { keys: c.keys, blocks, probes, rate: g.rate(c.keys, blocks, probes) };
}

function findKeys(g, c) {
  const size = { keys: 0, blocks: blocksWithin(g, c), probes: 0, rate: 0 };
  for (const k of g.probes) {
    const first = leastTrue(1, maxKeys, (n) => g.rate(n, size.blocks, k) > c.rate);
    const n = first !== 0 ? first - 1 : maxKeys;
    if (n > size.keys) {
      size.keys = n;
      size.probes = k;
    }
  }
  if (size.keys === 0) throw new Refused("refusedNoKey");
  size.rate = g.rate(size.keys, size.blocks, size.probes);
  return size;
}

// leastTrue is the least i in [first, last] for which the monotone predicate holds, or 0.
function leastTrue(first, last, is) {
  if (first > last) return 0;
  let lo = first - 1;
  let hi = first;
  while (hi < last && !is(hi)) [lo, hi] = [hi, Math.min(2 * hi, last)];
  if (hi === last && !is(hi)) return 0;
  while (lo + 1 < hi) {
    const mid = lo + Math.floor((hi - lo) / 2);
    if (is(mid)) hi = mid;
    else lo = mid;
  }
  return hi;
}

// describe is what `bloomery plan --json` says about a layout's plan.
export function describe(layout, p) {
  const bytes = Math.ceil(p.bits / 8) * (layout === "counting" ? 4 : 1);
  const bitsPerKey = layout === "counting" ? (bytes * 8) / p.keys : p.bits / p.keys;
  const overhead = bitsPerKey / rate.textbook(p.rate) - 1;
  const [hit, miss] = cacheLines(layout, p);
  return {
    layout,
    keys: p.keys,
    rate: p.rate,
    one_in: 1 / p.rate,
    bits: p.bits,
    probes: p.probes,
    bytes,
    bits_per_key: bitsPerKey,
    overhead: isFinite(overhead) ? overhead : null,
    rate_at_double: rateAt(layout, p, 2 * p.keys),
    cache_lines_per_hit: hit,
    cache_lines_per_miss: miss,
    file_bytes: fileBytes(Math.ceil(bytes / 8) * 8),
  };
}

// fileBytes is the size of a file with one section: three pages, the section, and a
// checksum for each MiB and for the checksums.
function fileBytes(section) {
  return 12288 + section + (Math.ceil(section / 1048576) + 1) * 4;
}

function cacheLines(layout, p) {
  if (layout === "split") return [1, 1];
  if (layout === "classic") return classicLines(p);
  const [found, absent] = [2, 1 + Math.sqrt(p.rate)];
  if (layout === "paired") return [found, absent];
  const lanes = Math.trunc(p.probes / 2);
  const each = 4 * (1 - ((8 - lanes) * (7 - lanes)) / (8 * 7));
  return [each * found, each * absent];
}

function classicLines(p) {
  const fill = rate.classic(p.keys * p.probes, p.bits, 1);
  const elsewhere = Math.max(1 - 512 / p.bits, 0);
  const series = (ratio) => {
    let sum = 0;
    let term = 1;
    for (let i = 0; i < p.probes; i++) {
      sum += term;
      term *= ratio;
    }
    return sum;
  };
  return [series(elsewhere), series(fill * elsewhere)];
}
