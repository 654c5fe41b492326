// The formulas of internal/rate, in the same order of operations and with the same
// results to the last bit. docs/maths.md derives them. Letters: n keys, m bits, k probes.

import { exp, expm1, log, log1p, log2, logFactorial, power } from "./elementary.js";

// textbook is the number of bits per key of a textbook filter of rate p with the best k.
export function textbook(p) {
  return -log2(p) / Math.LN2;
}

// hashFloor is the chance that a query has the 64-bit hash of one of n keys.
export function hashFloor(n) {
  return n / 18446744073709551616;
}

function choose(n, k) {
  if (k < 0 || k > n) return 0;
  let c = 1;
  for (let i = 0; i < k; i++) c = (c * (n - i)) / (i + 1);
  return Math.round(c);
}

// signedChoose[k][s] is (-1)^s C(k,s).
const signedChoose = Array.from({ length: 9 }, (_, k) =>
  Array.from({ length: 9 }, (_, s) => (s <= k ? choose(k, s) * (1 - 2 * (s & 1)) : 0)),
);

const exactBelow = 65536; // with fewer bits the rate of a classic filter is computed exactly

// classic is the rate of m bits with n keys, each of k bits anywhere.
export function classic(n, m, k) {
  const throws = n * k;
  if (n === 0) return 0;
  if (throws > 128 * m) return 1;
  if (m < exactBelow) return Math.min(classicExact(throws, m, k) + hashFloor(n), 1);
  const x = throws / m;
  const fill = -expm1(throws * log1p(-1 / m));
  let spread = x * x * (1 / 2 - x / 3);
  if (x > 1e-3) {
    const clear = exp(-x);
    spread = clear * (1 - (1 + x) * clear);
  }
  const rate = power(fill, k) * exp((((k * (k - 1)) / 2) * spread) / (m * fill * fill));
  return Math.min(rate + hashFloor(n), 1);
}

function classicExact(throws, m, k) {
  const most = Math.min(k, m);
  const left = new Float64Array(most + 1);
  left[0] = 1;
  const step = [];
  for (let u = 0; u <= most; u++) {
    step.push(new Float64Array(u + 1));
    step[u][u] = 1 - u / m;
    if (u > 0) step[u][u - 1] = u / m;
  }
  for (; throws > 0; throws = Math.floor(throws / 2)) {
    if (throws % 2 === 1) {
      for (let u = most; u >= 0; u--) {
        let sum = 0;
        for (let v = 0; v <= u; v++) sum += step[u][v] * left[v];
        left[u] = sum;
      }
    }
    if (throws > 1) square(step);
  }
  const different = new Float64Array(most + 1);
  different[0] = 1;
  for (let i = 0; i < k; i++) {
    for (let j = most; j >= 0; j--) {
      different[j] = different[j] * (j / m);
      if (j > 0) different[j] += (different[j - 1] * (m - (j - 1))) / m;
    }
  }
  let rate = 0;
  for (let j = 0; j <= most; j++) rate += different[j] * left[j];
  return rate;
}

function square(a) {
  for (let u = a.length - 1; u >= 0; u--) {
    for (let v = 0; v <= u; v++) {
      let sum = 0;
      for (let w = v; w <= u; w++) sum += a[u][w] * a[w][v];
      a[u][v] = sum;
    }
  }
}

// lineMiss[K][s] is the chance that a key leaves s bits of a line clear.
const lineMiss = Array.from({ length: 9 }, (_, k) => {
  const q = new Float64Array(9);
  if (k === 0) return q;
  for (let s = 0; s <= k; s++) {
    for (let t = 0; t <= s; t++) q[s] += ((choose(s, t) * choose(8 - s, k - t)) / choose(8, k)) * power(63 / 64, t);
  }
  return q;
});

const fewBlocks = 1024;
const fullLoad = 131072;

// paired is the rate of n keys in blocks of paired lines, k bits a key.
export function paired(n, blocks, k) {
  const load = n / blocks;
  if (load > fullLoad) return 1;
  const rate = blocks < fewBlocks ? pairedBinomial(n, blocks, k / 2) : pairedPoisson(load, k / 2);
  return Math.min(rate + hashFloor(n), 1);
}

function pairedPoisson(load, perLine) {
  const both = (load * 2) / 56;
  const only = (load * 12) / 56;
  const miss = lineMiss[perLine];
  const term = new Float64Array(9);
  for (let s = 0; s <= perLine; s++) term[s] = signedChoose[perLine][s] * exp(-only * (1 - miss[s]));
  const [first, last] = bulk(both);
  for (let s = 0; s <= perLine; s++) term[s] *= power(miss[s], first);
  let weight = exp(-both);
  if (both > 0) weight = exp(first * log(both) - both - logFactorial(first));
  let rate = 0;
  for (let x = first; x <= last; x++) {
    let g = 0;
    for (let s = 0; s <= perLine; s++) {
      g += term[s];
      term[s] *= miss[s];
    }
    rate += weight * g * g;
    weight *= both / (x + 1);
  }
  return rate;
}

function bulk(mean) {
  const width = 12 * Math.sqrt(mean) + 30;
  return [Math.floor(Math.max(mean - width, 0)), mean + width];
}

function pairedBinomial(n, blocks, perLine) {
  const beta = 2 / (56 * blocks);
  const a = 12 / (56 * blocks) / (1 - beta);
  const [first, last] = bulk(n * beta);
  const g0 = new Float64Array(9);
  const next = new Float64Array(9);
  const e = new Float64Array(9);
  for (let s = 0; s <= perLine; s++) {
    const q = lineMiss[perLine][s];
    const hit = a * (1 - q);
    g0[s] = signedChoose[perLine][s] * exp(first * log(q) + (n - first) * log1p(-hit));
    next[s] = q / (1 - hit);
    e[s] = hit / (1 - hit);
  }
  let rate = 0;
  let weight = 1;
  let weights = 0;
  const end = Math.min(last, n);
  for (let x = first; x <= end; x++) {
    rate += weight * sumOfSquares(g0, e, n - x, perLine);
    for (let s = 0; s <= perLine; s++) g0[s] *= next[s];
    weights += weight;
    weight *= (((n - x) / (x + 1)) * beta) / (1 - beta);
  }
  return rate / weights;
}

const scratch = new Float64Array(9);

function sumOfSquares(terms, e, n, perLine) {
  const term = scratch;
  term.set(terms);
  let sum = 0;
  let signed = 1;
  for (let r = 0; r <= n; r++) {
    let g = 0;
    for (let s = 0; s <= perLine; s++) {
      g += term[s];
      term[s] *= e[s];
    }
    sum += signed * g * g;
    if (Math.abs(signed * g * g) <= 1e-16 * Math.abs(sum)) break;
    signed *= -(n - r) / (r + 1);
  }
  return sum;
}

// split is the rate of n keys in split blocks.
export function split(n, blocks) {
  let rate = 0;
  for (let s = 0; s <= 8; s++) {
    const miss = power(31 / 32, s);
    rate += signedChoose[8][s] * exp(n * log1p(-(1 - miss) / blocks));
  }
  return Math.min(Math.max(rate, 0) + hashFloor(n), 1);
}
