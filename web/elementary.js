// The elementary functions of internal/elementary, with the same result to the last
// bit: sizes and rates computed here are those of the program. That package's comments
// say which algorithms they are; those of log1p and expm1 are FreeBSD's, with this notice:
//
//	Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
//
//	Developed at SunPro, a Sun Microsystems, Inc. business.
//	Permission to use, copy, modify, and distribute this
//	software is freely granted, provided that this notice
//	is preserved.
//
// JavaScript's +, -, *, / and Math.sqrt round as IEEE 754 says, and it fuses nothing.
// Math.exp and the like may differ between browsers, so none of them is used.

const float = new Float64Array(1);
const halves = new Uint32Array(float.buffer);
const low = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 0 : 1; // the index of the low half
const high = 1 - low;

// frexp is x as a fraction, 0.5 to 1, and an exponent of 2, for x > 0.
export function frexp(x) {
  if (x === 0 || !isFinite(x)) return [x, 0];
  let exponent = 0;
  if (Math.abs(x) < 2.2250738585072014e-308) {
    x *= 4503599627370496;
    exponent = -52;
  }
  float[0] = x;
  exponent += ((halves[high] >>> 20) & 0x7ff) - 1022;
  halves[high] = ((halves[high] & 0x800fffff) | (1022 << 20)) >>> 0;
  return [float[0], exponent];
}

// power2 is 2^e for e from -1022 to 1023.
function power2(e) {
  halves[low] = 0;
  halves[high] = ((e + 1023) << 20) >>> 0;
  return float[0];
}

// ldexp is x * 2^e, rounded once.
export function ldexp(x, e) {
  if (x === 0 || !isFinite(x)) return x;
  const [fraction, own] = frexp(x);
  e += own;
  if (e < -1080) return x < 0 ? -0 : 0;
  if (e > 1024) return x < 0 ? -Infinity : Infinity;
  if (e > 1023) return fraction * 2 * power2(e - 1);
  if (e < -1021) return fraction * power2(e + 60) * power2(-60); // only the second rounds
  return fraction * power2(e);
}

// fma is x*y + z, rounded once, for numbers of ordinary size (Boldo and Melquiond 2008,
// "Emulation of FMA and correctly rounded sums"): the product and the sums are split into
// a rounded part and its error, and the errors are added with rounding to odd, so that
// the last addition rounds correctly.
export function fma(x, y, z) {
  const product = x * y;
  const split = 134217729; // 2^27 + 1
  let t = split * x;
  const xh = t - (t - x);
  const xl = x - xh;
  t = split * y;
  const yh = t - (t - y);
  const yl = y - yh;
  const productError = xl * yl - (product - xh * yh - xl * yh - xh * yl);

  const s = z + productError;
  let b = s - z;
  const sError = z - (s - b) + (productError - b);
  const sum = product + s;
  b = sum - product;
  const sumError = product - (sum - b) + (s - b);

  let odd = sError + sumError;
  b = odd - sError;
  const lost = sError - (odd - b) + (sumError - b);
  if (lost !== 0) {
    float[0] = odd;
    if ((halves[low] & 1) === 0) {
      if (lost > 0 === odd > 0) halves[low] |= 1;
      else if (halves[low] === 0) {
        halves[low] = 0xffffffff;
        halves[high]--;
      } else halves[low]--;
      odd = float[0];
    }
  }
  return sum + odd;
}

const expLn2High = 0.69314718055966295651160180568695068359375;
const expLn2Low = 0.28235290563031577122588448175013436025525412068e-12;
const logLn2High = 6.9314718036912381649e-1;
const logLn2Low = 1.90821492927058770002e-10;

const expSeries = [
  1.984126984126984127e-4, 1.3888888888888888889e-3, 8.3333333333333333333e-3,
  4.1666666666666666667e-2, 1.6666666666666666667e-1, 0.5, 1,
];

