// Charts: lines over a linear or logarithmic plane, as SVG, with a reading under the
// pointer or the arrow keys, and the same numbers as a table.
//
//   drawChart(figure, {
//     name: "Rate against space",
//     x: {label, from, to, log, ticks: [{at, label}], format: (x) => text},
//     y: the same,
//     lines: [{name, points: [[x, y], ...], style: "main", label, end: true, quiet: true}],
//     rules: [{axis: "x" or "y", at, label, side: "right", below: true}],
//     marks: [{x, y, label}],     a dot with a label
//     dots: [[x, y], ...],        measured values
//     table: {head: [text], rows: [[text]]},
//   }, t)
//
// A line with end has its label at its end. Quiet lines are not read out. Colours are
// those of style.css: main, cool, good, bound, context.

import { element } from "./page.js";

const svgSpace = "http://www.w3.org/2000/svg";
const space = { top: 12, right: 16, bottom: 42, left: 62 };

function svg(name, attributes = {}, text) {
  const made = document.createElementNS(svgSpace, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// decades are ticks at powers of ten from the first to the last, at most about `most`.
export function decades(from, to, most, label) {
  const first = Math.ceil(Math.log10(from) - 1e-9);
  const last = Math.floor(Math.log10(to) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const ticks = [];
  for (let e = last; e >= first; e -= step) ticks.push({ at: Number("1e" + e), label: label(Number("1e" + e)) });
  return ticks;
}

// steps are ticks at the multiples of step up to `to`.
export function steps(to, step, label = String) {
  const ticks = [];
  for (let i = 0; i * step <= to * (1 + 1e-9); i++) ticks.push({ at: i * step, label: label(i * step) });
  return ticks;
}

// scale maps values of an axis to pixels.
function scale(axis, first, last) {
  const on = axis.log ? Math.log10 : (v) => v;
  const from = on(axis.from);
  const to = on(axis.to);
  const at = (v) => first + ((on(v) - from) / (to - from)) * (last - first);
  at.back = (pixel) => {
    const v = from + ((pixel - first) / (last - first)) * (to - from);
    return axis.log ? 10 ** v : v;
  };
  return at;
}

export function drawChart(figure, chart, t) {
  figure.classList.add("chart");
  const old = figure.chart;
  if (old) old.observer.disconnect();
  const canvas = element("div");
  const reading = element("p", { class: "reading", "aria-live": "polite" });
  const parts = [canvas, reading];
  parts.push(legendOf(chart));
  if (chart.table) parts.push(tableOf(chart, t, old?.open ?? false, figure));
  figure.replaceChildren(...parts);
  const own = (figure.chart = { open: old?.open ?? false });
  let width = 0;
  const draw = () => {
    const now = Math.max(280, Math.round(figure.clientWidth));
    if (now === width) return;
    width = now;
    canvas.replaceChildren(picture(chart, width, reading, t));
  };
  draw();
  own.observer = new ResizeObserver(draw);
  own.observer.observe(figure);
}

// legendOf names the lines, each with a piece of it.
function legendOf(chart) {
  const list = element("ul", { class: "legend" });
  for (const line of chart.lines) {
    if (!line.name || line.quiet) continue;
    const piece = svg("svg", { width: 22, height: 8, "aria-hidden": "true" });
    piece.append(svg("path", { class: "line " + (line.style ?? ""), d: "M1 4H21" }));
    list.append(element("li", {}, piece, line.name));
  }
  return list;
}

function tableOf(chart, t, open, figure) {
  const head = element("tr", {}, ...chart.table.head.map((text) => element("th", { scope: "col" }, text)));
  const rows = chart.table.rows.map((row) =>
    element("tr", {}, element("th", { scope: "row" }, row[0]), ...row.slice(1).map((text) => element("td", {}, text))),
  );
  const table = element("table", {}, element("caption", {}, chart.name), element("thead", {}, head), element("tbody", {}, ...rows));
  const details = element("details", { open }, element("summary", {}, t("asTable")), element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": chart.name }, table));
  details.addEventListener("toggle", () => (figure.chart.open = details.open));
  return details;
}

function picture(chart, width, reading, t) {
  const height = chart.height ?? Math.round(Math.min(420, Math.max(250, width * 0.58)));
  const right = space.right + (chart.lines.some((line) => line.end) ? (width < 480 ? 34 : 64) : 0);
  const x = scale(chart.x, space.left, width - right);
  const y = scale(chart.y, height - space.bottom, space.top);
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "application", tabindex: 0,
    "aria-roledescription": "chart", "aria-label": t("chartOf", { name: chart.name }) + ". " + t("chartKeys"),
  });
  axes(root, chart, x, y, width, height, right);
  const clip = "clip" + Math.random().toString(36).slice(2);
  const window = svg("clipPath", { id: clip });
  window.append(svg("rect", { x: space.left, y: space.top - 2, width: width - right - space.left, height: height - space.bottom - space.top + 4 }));
  root.append(window);
  const placed = [];
  for (const rule of chart.rules ?? []) drawRule(root, rule, x, y, width, height, right, placed);
  const lines = svg("g", { "clip-path": `url(#${clip})` });
  for (const line of chart.lines) {
    const d = line.points.map(([px, py], i) => `${i ? "L" : "M"}${x(px).toFixed(1)} ${y(Math.max(py, chart.y.log ? chart.y.from / 1e6 : py)).toFixed(1)}`);
    lines.append(svg("path", { class: "line " + (line.style ?? ""), d: d.join("") }));
  }
  for (const [px, py] of chart.dots ?? []) lines.append(svg("circle", { class: "measured", cx: x(px), cy: y(py), r: 2.5 }));
  root.append(lines);
  for (const line of chart.lines) drawLabel(root, chart, line, x, y, width, right, placed);
  for (const mark of chart.marks ?? []) drawMark(root, chart, mark, x, y, width, right);
  read(root, chart, x, y, width, height, right, reading);
  return root;
}

function axes(root, chart, x, y, width, height, right) {
  const bottom = height - space.bottom;
  let lastEnd = -Infinity;
  for (const tick of [...chart.x.ticks].sort((a, b) => a.at - b.at)) {
    const at = x(tick.at);
    root.append(svg("line", { class: "grid", x1: at, x2: at, y1: space.top, y2: bottom }));
    const half = tick.label.length * 3.4;
    if (at - half < lastEnd + 4) continue;
    lastEnd = at + half;
    root.append(svg("text", { x: at, y: bottom + 17, "text-anchor": "middle" }, tick.label));
  }
  for (const tick of chart.y.ticks) {
    const at = y(tick.at);
    root.append(svg("line", { class: "grid", x1: space.left, x2: width - right, y1: at, y2: at }));
    root.append(svg("text", { x: space.left - 8, y: at + 4, "text-anchor": "end" }, tick.label));
  }
  root.append(svg("line", { class: "axis", x1: space.left, x2: width - right, y1: bottom, y2: bottom }));
  root.append(svg("text", { x: (space.left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, chart.x.label));
}

function drawRule(root, rule, x, y, width, height, right, placed) {
  if (rule.axis === "x") {
    const at = x(rule.at);
    root.append(svg("line", { class: "rule", x1: at, x2: at, y1: space.top, y2: height - space.bottom }));
    const left = at > (space.left + width - right) / 2;
    root.append(svg("text", { class: "halo", x: at + (left ? -5 : 5), y: space.top + 11, "text-anchor": left ? "end" : "start" }, rule.label));
    return;
  }
  const at = y(rule.at);
  if (at < space.top || at > height - space.bottom) return;
  root.append(svg("line", { class: "rule", x1: space.left, x2: width - right, y1: at, y2: at }));
  const x1 = rule.side === "right" ? width - right - 6 : space.left + 8;
  if (rule.label) root.append(svg("text", { class: "halo", x: x1, y: rule.below ? at + 14 : at - 5, "text-anchor": rule.side === "right" ? "end" : "start" }, rule.label));
  placed.push(at);
}

// drawLabel writes a line's label at its right end, or where it leaves the picture at the
// bottom. A label that would cover another one is left out.
function drawLabel(root, chart, line, x, y, width, right, placed) {
  if (!line.label) return;
  const inside = line.points.filter(([px, py]) => py >= chart.y.from && py <= chart.y.to && px <= chart.x.to);
  if (inside.length === 0) return;
  const last = inside[inside.length - 1];
  const atEnd = x(last[0]) > width - right - 3;
  if (line.end && atEnd) {
    const at = y(last[1]) + 4;
    if (placed.some((other) => other.end !== undefined && Math.abs(other.end - at) < 12)) return;
    placed.push({ end: at });
    root.append(svg("text", { class: line.style ?? "", x: x(last[0]) + 6, y: at }, line.label));
    return;
  }
  if (line.end) return;
  const [px, py] = line.at === undefined ? last : inside[Math.min(inside.length - 1, Math.floor(inside.length * line.at))];
  root.append(svg("text", { class: `halo ${line.style ?? ""}`, x: x(px) + (line.dx ?? 8), y: y(py) + (line.dy ?? -8), "text-anchor": line.anchor ?? "start" }, line.label));
}

function drawMark(root, chart, mark, x, y, width, right) {
  if (mark.x < chart.x.from || mark.x > chart.x.to) return;
  const px = x(mark.x);
  const py = y(Math.min(Math.max(mark.y, chart.y.from), chart.y.to));
  root.append(svg("circle", { class: "dot", cx: px, cy: py, r: 5 }));
  if (!mark.label) return;
  const left = px > space.left + (width - right - space.left) * 0.6;
  root.append(svg("text", { class: "halo mark", x: px + (left ? -10 : 10), y: py - 10, "text-anchor": left ? "end" : "start" }, mark.label));
}

// read shows the values of the lines at the pointer, or at the place that the arrow keys
// have reached.
function read(root, chart, x, y, width, height, right, reading) {
  const heard = chart.lines.filter((line) => line.name && !line.quiet && line.points.length > 0);
  if (heard.length === 0) return;
  const cross = svg("g", { visibility: "hidden" });
  const upright = svg("line", { class: "cross", y1: space.top, y2: height - space.bottom });
  cross.append(upright);
  const cursors = heard.map(() => svg("circle", { class: "cursor", r: 3.5 }));
  cross.append(...cursors);
  root.append(cross);
  let at = (space.left + width - right) / 2;
  const show = () => {
    at = Math.min(Math.max(at, space.left), width - right);
    cross.setAttribute("visibility", "visible");
    upright.setAttribute("x1", at);
    upright.setAttribute("x2", at);
    const value = x.back(at);
    const texts = [];
    heard.forEach((line, i) => {
      const point = nearest(line.points, value, chart.x.log);
      const out = Math.abs(x(point[0]) - at) > 12 || point[1] < chart.y.from || point[1] > chart.y.to;
      cursors[i].setAttribute("visibility", out ? "hidden" : "inherit");
      if (out) return;
      cursors[i].setAttribute("cx", x(point[0]));
      cursors[i].setAttribute("cy", y(point[1]));
      texts.push(`${line.name}: ${chart.y.format(point[1])}`);
    });
    reading.textContent = [chart.x.format(value), ...texts].join(" \u00b7 ");
  };
  const hide = () => {
    cross.setAttribute("visibility", "hidden");
    reading.textContent = "";
  };
  root.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect();
    at = ((event.clientX - box.left) / box.width) * width;
    show();
  });
  root.addEventListener("pointerleave", hide);
  root.addEventListener("blur", hide);
  root.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    at += by * (width / 60);
    show();
  });
}

function nearest(points, value, log) {
  const on = log ? Math.log : (v) => v;
  let best = points[0];
  for (const point of points) {
    if (Math.abs(on(point[0]) - on(value)) < Math.abs(on(best[0]) - on(value))) best = point;
  }
  return best;
}
