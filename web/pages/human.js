// Numbers as people read and write them, as internal/human has them. What the program
// accepts means the same here; here words like "10 billion" and 100亿 are numbers too.

const grouped = /^\d{1,3}([,_]\d{3})+(\.\d+)?$/;

function parseNumber(s) {
  if (grouped.test(s)) s = s.replace(/[,_]/g, "");
  if (!/^[0-9.eE+-]+$/.test(s)) return NaN;
  return Number(s);
}

// whole is x if it is a whole number, apart from the rounding of a product.
function whole(x) {
  const n = Math.round(x);
  if (!(x >= 0) || x > 2 ** 53 || Math.abs(x - n) > 1e-12 * x) return NaN;
  return n;
}

const thousands = { "": 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12 };
const spoken = {
  thousand: 1e3, million: 1e6, mio: 1e6, billion: 1e9, bn: 1e9, trillion: 1e12,
  千: 1e3, 万: 1e4, 百万: 1e6, 千万: 1e7, 亿: 1e8, 十亿: 1e9, 百亿: 1e10, 千亿: 1e11, 万亿: 1e12,
};
const sizes = {
  "": 1, B: 1, k: 2 ** 10, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40,
  KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12,
};

function parseWith(s, suffixes) {
  s = s.trim();
  const digits = s.replace(/[kKMGTiB]+$/, "");
  const unit = suffixes[s.slice(digits.length)];
  return unit === undefined ? NaN : whole(parseNumber(digits.trim()) * unit);
}

// parseCount reads 10000000, 1e7, 10M, "10 million" and 1000万; NaN if it is none.
export function parseCount(s) {
  s = s.trim();
  const words = s.match(/^(.*?)\s*([a-z]+|[\u4e00-\u9fff]+)$/i);
  const unit = words && (spoken[words[2]] ?? spoken[words[2].toLowerCase()]);
  const n = unit ? whole(parseNumber(words[1].trim()) * unit) : parseWith(s, thousands);
  return n >= 1 && n <= 2 ** 44 ? n : NaN;
}

// parseBits reads bits like 1e9 or 2^30, and bytes like 12 GiB.
export function parseBits(s) {
  s = s.trim().replace(/\s*bits?$/i, "").replace(/\s*bytes?$/i, " B");
  const exponent = s.match(/^2\^(\d+)$/);
  if (exponent) return Number(exponent[1]) <= 53 ? 2 ** Number(exponent[1]) : NaN;
  if (!s.endsWith("B")) return parseCount(s);
  const bits = 8 * parseWith(s, sizes);
  return bits > 0 ? bits : NaN;
}

// parseRate reads 0.001, 1e-3, 0.1%, 1/1000, "1 in 1000" and "1 in a million".
export function parseRate(s) {
  s = s.trim();
  let [numerator, denominator] = [s, "1"];
  const at = s.match(/^(.+?)(?:\/| in |\s*分之\s*)(.+)$/);
  if (at) [numerator, denominator] = s.includes("分之") ? [at[2], at[1]] : [at[1], at[2]];
  else if (s.endsWith("%")) [numerator, denominator] = [s.slice(0, -1), "100"];
  else if (s.endsWith("\u2030")) [numerator, denominator] = [s.slice(0, -1), "1000"];
  let y = parseNumber(denominator.trim());
  if (Number.isNaN(y)) y = parseCount(denominator.trim().replace(/^an?\s+/, "1 "));
  const rate = parseNumber(numerator.trim()) / y;
  return rate > 0 && rate < 1 ? rate : NaN;
}

// parseProbes reads k, 1 to 255.
export function parseProbes(s) {
  return /^\d{1,3}$/.test(s.trim()) && Number(s) >= 1 && Number(s) <= 255 ? Number(s) : NaN;
}

// halfToEven corrects what toFixed and toPrecision do with a number exactly between two:
// they round up, and the program rounds to even. exact has more digits, and text fewer.
function halfToEven(x, text, exact) {
  const cut = exact.slice(0, text.length);
  const rest = exact.slice(text.length).replace(".", "").replace(/e.*$/, "");
  const last = Number(cut.replace(/[^0-9]/g, "").slice(-1));
  return /^50*$/.test(rest) && last % 2 === 0 ? cut.replace(/\.$/, "") : text;
}

// fixed is %.*f.
export function fixed(x, digits) {
  const text = x.toFixed(digits);
  if (!isFinite(x) || Math.abs(x) >= 1e21) return text;
  const exact = x.toFixed(60);
  if (digits > 0) return halfToEven(x, text, exact);
  const point = exact.indexOf(".");
  const even = Number(exact[point - 1]) % 2 === 0;
  return even && /^50*$/.test(exact.slice(point + 1)) ? exact.slice(0, point) : text;
}

// general is %.*g.
export function general(x, digits) {
  if (x === 0) return "0";
  if (!isFinite(x)) return x > 0 ? "+Inf" : "-Inf";
  let [fraction, exponent] = x.toExponential(digits - 1).split("e");
  fraction = halfToEven(x, fraction, x.toExponential(60).split("e")[0]);
  exponent = Number(exponent);
  if (exponent < -4 || exponent >= digits) return trimZeros(fraction) + "e" + signed(exponent);
  const all = fraction.replace(".", "").replace("-", "");
  const sign = x < 0 ? "-" : "";
  if (exponent < 0) return sign + trimZeros("0." + "0".repeat(-exponent - 1) + all);
  return sign + trimZeros(all.slice(0, exponent + 1) + "." + all.slice(exponent + 1));
}

const trimZeros = (s) => (s.includes(".") ? s.replace(/\.?0*$/, "") : s);
const signed = (e) => (e < 0 ? "-" : "+") + String(Math.abs(e)).padStart(2, "0");

// shortest is the fewest digits that give x again: Go's 'g' with precision -1.
export function shortest(x) {
  const [fraction, exponent] = x.toExponential().split("e");
  if (Number(exponent) < -4 || Number(exponent) >= 21) return fraction + "e" + signed(Number(exponent));
  return String(x);
}

export function commas(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

// underscores writes n as Go does.
export function underscores(n) {
  return commas(n).replaceAll(",", "_");
}

export function round(x) {
  return x >= 2 ** 63 ? general(x, 3) : commas(BigInt(Math.round(x)));
}

// oneIn is "1 in 1,009".
export function oneIn(rate) {
  const x = 1 / rate;
  if (x === Infinity) return "0";
  if (x > 1e15) return "less than 1 in 10^15";
  return "1 in " + (x < 100 ? general(x, 3) : round(x));
}

export function percent(share) {
  return share === Infinity ? "more than 100%" : fixed(100 * share, 1) + "%";
}

export function binarySize(bytes) {
  if (bytes < 1024) return bytes + " B";
  let x = bytes / 1024;
  let unit = 0;
  for (; x >= 1024; unit++) x /= 1024;
  return fixed(x, 1) + " " + "KMGTPE"[unit] + "iB";
}

export function bytesOf(n) {
  if (n < 1024) return n === 1 ? "1 byte" : n + " bytes";
  return `${commas(n)} bytes (${binarySize(n)})`;
}

// over is an overhead over the textbook's filter.
export function over(overhead) {
  if (overhead === null) return "-";
  if (overhead > 10) return general(overhead + 1, 3) + " times";
  const text = fixed(100 * overhead, 1);
  return (text.startsWith("-") ? "" : "+") + text + "%";
}