// roundToEven is the nearest integer, the even one of two.
function roundToEven(x) {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

export function exp(x) {
  if (x > 7.09782712893384e2) return Infinity;
  if (x < -746) return 0;
  const k = roundToEven(Math.LOG2E * x);
  let r = fma(-k, expLn2High, x);
  r = fma(-k, expLn2Low, r);
  r *= 1 / 16;
  let sum = 2.4801587301587301587e-5;
  for (const coefficient of expSeries) sum = fma(sum, r, coefficient);
  r *= sum;
  for (let i = 0; i < 3; i++) r *= 2 + r;
  return ldexp(fma(r, 2 + r, 1), k);
}

const logSeries = [
  6.66666666666673513e-1, 3.999999999940941908e-1, 2.857142874366239149e-1, 2.222219843214978396e-1,
  1.818357216161805012e-1, 1.531383769920937332e-1, 1.479819860511658591e-1,
];

function polynomial(x, c) {
  let sum = c[c.length - 1];
  for (let i = c.length - 2; i >= 0; i--) sum = c[i] + x * sum;
  return sum;
}

const logOdd = [logSeries[0], logSeries[2], logSeries[4], logSeries[6]];
const logEven = [logSeries[1], logSeries[3], logSeries[5]];

export function log(x) {
  if (x === 0) return -Infinity;
  if (x === Infinity) return x;
  let [fraction, exponent] = frexp(x);
  if (fraction < Math.SQRT1_2) {
    fraction *= 2;
    exponent--;
  }
  const f = fraction - 1;
  const s = f / (2 + f);
  const s2 = s * s;
  const s4 = s2 * s2;
  const odd = s2 * polynomial(s4, logOdd);
  const even = s4 * polynomial(s4, logEven);
  const rest = odd + even;
  const half = 0.5 * f * f;
  return exponent * logLn2High - (half - (s * (half + rest) + exponent * logLn2Low) - f);
}

export function log2(x) {
  const [fraction, exponent] = frexp(x);
  if (fraction === 0.5) return exponent - 1;
  return log(fraction) * Math.LOG2E + exponent;
}

// power is x^n for x >= 0 and a whole n below 2^53.
export function power(x, n) {
  if (n === 0 || x === 1) return 1;
  if (x === 0) return 0;
  const most = 4096;
  let result = 1;
  let resultExponent = 0;
  let [square, exponent] = frexp(x);
  for (; n !== 0; n = Math.floor(n / 2)) {
    if (exponent < -most || exponent > most) {
      resultExponent += exponent;
      break;
    }
    if (n % 2 === 1) {
      result *= square;
      resultExponent += exponent;
    }
    square = square * square;
    exponent *= 2;
    if (square < 0.5) {
      square *= 2;
      exponent--;
    }
  }
  return ldexp(result, resultExponent);
}

const stirling = [
  8.33333333333329678849e-2, -2.77777777728775536470e-3, 7.93650558643019558500e-4,
  -5.95187557450339963135e-4, 8.36339918996282139126e-4, -1.63092934096575273989e-3,
];

// logFactorial is log n! for a whole n >= 0.
export function logFactorial(n) {
  if (n < 7) {
    let product = 1;
    for (let i = 2; i <= n; i++) product *= i;
    return log(product);
  }
  const x = n + 1;
  const z = 1 / x;
  const series = polynomial(z * z, stirling);
  return (x - 0.5) * (log(x) - 1) + (4.18938533204672725052e-1 + z * series);
}

// log1p is log(1+x) for x >= -1.
export function log1p(x) {
  const size = Math.abs(x);
  if (x === -1) return -Infinity;
  if (x === Infinity || size < 2 ** -54) return x;
  if (size < 2 ** -29) return x - x * x * 0.5;
  if (x > -0.2928932188134524755991556378951509607151640623115259634116 && x < 0.4142135623730950488016887242096980785696718753769480731767) {
    return logNear(0, x, 0);
  }
  let u = x;
  let lost = 0;
  if (x < 9007199254740992) {
    u = 1 + x;
    lost = (u >= 2 ? 1 - (u - x) : x - (u - 1)) / u;
  }
  float[0] = u;
  let k = (halves[high] >>> 20) - 1023;
  const top = halves[high] & 0xfffff;
  if (top < 0x6a09e || (top === 0x6a09e && halves[low] < 0x667f3bcd)) {
    halves[high] = top | (1023 << 20);
  } else {
    k++;
    halves[high] = top | (1022 << 20);
  }
  return logNear(k, float[0] - 1, lost);
}

function logNear(k, f, lost) {
  const half = 0.5 * f * f;
  const s = f / (2 + f);
  const s2 = s * s;
  const rest = s2 * polynomial(s2, logSeries);
  if (k === 0) return f - (half - s * (half + rest));
  return k * logLn2High - (half - (s * (half + rest) + (k * logLn2Low + lost)) - f);
}

// expm1 is e^x - 1.
export function expm1(x) {
  const size = Math.abs(x);
  if (x > 7.09782712893383973096e2) return Infinity;
  if (x <= -3.88162421113569373274e1) return -1;
  if (size < 2 ** -54) return x;
  if (size <= Math.LN2 / 2) return expNear(x, 0, 0);
  let k = x < 0 ? -1 : 1;
  if (size >= 1.5 * Math.LN2) k = Math.trunc(Math.LOG2E * x + (x < 0 ? -0.5 : 0.5));
  const h = x - k * logLn2High;
  const l = k * logLn2Low;
  return expNear(h - l, h - (h - l) - l, k);
}

const expm1Series = [
  1, -3.33333333333331316428e-2, 1.58730158725481460165e-3,
  -7.93650757867487942473e-5, 4.00821782732936239552e-6, -2.01099218183624371326e-7,
];

function expNear(x, lost, k) {
  const halfX = 0.5 * x;
  const half = x * halfX;
  const r1 = polynomial(half, expm1Series);
  const t = 3 - r1 * halfX;
  let e = half * ((r1 - t) / (6 - x * t));
  if (k === 0) return x - (x * e - half);
  e = x * (e - lost) - lost - half;
  if (k === -1) return 0.5 * (x - e) - 0.5;
  if (k === 1 && x < -0.25) return -2 * (e - (x + 0.5));
  if (k === 1) return 1 + 2 * (x - e);
  if (k <= -2 || k > 56) return ldexp(1 - (e - x), k) - 1;
  if (k < 20) return ldexp(1 - ldexp(1, -k) - (e - x), k);
  return ldexp(x - (e + ldexp(1, -k)) + 1, k);
}
