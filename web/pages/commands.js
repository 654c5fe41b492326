// The lines that `bloomery plan` prints to paste.

import { log } from "../elementary.js";
import { commas, shortest, underscores } from "./human.js";
import { plan, Refused } from "./sizing.js";

const makers = { paired: "bloom.New", split: "bloom.NewSplitBlock", classic: "classic.New", counting: "bloom.NewCounting" };
const kinds = { split: " --kind splitblock", classic: " --kind classic", counting: " --kind counting", paired: "" };
const redisMostKeys = 2 ** 30; // of BF.RESERVE in RedisBloom

// commands returns {build, dedupe, redis, go, noShell, noRedis} for what was asked for and
// the plan that it gave. Lines that the plan does not have are undefined; noShell and
// noRedis are keys of the pages' texts, and say why.
export function commands(layout, want, p) {
  const c = { go: goLine(layout, want) };
  const [rate, refused] = pasteRate(layout, want, p);
  const byProbes = want.probes !== 0;
  if (refused) c.noShell = "noShellRefused";
  else if (byProbes && layout !== "classic") c.noShell = "noShellProbes";
  else if (layout === "classic" && (want.bits !== 0 || byProbes)) {
    c.build = `bloomery build -o keys.bloom --kind classic -n ${p.keys} --bits ${p.bits} --probes ${p.probes} keys.txt`;
  } else c.build = `bloomery build -o keys.bloom${kinds[layout]} -n ${p.keys} -p ${rate} keys.txt`;
  if (c.build && layout === "paired") c.dedupe = `bloomery dedupe -n ${p.keys} -p ${rate} keys.txt`;
  if (refused || layout === "counting" || layout === "split" || byProbes) return c;
  if (layout === "paired") c.redis = `BF.RESERVE keys ${rate} ${p.keys} LAYOUT PAIRED`;
  else if (p.keys > redisMostKeys) c.noRedis = "noRedis";
  else c.redis = `BF.RESERVE keys ${rate} ${p.keys}`;
  return c;
}

// pasteRate is the rate that together with n gives the same filter, or one no larger.
function pasteRate(layout, want, p) {
  let rate = want.rate;
  if (rate === 0 || (want.keys !== 0 && want.bits !== 0)) {
    const digits = power10(3 - Math.floor(log10(p.rate)));
    rate = Math.ceil(p.rate * digits) / digits;
  }
  let refused = false;
  try {
    plan(layout, { keys: p.keys, rate });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    refused = true;
  }
  return [rate < 1e-6 ? shortest(rate) : String(rate), refused];
}

const power10 = (e) => Number("1e" + e);

// log10 is as in Go: a power of two first, so that the floor is the program's.
function log10(x) {
  float[0] = x;
  const exponent = Number((bits[0] >> 52n) & 0x7ffn) - 1022;
  const fraction = x / 2 ** exponent;
  const log2 = fraction === 0.5 ? exponent - 1 : log(fraction) * Math.LOG2E + exponent;
  return log2 * (Math.LN2 / Math.LN10);
}
const float = new Float64Array(1);
const bits = new BigUint64Array(float.buffer);

function goLine(layout, want) {
  if (want.keys !== 0 && want.rate !== 0 && want.bits === 0 && want.probes === 0) {
    return `f, err := ${makers[layout]}(${underscores(want.keys)}, ${shortest(want.rate)})`;
  }
  if (want.keys === 0 && want.rate === 0) {
    return `f, err := classic.Config{Bits: ${underscores(want.bits)}, Probes: ${want.probes}}.New()`;
  }
  const fields = [];
  if (want.keys !== 0) fields.push("Keys: " + underscores(want.keys));
  if (want.rate !== 0) fields.push("Rate: " + shortest(want.rate));
  if (want.bits !== 0) fields.push("Bits: " + underscores(want.bits));
  if (want.probes !== 0) fields.push("Probes: " + want.probes);
  const [room, method] = makers[layout].split(".");
  return `f, err := ${room}.Config{${fields.join(", ")}}.${method}()`;
}

export const redisLimit = commas(redisMostKeys);
