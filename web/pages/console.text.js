// The console's numbers as people read them.

import { binarySize, commas, round } from "./human.js";

// three is a number with three digits that count.
const three = (n) => String(Number(n.toPrecision(3)));

// inN is N of a rate of 1 in N.
export function inN(rate) {
  const n = 1 / rate;
  if (n > 1e15) return "10^15";
  return n < 100 ? three(n) : round(n);
}

export const whole = (n) => commas(Math.round(n));
export const size = (bytes) => binarySize(bytes);

// short is a number in few characters: 12,345 or 1.2M.
export function short(n) {
  if (n < 100_000) return n < 10 && n !== Math.round(n) ? n.toFixed(1) : whole(n);
  let unit = 0;
  for (; n >= 1000 && unit < 4; unit++) n /= 1000;
  return three(n) + " kMGT"[unit].trim();
}

export const kindName = (kind, t) => (kind === "redisbloom" ? "RedisBloom" : t(kind));

export function percent(share) {
  return (100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0) + "%";
}

// lasting is a time in seconds: 3 d, 5 h, 20 min or 40 s.
export function lasting(seconds, t) {
  for (const [unit, of] of [["days", 86_400], ["hours", 3600], ["minutes", 60]]) {
    if (seconds >= 2 * of) return t(unit, { n: Math.floor(seconds / of) });
  }
  return t("seconds", { n: Math.max(Math.round(seconds), 0) });
}

// quick is a time of less than a second or so.
export function quick(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1e-3) return three(seconds * 1e6) + " µs";
  return seconds < 1 ? three(seconds * 1e3) + " ms" : three(seconds) + " s";
}

export function date(ms) {
  return new Date(ms).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "medium" });
}
