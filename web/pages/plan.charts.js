// The planner's three charts. Every point is a rate or a size that `bloomery plan` gives.

import { decades, drawChart, steps } from "./chart.js";
import { binarySize, commas, fixed, general } from "./human.js";
import { describe, plan, rateAt, Refused } from "./sizing.js";

const mostTextbookProbes = 16;
const curvePoints = 120;
const lowestRate = 1e-20;

const superscripts = { "-": "\u207b", 0: "\u2070", 1: "\u00b9", 2: "\u00b2", 3: "\u00b3", 4: "\u2074", 5: "\u2075", 6: "\u2076", 7: "\u2077", 8: "\u2078", 9: "\u2079" };

// tenTo writes a power of ten.
function tenTo(x) {
  const e = Math.round(Math.log10(x));
  if (e === 0) return "1";
  return "10" + String(e).replace(/./g, (c) => superscripts[c]);
}

// attempt is the plan, or null if the layout has none.
function attempt(layout, want) {
  try {
    return plan(layout, want);
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

const decadeBelow = (x) => Number("1e" + Math.floor(Math.log10(x)));

// bySpace is the rate against bits per key: textbook filters for each k and for the best,
// paired lines, split blocks, and the plan.
export function bySpace(figure, chosen, p, t, oneIn) {
  const bitsPerKey = p.bits / p.keys;
  const widest = bitsPerKey > 128 ? 32 : Math.max(24, Math.min(8 * Math.ceil(bitsPerKey / 4), 64), 16 * Math.ceil(bitsPerKey / 16));
  const keys = Math.min(Math.max(p.keys, 1e6), 2 ** 38);
  const curve = (layout, probes) => {
    const points = [];
    for (let i = 1; i <= curvePoints; i++) {
      const made = attempt(layout, { keys, bits: Math.floor(((widest * i) / curvePoints) * keys), probes });
      if (made) points.push([made.bits / made.keys, made.rate]);
    }
    return points;
  };
  const best = curve("classic", 0);
  let lowest = best[best.length - 1][1];
  if (bitsPerKey <= widest) lowest = Math.min(lowest, p.rate);
  lowest = Math.max(decadeBelow(lowest), lowestRate);
  const lines = [];
  for (let k = 1; k <= mostTextbookProbes; k++) {
    lines.push({ name: t("lineK", { k }), label: "k = " + k, end: true, quiet: true, style: "context", points: curve("classic", k) });
  }
  lines.push({ name: t("lineBest"), style: "bound", points: best });
  lines.push({ name: t("lineSplit"), style: "cool", points: curve("split", 0) });
  lines.push({ name: t("linePaired"), style: "main", points: curve("paired", 0) });
  let step = 4;
  while (widest / step > 12) step *= 2;
  const rows = [4, 8, 12, 16, 20, 24].map((x) => [x, ...lines.filter((l) => !l.quiet).map((l) => at(l.points, x))]);
  drawChart(figure, {
    name: t("chartA"),
    height: figure.clientWidth > 700 ? 440 : undefined,
    x: { label: t("axisBitsPerKey"), from: 0, to: widest, ticks: steps(widest, step), format: (x) => fixed(x, 1) },
    y: { label: t("axisRate"), from: lowest, to: 1, log: true, ticks: decades(lowest, 1, 10, tenTo), format: oneIn },
    lines,
    marks: [{ x: bitsPerKey, y: p.rate, label: `${t("thePlan")}: ${t(chosen)}, ${oneIn(p.rate)}` }],
    table: {
      head: [t("axisBitsPerKey"), ...lines.filter((l) => !l.quiet).map((l) => l.name)],
      rows: rows.map((row) => row.map((v, i) => (i === 0 ? String(v) : v === undefined ? "-" : oneIn(v)))),
    },
  }, t);
  return keys;
}

// at is the value of a line near x.
function at(points, x) {
  let best;
  for (const point of points) if (!best || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
  return best && Math.abs(best[0] - x) < 0.5 ? best[1] : undefined;
}

const styles = { paired: "main", split: "cool", classic: "good", counting: "main" };
const lineNames = { paired: "linePaired", split: "lineSplit", classic: "lineClassic", counting: "lineCounting" };

// byOverfill is the rate of each layout's plan from a tenth of its keys to ten times.
export function byOverfill(figure, chosen, plans, target, t, oneIn) {
  const shown = Object.keys(plans).filter((layout) => layout !== "counting" || chosen === "counting").filter((layout) => layout !== "paired" || chosen !== "counting");
  let lowest = 0.1;
  const lines = shown.map((layout) => {
    const p = plans[layout];
    const points = [];
    for (let i = 0; i <= 80; i++) {
      const n = Math.max(Math.round(10 ** ((2 * i) / 80 - 1) * p.keys), 1);
      const point = [n / p.keys, rateAt(layout, p, n)];
      if (points.length > 0 && point[0] === points[points.length - 1][0]) continue;
      points.push(point);
      if (layout === chosen && point[1] > 0) lowest = Math.min(lowest, point[1]);
    }
    return { name: t(lineNames[layout]), style: styles[layout], points };
  });
  lowest = Math.max(decadeBelow(lowest), lowestRate);
  const times = [0.5, 1, 1.5, 2, 3, 5, 10];
  const p = plans[chosen];
  drawChart(figure, {
    name: t("chartB"),
    x: { label: t("axisFill"), from: 0.1, to: 10, log: true, ticks: [0.1, 0.2, 0.5, 1, 2, 5, 10].map((x) => ({ at: x, label: x + "\u00d7" })), format: (x) => t("times", { x: general(x, 2) }) },
    y: { label: t("axisRate"), from: lowest, to: 1, log: true, ticks: decades(lowest, 1, 8, tenTo), format: oneIn },
    lines,
    rules: target < 0.99 ? [{ axis: "y", at: target, label: t("target") + ": " + oneIn(target) }] : [],
    marks: [{ x: 1, y: p.rate }, ...[2, 5].map((x) => ({ x, y: rateAt(chosen, p, x * p.keys), label: oneIn(rateAt(chosen, p, x * p.keys)) })).filter((m) => m.y < 0.9)],
    table: {
      head: [t("axisFill"), ...lines.map((line) => line.name)],
      rows: times.map((x) => [x + "\u00d7", ...shown.map((layout) => oneIn(rateAt(layout, plans[layout], Math.max(Math.round(x * plans[layout].keys), 1))))]),
    },
  }, t);
}

// byKeys is the memory against the number of keys.
export function byKeys(figure, chosen, p, rate, probes, t) {
  const layouts = chosen === "counting" ? ["counting", "paired"] : [chosen, "counting"];
  const counts = [];
  for (let e = 3; e <= 12; e += 0.5) counts.push(Math.round(10 ** e));
  const lines = layouts.map((layout, i) => ({
    name: t(lineNames[layout]),
    style: i === 0 ? "main" : "cool",
    points: counts.flatMap((keys) => {
      const made = attempt(layout, { keys, rate, probes });
      return made ? [[keys, describe(layout, made).bytes]] : [];
    }),
  }));
  lines.push({ name: t("lineKeys"), style: "bound", points: counts.map((keys) => [keys, 64 * keys]) });
  const sizes = [2 ** 10, 2 ** 20, 2 ** 30, 2 ** 40];
  const own = describe(chosen, p).bytes;
  drawChart(figure, {
    name: t("chartC"),
    x: { label: t("axisKeys"), from: 1e3, to: 1e12, log: true, ticks: decades(1e3, 1e12, 10, tenTo), format: (x) => general(x, 2) },
    y: { label: t("axisMemory"), from: 2 ** 9, to: 2 ** 43, log: true, ticks: sizes.map((at) => ({ at, label: binarySize(at).replace(".0", "") })), format: (x) => binarySize(Math.round(x)) },
    lines,
    rules: [[2 ** 20, "ruleCache", "right"], [2 ** 27, "ruleValkey", "left", true], [2 ** 29, "ruleString"], [2 ** 34, "ruleMemory"]].map(([at, key, side, below]) => ({ axis: "y", at, label: t(key), side, below })),
    marks: [{ x: p.keys, y: own, label: binarySize(own) }],
    table: {
      head: [t("axisKeys"), ...lines.map((line) => line.name)],
      rows: [0, 2, 4, 6, 8, 10, 12, 14, 16, 18].map((i) => [commas(counts[i]), ...lines.map((line) => (line.points[i] ? binarySize(line.points[i][1]) : "-"))]),
    },
  }, t);
}
