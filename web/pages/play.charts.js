// The playground's charts: the formula's rate with measured dots, and the rate for each k.

import { decades, drawChart, steps } from "./chart.js";
import { commas, fixed } from "./human.js";

const superscripts = { "-": "\u207b", 0: "\u2070", 1: "\u00b9", 2: "\u00b2", 3: "\u00b3", 4: "\u2074", 5: "\u2075", 6: "\u2076", 7: "\u2077", 8: "\u2078", 9: "\u2079" };

function tenTo(x) {
  const e = Math.round(Math.log10(x));
  return e === 0 ? "1" : "10" + String(e).replace(/./g, (c) => superscripts[c]);
}

// roundStep is a step of 1, 2 or 5 times a power of ten, for at most six ticks.
function roundStep(most) {
  const rough = most / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  return Math.max(1, [1, 2, 5, 10].find((x) => x * power >= rough) * power);
}

export function drawTheory(figure, model, dots, formula, t, oneIn) {
  const n = model.size;
  const design = model.grows ? 0 : Math.max(8, Math.round((model.m * Math.LN2) / model.k));
  const most = Math.max(n * 1.25, design, 10);
  const points = model.grows ? formula.filter(([, rate]) => rate > 0) : [];
  if (!model.grows) {
    for (let i = 1; i <= 80; i++) {
      const at = Math.max(Math.round((most * i) / 80), 1);
      if (points.length > 0 && at === points[points.length - 1][0]) continue;
      points.push([at, model.rate(at)]);
    }
  }
  const lowest = 1e-4;
  const seen = dots.filter(([, rate]) => rate >= lowest);
  const step = roundStep(most);
  const rows = [...new Map(dots.map((dot) => [dot[0], dot])).values()].slice(-12);
  drawChart(figure, {
    name: t("theory"),
    height: 260,
    x: { label: t("factWords"), from: 0, to: most, ticks: steps(most, step, commas), format: (x) => commas(Math.round(x)) },
    y: { label: t("rate"), from: lowest, to: 1, log: true, ticks: decades(lowest, 1, 6, tenTo), format: oneIn },
    lines: [{ name: t("formula"), style: "main", points: points.length > 0 ? points : [[0, lowest]] }],
    dots: seen,
    marks: n > 0 ? [{ x: n, y: Math.max(model.rate(n), lowest) }] : [],
    table: {
      head: [t("factWords"), t("formula"), t("measured")],
      rows: rows.map(([at, rate]) => [commas(at), at === 0 ? "0" : oneIn(model.grows ? formula.find(([x]) => x === at)?.[1] ?? 0 : model.rate(at)), rate === 0 ? "0" : oneIn(rate)]),
    },
  }, t);
}

// drawTheta draws the rate of each k for the words that are in, and returns what it says.
export function drawTheta(figure, model, t, oneIn) {
  const n = Math.max(model.size, 1);
  const step = model.layout === "classic" ? 1 : 2;
  const points = [];
  for (let k = step; k <= 16; k += step) points.push([k, model.rateOf(model.layout, n, model.m, k)]);
  const best = points.reduce((a, b) => (b[1] < a[1] ? b : a));
  const own = points.find(([k]) => k === model.k);
  const lowest = Math.max(10 ** Math.floor(Math.log10(Math.min(...points.map(([, rate]) => rate)))), 1e-12);
  drawChart(figure, {
    name: t("bestK"),
    height: 230,
    x: { label: "k", from: 1, to: 16, ticks: [1, 2, 4, 6, 8, 10, 12, 14, 16].map((at) => ({ at, label: String(at) })), format: (k) => "k = " + Math.round(k) },
    y: { label: t("rate"), from: Math.min(lowest, 0.1), to: 1, log: true, ticks: decades(Math.min(lowest, 0.1), 1, 5, tenTo), format: oneIn },
    lines: [{ name: t("rateOfK"), style: "cool", points }],
    rules: [{ axis: "x", at: best[0], label: t("bestIs", { k: best[0] }) }],
    marks: own ? [{ x: own[0], y: own[1] }] : [],
    table: { head: ["k", t("rate")], rows: points.map(([k, rate]) => [String(k), oneIn(rate)]) },
  }, t);
  return t("bestNote", { k: best[0], ideal: fixed((model.m / n) * Math.LN2, 2), n: commas(n) });
}
