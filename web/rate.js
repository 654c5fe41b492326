// The false-positive rate of paired lines, before any key is added. docs/maths.md
// derives it; the letters are those there.

function choose(n, k) {
  if (k < 0 || k > n) {
    return 0;
  }
  let c = 1;
  for (let i = 0; i < k; i++) {
    c = (c * (n - i)) / (i + 1);
  }
  return Math.round(c);
}

// lineMiss[K][s] is the chance that a key leaves s given bits of a line clear.
const lineMiss = Array.from({ length: 9 }, (_, k) => {
  const q = new Float64Array(9);
  for (let s = 0; s <= k; s++) {
    for (let t = 0; t <= s; t++) {
      q[s] += ((choose(s, t) * choose(8 - s, k - t)) / choose(8, k)) * (63 / 64) ** t;
    }
  }
  return q;
});

const fewBlocks = 1024; // with fewer, the number of keys in a block is taken as binomial
const fullLoad = 1 << 17; // keys per block that leave no bit clear

// pairedRate is the expected rate of paired lines with n keys, B blocks and k bits per
// key.
export function pairedRate(n, blocks, k) {
  const load = n / blocks, perLine = k / 2;
  if (load > fullLoad) {
    return 1;
  }
  const rate = blocks < fewBlocks ? binomial(n, blocks, perLine) : poisson(load, perLine);
  return Math.min(rate + n / 2 ** 64, 1);
}

// bulk is the range that has nearly all values of a count.
function bulk(mean) {
  const width = 12 * Math.sqrt(mean) + 30;
  return [Math.floor(Math.max(mean - width, 0)), mean + width];
}

const signed = (perLine, s) => choose(perLine, s) * (1 - 2 * (s & 1));

function poisson(load, perLine) {
  const both = (load * 2) / 56, only = (load * 12) / 56, q = lineMiss[perLine];
  const [first, last] = bulk(both);
  const term = new Float64Array(9);
  for (let s = 0; s <= perLine; s++) {
    term[s] = signed(perLine, s) * Math.exp(-only * (1 - q[s])) * q[s] ** first;
  }
  let logFactorial = 0;
  for (let i = 2; i <= first; i++) {
    logFactorial += Math.log(i);
  }
  let weight = both > 0 ? Math.exp(first * Math.log(both) - both - logFactorial) : 1;
  let rate = 0;
  for (let x = first; x <= last; x++) {
    let g = 0;
    for (let s = 0; s <= perLine; s++) {
      g += term[s];
      term[s] *= q[s];
    }
    rate += weight * g * g;
    weight *= both / (x + 1);
  }
  return rate;
}

function binomial(n, blocks, perLine) {
  const beta = 2 / (56 * blocks), a = 12 / (56 * blocks) / (1 - beta), q = lineMiss[perLine];
  const [first, last] = bulk(n * beta);
  const g0 = new Float64Array(9), next = new Float64Array(9), e = new Float64Array(9);
  for (let s = 0; s <= perLine; s++) {
    const hit = a * (1 - q[s]);
    g0[s] = signed(perLine, s) * Math.exp(first * Math.log(q[s]) + (n - first) * Math.log1p(-hit));
    next[s] = q[s] / (1 - hit);
    e[s] = hit / (1 - hit);
  }
  let rate = 0, weight = 1, weights = 0;
  for (let x = first; x <= Math.min(last, n); x++) {
    rate += weight * sumOfSquares(g0, e, n - x, perLine);
    for (let s = 0; s < 9; s++) {
      g0[s] *= next[s];
    }
    weights += weight;
    weight *= (((n - x) / (x + 1)) * beta) / (1 - beta);
  }
  return rate / weights;
}

function sumOfSquares(g0, e, n, perLine) {
  const term = Float64Array.from(g0);
  let sum = 0, sign = 1;
  for (let r = 0; r <= n; r++) {
    let g = 0;
    for (let s = 0; s <= perLine; s++) {
      g += term[s];
      term[s] *= e[s];
    }
    sum += sign * g * g;
    if (Math.abs(sign * g * g) <= 1e-16 * Math.abs(sum)) {
      break;
    }
    sign *= -(n - r) / (r + 1);
  }
  return sum;
}
