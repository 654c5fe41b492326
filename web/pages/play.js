// The playground: a filter whose bits can be watched.

import { element, startPage } from "./page.js";
import { setState, state } from "./i18n.js";
import { texts } from "./play.texts.js";
import { texts as fileTexts } from "./play.file.texts.js";
import { Grid } from "./play.grid.js";
import { layouts, Model, randomWord, shape, Strangers } from "./play.model.js";
import { drawTheory, drawTheta } from "./play.charts.js";
import { startLessons } from "./play.lessons.js";
import { startFile } from "./play.file.js";
import { Way } from "./play.way.js";
import * as human from "./human.js";

const by = (id) => document.getElementById(id);
const catalogue = { en: { ...texts.en, ...fileTexts.en }, zh: { ...texts.zh, ...fileTexts.zh } };

const strangers = new Strangers(5000);
const frameTime = 5; // milliseconds of a frame for adding words; the rest is for drawing
const chartEvery = 250; // milliseconds between charts while words go in

let t = startPage(catalogue, (next, why) => {
  t = next;
  if (why === "address") return load();
  grid.arrange(model); // in the other language, or colours
  show();
});

let model;
let typed = []; // the words that the reader added, in their order
let random = 0; // how many random words are in
let waiting = 0; // random words that are still to be added
let pace = 1; // how many of them at most in a frame: a second for all, to be watched
let dots = []; // measured rates: [n, rate]
let formula = []; // the formula's rates, where it is no function of n alone
let lastChart = 0;
let said = null; // what the verdict says, instead of the answer to what is typed

const grid = new Grid(by("canvas"), (layer, i) => layerName(layer, i));
const way = new Way(grid, () => t);

const oneIn = (rate) => {
  const text = human.oneIn(rate);
  return document.documentElement.lang === "en" ? text : text.replace("less than 1 in ", "< 1/").replace("1 in ", "1/");
};

function layerName(layer, i) {
  if (model.layout === "window") return t("generationName", { age: model.turns - layer.turn, keys: layer.keys });
  return t("layerName", { number: i + 1, keys: layer.keys, room: layer.room });
}

// start makes an empty filter.
function start(options) {
  model = new Model(options);
  typed = [];
  random = 0;
  waiting = 0;
  dots = [];
  formula = [];
  said = null;
  by("word").value = "";
  grid.fresh.clear();
  grid.asked = null;
  grid.cursor = null;
  grid.arrange(model);
  measure();
}

// load reads the address.
function load() {
  const values = state();
  const layout = layouts.includes(values.get("layout")) ? values.get("layout") : "classic";
  const first = !values.has("layout") && !values.has("w") && !values.has("r");
  start({ layout, m: first ? 64 : Number(values.get("m")), k: first ? 2 : Number(values.get("k")) });
  const words = first ? ["kiwi", "plum"] : (values.get("w") ?? "").split(",").filter(Boolean).slice(0, 200);
  for (const word of words) {
    put(word);
    measure();
  }
  for (const end = Math.min(Number(values.get("r")) || 0, 5000); random < end; ) {
    putRandom();
    measureNow();
  }
  by("word").value = first ? "pineapple" : (values.get("q") ?? "");
  grid.settle();
  measure();
  show();
}

function save() {
  if (model.scheme) return;
  setState({ layout: model.layout, m: model.grows ? "" : model.m, k: model.grows ? "" : model.k, w: typed.slice(0, 60).join(","), r: random || "", q: by("word").value.trim() });
}

// put adds a word to the filter and to the picture.
function put(word, fresh = false) {
  const layers = model.layers.length;
  const added = model.add(word);
  if (!typed.includes(word)) typed.push(word);
  drawn(layers, added, fresh);
  return added;
}

function putRandom(fresh = false) {
  const layers = model.layers.length;
  drawn(layers, model.add(randomWord(random++)), fresh);
}

