// The console's numbers as people read them.

import { binarySize, commas, general, round } from "./human.js";

// inN is N of a rate of 1 in N.
export function inN(rate) {
  const n = 1 / rate;
  if (n > 1e15) return "10^15";
  return n < 100 ? general(n, 3) : round(n);
}

export const whole = (n) => commas(Math.round(n));
export const size = (bytes) => binarySize(bytes);

// short is a number in few characters: 12,345 or 1.2M.
export function short(n) {
  if (n < 100_000) return n < 10 && n !== Math.round(n) ? n.toFixed(1) : whole(n);
  let unit = 0;
  for (; n >= 1000 && unit < 4; unit++) n /= 1000;
  return general(n, 3) + " kMGT"[unit].trim();
}

export function percent(share) {
  return (100 * share).toFixed(share < 0.1 ? 1 : 0) + "%";
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
  if (seconds < 1e-3) return general(seconds * 1e6, 3) + " µs";
  return seconds < 1 ? general(seconds * 1e3, 3) + " ms" : general(seconds, 3) + " s";
}

export function date(ms) {
  return new Date(ms).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "medium" });
}
