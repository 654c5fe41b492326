// Pictures of a filter: its last minutes, its parts, and a key's bits.

import { element } from "./page.js";
import { inN, percent, short, whole } from "./console.text.js";

const svgSpace = "http://www.w3.org/2000/svg";
const kinds = ["new", "seen", "found", "absent"];
const shown = 300; // seconds

// drawSeries draws what was counted each second, the newest at the right.
export function drawSeries(root, series, t) {
  let svg = root.querySelector("svg");
  if (!svg) {
    svg = document.createElementNS(svgSpace, "svg");
    svg.setAttribute("viewBox", "0 0 300 100");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    for (const y of [0, 50, 100]) {
      const line = document.createElementNS(svgSpace, "line");
      for (const [key, value] of Object.entries({ x1: 0, x2: 300, y1: y, y2: y })) line.setAttribute(key, value);
      svg.append(line);
    }
    for (const kind of kinds) {
      const path = document.createElementNS(svgSpace, "path");
      path.setAttribute("class", kind);
      svg.append(path);
    }
    const legend = element("ul", { class: "legend" }, element("li", { class: "muted", "data-most": "" }));
    for (const kind of kinds) legend.append(element("li", { "data-series": kind }, element("i", { class: kind }), t(kind) + " ", element("b", {}, "0")));
    root.replaceChildren(legend, svg);
  }
  const most = Math.max(1, ...series.flatMap((s) => kinds.map((kind) => s[kind])));
  root.querySelector("[data-most]").textContent = "↑ " + short(most);
  const now = series.at(-1)?.time ?? 0;
  for (const kind of kinds) {
    const points = series.map((s) => [shown - (now - s.time) / 1000, 100 - (99 * s[kind]) / most]).filter(([x]) => x >= 0);
    svg.querySelector("." + kind).setAttribute("d", points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""));
    root.querySelector(`[data-series="${kind}"] b`).textContent = short(series.at(-1)?.[kind] ?? 0);
  }
}

// drawPopulation draws how full each part of a layer is, a square for each.
export function drawPopulation(root, population, t) {
  if (!population) {
    root.replaceChildren(element("p", { class: "muted small" }, t("verdictHidden")));
    return;
  }
  const fills = population.set.map((n, i) => n / population.read[i]);
  const low = Math.min(...fills);
  const high = Math.max(...fills);
  const mean = fills.reduce((sum, f) => sum + f, 0) / fills.length;
  const wide = Math.ceil(Math.sqrt(fills.length));
  const canvas = element("canvas", { width: wide, height: Math.ceil(fills.length / wide), role: "img" });
  const note = t("populationNote", { parts: whole(fills.length), low: percent(low), high: percent(high), mean: percent(mean) });
  canvas.setAttribute("aria-label", note);
  const style = getComputedStyle(document.documentElement);
  const [empty, full] = ["--sunken", "--accent"].map((name) => rgb(style.getPropertyValue(name)));
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(canvas.width, canvas.height);
  fills.forEach((fill, i) => {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = empty[c] + (full[c] - empty[c]) * Math.min(fill, 1);
    image.data[4 * i + 3] = 255;
  });
  pen.putImageData(image, 0, 0);
  root.replaceChildren(canvas, element("p", { class: "muted small" }, note + (population.sampled ? " " + t("sampledNote") : "")));
}

function rgb(text) {
  const hex = text.trim().slice(1);
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// drawVerdict says what a filter answers about a key, and why.
export function drawVerdict(root, verdict, data, t) {
  const rate = data?.rate || data?.target || 0.01;
  const parts = [element("p", { class: "note " + (verdict.found ? "warn" : "good"), "data-verdict": verdict.found ? "seen" : "new" }, verdict.found ? t("verdictSeen", { n: inN(rate) }) : t("verdictNew"))];
  if (verdict.hidden) parts.push(element("p", { class: "muted small" }, t("verdictHidden")));
  if (verdict.hash) parts.push(element("p", { class: "small mono" }, t("hashIs", { hash: verdict.hash.join(" ") })));
  (verdict.layers ?? []).forEach((layer, i) => {
    const set = layer.bits.filter((bit) => bit.set).length;
    const values = { layer: i, block: layer.block === undefined ? "" : whole(layer.block), lines: layer.lines?.join(", "), set, all: layer.bits.length };
    parts.push(element("p", { class: "small" }, t(layer.lines ? "placeOf" : "placesOf", values)));
    parts.push(layer.lines ? block(layer) : ruler(layer, data?.all_layers[i]?.bits));
  });
  if (verdict.layers?.some((layer) => layer.lines)) parts.push(element("p", { class: "muted small" }, t("blockPicture")));
  root.replaceChildren(...parts);
}

// block draws the block of 8 lines, 64 squares of 8 bits each.
function block(layer) {
  const first = layer.block * 4096;
  const squares = Array.from({ length: 512 }, (_, i) => element("i", { class: layer.lines.includes(Math.floor(i / 64)) ? "line" : "" }));
  for (const bit of layer.bits) squares[Math.floor((bit.at - first) / 8)].className = bit.set ? "set" : "clear";
  return element("div", { class: "bits", "aria-hidden": "true" }, ...squares);
}

// ruler draws bits that lie anywhere.
function ruler(layer, bits) {
  const drawn = element("div", { class: "ruler", "aria-hidden": "true" });
  for (const bit of layer.bits) {
    const mark = element("i", { class: bit.set ? "" : "clear" });
    mark.style.left = `${(100 * bit.at) / Math.max(bits ?? 1, 1)}%`;
    drawn.append(mark);
  }
  return drawn;
}