function drawn(layers, added, fresh) {
  if (model.layers.length !== layers) grid.arrange(model);
  else if (added.cells.length > 0) grid.change(model.layers.indexOf(added.layer), added.cells, fresh);
}

// pump adds waiting words, as many as a frame has time for, and draws once.
function pump() {
  const until = performance.now() + frameTime;
  grid.settle();
  for (let i = 0; i < pace && waiting > 0 && performance.now() < until; i++) {
    putRandom(waiting <= 1);
    waiting--;
    measureNow();
  }
  if (waiting > 0) {
    showFacts();
    if (performance.now() - lastChart > chartEvery) showCharts();
    requestAnimationFrame(pump);
    return;
  }
  requestAnimationFrame(() => {
    measure();
    show();
  });
}

function addRandom(count) {
  said = null;
  const idle = waiting === 0;
  waiting += count;
  pace = Math.ceil(waiting / 60);
  if (idle) requestAnimationFrame(pump);
}

// measure asks for words that were never added.
function measure() {
  const n = model.size;
  dots = dots.filter(([at]) => at < n);
  dots.push([n, strangers.measure(model)]);
  if (model.grows) {
    formula = formula.filter(([at]) => at < n);
    formula.push([n, model.rate(n)]);
  }
}

// measureNow measures if enough words have gone in since the last time.
function measureNow() {
  if (model.size >= dots[dots.length - 1][0] * 1.1 + 5) measure();
}

function show() {
  showControls();
  showAnswer();
  showFacts();
  showWords();
  save();
  lastChart = performance.now();
  requestAnimationFrame(showCharts);
}

function showControls() {
  const box = by("layouts");
  if (box.childElementCount === 0) {
    for (const layout of layouts) {
      const button = element("button", { type: "button", "data-layout": layout });
      button.addEventListener("click", () => change({ layout, m: NaN, k: NaN }));
      box.append(button);
    }
  }
  for (const button of box.children) {
    button.textContent = t(button.dataset.layout);
    button.setAttribute("aria-pressed", button.dataset.layout === model.layout && !model.scheme);
  }
  by("about").textContent = model.scheme ? t("aboutScheme", { scheme: model.scheme }) : t("about_" + model.layout);
  const knobs = { classic: { m: [8, 1024, 1], k: [1, 16, 1] }, split: { m: [256, 4096, 256] }, paired: { m: [4096, 16384, 4096], k: [2, 16, 2] }, counting: { k: [2, 16, 2] } }[model.layout] ?? {};
  by("m-label").textContent = t(model.layout === "classic" ? "mLabel" : "mBlocks");
  for (const name of ["m", "k"]) {
    by(name + "-field").hidden = !knobs[name] || model.scheme !== "";
    if (!knobs[name]) continue;
    const [least, most, step] = knobs[name];
    Object.assign(by(name), { min: least, max: Math.max(most, model[name]), step, value: model[name] });
    by(name + "-out").textContent = human.commas(model[name]);
  }
  by("turning").hidden = model.layout !== "window";
  by("remove").hidden = model.layout !== "counting";
  by("legend").replaceChildren(...[["", "legendClear"], ["one", "legendOne"], ["many", "legendMany"], ["fresh", "legendFresh"], ...(model.layout === "counting" ? [["full", "legendFull"]] : [])].map(([style, key]) => {
    const item = element("li");
    item.innerHTML = `<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="${style}" width="10" height="10" rx="2"/></svg>`;
    item.append(t(key));
    return item;
  }));
}

// change makes another filter and adds the same words.
function change(options) {
  const words = typed;
  const count = random + waiting;
  const word = by("word").value;
  start({ ...options, scheme: "" });
  for (const one of words) put(one);
  by("word").value = word;
  show();
  if (count > 0) addRandom(count);
}

const list = (items) => items.slice(0, 12).join(t("comma")) + (items.length > 12 ? "\u2009\u2026" : "");

function showAnswer() {
  const verdict = by("verdict");
  const word = by("word").value.trim();
  const asked = word ? model.ask(word) : null;
  const shown = asked ? asked.layers[asked.at] : null;
  grid.show(shown ? { layer: asked.at, bits: shown.bits } : null);
  way.show(asked);
  const kinds = { new: "good", member: "cool", wrong: "bad", lost: "bad" };
  for (const kind of Object.values(kinds)) verdict.classList.remove(kind);
  if (model.lost.length > 0 && (!asked || said)) {
    verdict.classList.add("bad");
    verdict.textContent = (said ? said + " " : "") + t("lostWords", { words: list(model.lost), count: model.lost.length });
    return;
  }
  if (said || !asked) {
    verdict.textContent = said ?? t("typeOne");
    return;
  }
  verdict.classList.add(kinds[asked.verdict]);
  const clear = [...new Set(shown.bits.filter((bit) => !bit.set).map((bit) => bit.position))];
  const key = asked.verdict === "new" ? (clear.length === 1 ? "isNew1" : "isNew") : { member: "isMember", wrong: "isWrong", lost: "isLost" }[asked.verdict];
  verdict.textContent = t(key, { word, bits: list(clear), k: shown.bits.length, culprits: list(asked.culprits) });
}

function showFacts() {
  const n = model.size;
  const [, measured] = dots[dots.length - 1];
  const found = Math.round(measured * strangers.count);
  const rows = [
    ["words", t("factWords"), human.commas(n)],
    ["bits", t(model.layout === "counting" ? "factCounters" : "factBits"), human.commas(model.layers.reduce((sum, layer) => sum + layer.m, 0))],
    ["fill", t("factFill"), human.percent(model.fill)],
    ["formula", t("factFormula"), n === 0 ? "0" : oneIn(model.rate(n))],
    ["measured", t("factMeasured"), found === 0 ? t("noneOf", { count: human.commas(strangers.count) }) : t("foundOf", { rate: oneIn(measured), found: human.commas(found) })],
  ];
  if (model.layout === "counting") rows.push(["saturated", t("factSaturated"), human.commas(model.saturated)], ["lost", t("factLost"), human.commas(model.lost.length)]);
  if (model.grows) rows.splice(1, 0, ["layers", t(model.layout === "window" ? "factGenerations" : "factLayers"), String(model.layers.length)]);
  const facts = by("facts");
  facts.replaceChildren();
  for (const [key, name, value] of rows) facts.append(element("dt", {}, name), element("dd", { "data-fact": key }, value));
}

function showCharts() {
  lastChart = performance.now();
  drawTheory(by("theory"), model, dots, formula, t, oneIn);
  by("best").hidden = model.grows || model.layout === "split" || model.scheme !== "";
  if (!by("best").hidden) by("best-note").textContent = drawTheta(by("theta"), model, t, oneIn);
}

function showWords() {
  const chips = by("chips");
  const lost = new Set(model.lost);
  const words = [...new Set([...model.lost.slice(0, 24), ...typed.filter((word) => model.words.has(word)).slice(-40)])];
  chips.replaceChildren(...words.map((word) => {
    const held = model.words.get(word);
    const button = element("button", { type: "button", class: lost.has(word) ? "lost" : undefined, "data-word": word }, held?.times > 1 ? `${word} \u00d7 ${held.times}` : word);
    button.addEventListener("click", () => type(word));
    return button;
  }));
  const rest = [...model.words.keys()].filter((word) => !typed.includes(word)).length;
  if (rest > 0) chips.append(element("span", { class: "hint" }, t("andRandom", { count: human.commas(rest) })));
}

function type(word) {
  by("word").value = word;
  said = null;
  grid.settle();
  way.all();
  showAnswer();
  save();
}

// add is the button.
function add(word) {
  if (!word) return;
  grid.settle();
  const before = model.fill;
  const { isNew } = put(word, true);
  model.findLost();
  measure();
  by("word").value = word;
  show();
  said = t(isNew ? "addedNew" : before === model.fill ? "addedSeen" : "addedAgain", { word });
  showAnswer();
}

function remove(word) {
  if (!word) return;
  grid.settle();
  const { removed, wrong, cells } = model.remove(word);
  if (removed) grid.change(0, cells, false);
  measure();
  show();
  said = t(!removed ? "removeRefused" : wrong ? "removedWrong" : "removed", { word });
  showAnswer();
}

// find types a word that was never added and is found, if a look at many finds one.
function find() {
  for (let i = 0; i < 200_000; i++) {
    const word = randomWord(20_000_000 + i);
    if (model.ask(word).verdict === "wrong") return type(word);
  }
  by("word").value = "";
  said = t("noStranger");
  showAnswer();
}

by("words").addEventListener("submit", (event) => {
  event.preventDefault();
  add(by("word").value.trim());
  by("word").select();
});
by("word").addEventListener("input", () => type(by("word").value));
by("remove").addEventListener("click", () => remove(by("word").value.trim()));
by("stranger").addEventListener("click", find);
by("turn").addEventListener("click", () => {
  model.turn();
  grid.settle();
  grid.arrange(model);
  dots = [];
  formula = [];
  measure();
  show();
});
by("clear").addEventListener("click", () => {
  start({ layout: model.layout, m: model.m, k: model.k, scheme: model.scheme });
  show();
});
for (const button of document.querySelectorAll("[data-random]")) button.addEventListener("click", () => addRandom(Number(button.dataset.random)));
for (const name of ["m", "k"]) {
  by(name).addEventListener("input", () => change({ layout: model.layout, ...shape(model.layout, name === "m" ? Number(by("m").value) : model.m, name === "k" ? Number(by("k").value) : model.k) }));
}

// The cell under the pointer, or where the arrow keys are, and its words.
function read() {
  const cursor = grid.cursor;
  grid.draw();
  if (!cursor) {
    by("reading").textContent = "";
    return;
  }
  const layer = model.layers[cursor.layer];
  const words = [...(layer.owners.get(cursor.position) ?? [])];
  const count = layer.counts[cursor.position];
  const where = model.grows ? layerName(layer, cursor.layer) + t("comma") : "";
  const place = layer.layout === "paired" || layer.layout === "counting"
    ? t("placePaired", { block: Math.floor(cursor.position / 4096), line: Math.floor((cursor.position % 4096) / 512), lane: Math.floor((cursor.position % 512) / 64), bit: cursor.position % 64 })
    : layer.layout === "split" ? t("placeSplit", { block: Math.floor(cursor.position / 256), lane: Math.floor((cursor.position % 256) / 32), bit: cursor.position % 32 }) : t("placeBit", { bit: cursor.position });
  const what = count === 0 ? t("cellClear") : t(model.layout === "counting" ? "cellCount" : "cellSet", { count, words: list(words) });
  by("reading").textContent = where + place + t("colon") + what;
}

const bits = by("bits");
bits.addEventListener("pointermove", (event) => {
  const box = by("canvas").getBoundingClientRect();
  const at = grid.at(event.clientX - box.left, event.clientY - box.top);
  if (at?.position === grid.cursor?.position && at?.layer === grid.cursor?.layer) return;
  grid.cursor = at;
  read();
});
for (const leave of ["pointerleave", "blur"]) {
  bits.addEventListener(leave, () => {
    grid.cursor = null;
    read();
  });
}
bits.addEventListener("keydown", (event) => {
  if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"].includes(event.key)) return;
  event.preventDefault();
  grid.move(event.key);
  read();
});

let width = 0;
new ResizeObserver(() => {
  if (bits.clientWidth === width) return;
  width = bits.clientWidth;
  grid.arrange(model);
  way.draw();
}).observe(bits);

load();
startLessons(() => t, {
  // set makes a filter with words, without the reader's.
  set(options, words = []) {
    start(options);
    for (const word of words) put(word);
    measure();
    show();
  },
  add, remove, type, find, addRandom,
  typed: () => by("word").value,
});
startFile(() => t);
