// The planner: four letters, of which the reader holds some and the page works out the
// rest, for every layout.

import { copyButton, element, startPage } from "./page.js";
import { setState, state } from "./i18n.js";
import { texts } from "./plan.texts.js";
import { byKeys, byOverfill, bySpace } from "./plan.charts.js";
import { commands, redisLimit } from "./commands.js";
import * as human from "./human.js";
import { describe, layouts, plan, Refused } from "./sizing.js";

const letters = ["n", "p", "m", "k"];
const parse = { n: human.parseCount, p: human.parseRate, m: human.parseBits, k: human.parseProbes };
const complaints = { n: "badCount", p: "badRate", m: "badBits", k: "badProbes" };
const fields = Object.fromEntries(letters.map((letter) => [letter, document.getElementById(letter)]));
const pins = Object.fromEntries(letters.map((letter) => [letter, document.querySelector(`.pin[data-letter="${letter}"]`)]));
const notes = Object.fromEntries(letters.map((letter) => [letter, document.getElementById(letter + "-note")]));

let held = []; // the letters that are held, the oldest first
let layout = "paired";

const pinShape = '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linejoin="round" aria-hidden="true"><path d="M9 3h6l-1 7 4 3v2H6v-2l4-3z"/><path d="M12 15v6"/></svg>';
for (const letter of letters) pins[letter].innerHTML = pinShape;

// hold pins a letter. Of n, p and m two determine the third, so the oldest is let go.
function hold(letter) {
  held = held.filter((other) => other !== letter);
  held.push(letter);
  const three = held.filter((other) => other !== "k");
  if (three.length > 2) release(three[0]);
}

function release(letter) {
  held = held.filter((other) => other !== letter);
}

let t = startPage(texts, (next, why) => {
  t = next;
  if (why === "address") load();
  else update();
});

for (const letter of letters) {
  fields[letter].addEventListener("input", () => {
    if (fields[letter].value.trim() === "") release(letter);
    else hold(letter);
    update(letter);
  });
  fields[letter].addEventListener("blur", () => update());
  pins[letter].addEventListener("click", () => {
    if (held.includes(letter)) release(letter);
    else if (fields[letter].value.trim() !== "") hold(letter);
    update();
  });
}
document.getElementById("inputs").addEventListener("submit", (event) => event.preventDefault());

// load reads the address.
function load() {
  const values = state();
  held = [];
  for (const letter of letters) {
    fields[letter].value = values.get(letter) ?? "";
    if (values.get(letter)) hold(letter);
  }
  if (held.length === 0) {
    fields.n.value = "10 million";
    fields.p.value = "0.1%";
    held = ["n", "p"];
  }
  layout = layouts.includes(values.get("layout")) ? values.get("layout") : "paired";
  update();
}

const oneIn = (rate) => {
  const text = human.oneIn(rate);
  if (document.documentElement.lang === "en") return text;
  return text.replace("less than 1 in ", "< 1/").replace("1 in ", "1/");
};

// request reads the letters that are held. null if one cannot be read.
function request() {
  const value = (letter) => (held.includes(letter) ? parse[letter](fields[letter].value) : 0);
  const want = { keys: value("n"), rate: value("p"), bits: value("m"), probes: value("k") };
  const read = [want.keys, want.rate, want.bits, want.probes];
  letters.forEach((letter, i) => {
    const bad = Number.isNaN(read[i]);
    fields[letter].setAttribute("aria-invalid", bad);
    notes[letter].classList.toggle("bad", bad);
    notes[letter].textContent = bad ? t(complaints[letter]) : "";
  });
  return read.some(Number.isNaN) ? null : want;
}

let soon = 0;

// update works everything out again. typing is the letter whose field must not be touched.
function update(typing) {
  setState({ ...Object.fromEntries(letters.map((letter) => [letter, held.includes(letter) ? fields[letter].value.trim() : ""])), layout: layout === "paired" ? "" : layout });
  for (const letter of letters) {
    const is = held.includes(letter);
    fields[letter].closest(".letter").classList.toggle("held", is);
    pins[letter].setAttribute("aria-pressed", is);
    pins[letter].setAttribute("aria-label", t("pin", { letter }));
    pins[letter].title = t(is ? "pinned" : "free");
  }
  const want = request();
  const results = {};
  for (const name of layouts) {
    if (!want) continue;
    try {
      const p = plan(name, want);
      results[name] = { p, facts: describe(name, p) };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      results[name] = { why: refusal(error) };
    }
  }
  showCards(results);
  const chosen = results[layout];
  showLetters(chosen, typing, want);
  showVerdict(chosen);
  showPlan(chosen);
  showCommands(chosen, want);
  clearTimeout(soon);
  soon = setTimeout(() => showCharts(results, want), typing ? 120 : 0);
}

function refusal(error) {
  const values = { ...error.values };
  if (values.limit) values.limit = human.commas(values.limit);
  for (const key of ["rate", "wanted", "least"]) if (values[key] !== undefined) values[key] = human.general(values[key], 4);
  return t(error.why, values);
}

function showCards(results) {
  const cards = document.getElementById("cards");
  if (cards.childElementCount === 0) {
    for (const name of layouts) {
      const input = element("input", { type: "radio", name: "layout", value: name, checked: name === layout });
      input.addEventListener("change", () => {
        layout = name;
        update();
      });
      cards.append(element("label", { class: "card choice", "data-layout": name }, input, element("span", { class: "body stack" })));
    }
  }
  for (const card of cards.children) {
    const name = card.dataset.layout;
    card.querySelector("input").checked = name === layout;
    const body = card.querySelector(".body");
    const result = results[name];
    const parts = [element("span", { class: "name" }, t(name)), element("p", { class: "for" }, t(name + "For"))];
    if (result?.why) parts.push(element("p", { class: "why" }, result.why));
    if (result?.facts) {
      const f = result.facts;
      parts.push(element("p", { class: "size num" }, human.binarySize(f.bytes)));
      parts.push(factList([
        ["bits_per_key", t("bitsKey"), human.fixed(f.bits_per_key, 2)],
        ["overhead", t("rowOver"), human.over(f.overhead)],
        ["probes", t("kShort"), String(f.probes)],
        ["rate", t("rateShort"), oneIn(f.rate)],
        ["keys", t("rowKeys"), human.commas(f.keys)],
        ["lines", t("linesShort"), t("linesValue", { hit: human.general(f.cache_lines_per_hit, 3), miss: human.general(f.cache_lines_per_miss, 3) }), t("linesHint")],
      ]));
    }
    body.replaceChildren(...parts);
  }
}

function factList(rows) {
  const list = element("dl", { class: "facts" });
  for (const [key, name, value, hint] of rows) {
    list.append(element("dt", { title: hint }, name), element("dd", { "data-fact": key, class: "num" }, value));
  }
  return list;
}

function showLetters(chosen, typing, want) {
  const p = chosen?.p;
  const values = p && { n: human.commas(p.keys), p: oneIn(p.rate), m: human.commas(p.bits), k: String(p.probes) };
  for (const letter of letters) {
    if (held.includes(letter) || letter === typing) continue;
    fields[letter].value = values ? values[letter] : "";
  }
  if (!p || !want) return;
  notes.n.textContent = t("nNote");
  notes.p.textContent = t("pNote", { p: human.general(p.rate, 4) });
  notes.m.textContent = t("mNote", { size: human.binarySize(Math.ceil(p.bits / 8)) });
  notes.k.textContent = held.includes("k") ? t("kNote") : t("bestK");
}

function showVerdict(chosen) {
  const verdict = document.getElementById("verdict");
  verdict.classList.toggle("cool", chosen?.facts !== undefined);
  verdict.classList.toggle("bad", chosen?.facts === undefined);
  if (!chosen) {
    verdict.textContent = letters.map((letter) => notes[letter]).find((note) => note.classList.contains("bad")).textContent;
    return;
  }
  const f = chosen.facts;
  verdict.textContent = f
    ? t(layout === "counting" ? "verdictCounting" : "verdict", { keys: human.commas(f.keys), rate: oneIn(f.rate), size: human.binarySize(f.bytes), bits: human.fixed(f.bits_per_key, 2), k: f.probes })
    : chosen.why;
}

function showPlan(chosen) {
  const list = document.getElementById("plan");
  const f = chosen?.facts;
  if (!f) {
    list.replaceChildren();
    return;
  }
  const optimum = f.overhead === null ? t("noFilter") : t("overValue", { over: human.over(f.overhead), bits: human.fixed(f.bits_per_key / (1 + f.overhead), 2) });
  list.replaceChildren(...factList([
    ["keys", t("rowKeys"), human.commas(f.keys) + " (n)"],
    ["rate", t("rowRate"), t("rateValue", { rate: oneIn(f.rate), p: human.general(f.rate, 4) })],
    ["bits", t("rowBits"), human.commas(f.bits) + " (m)"],
    ["probes", t("rowProbes"), f.probes + " (k)"],
    ["memory", t("rowMemory"), human.bytesOf(f.bytes)],
    ["bits_per_key", t("rowBitsPerKey"), human.fixed(f.bits_per_key, 2)],
    ["overhead", t("rowOver"), optimum],
    ["double", t("rowDouble"), oneIn(f.rate_at_double)],
    ["lines", t("rowLines"), t("linesLong", { hit: human.general(f.cache_lines_per_hit, 3), miss: human.general(f.cache_lines_per_miss, 4) })],
    ["file", t("rowFile"), human.bytesOf(f.file_bytes)],
  ]).childNodes);
}

function showCommands(chosen, want) {
  const box = document.getElementById("commands");
  box.replaceChildren();
  if (!chosen?.p) return;
  const c = commands(layout, want, chosen.p);
  for (const key of ["build", "dedupe", "redis", "go"]) {
    if (!c[key]) continue;
    const button = element("button", { type: "button", "aria-label": `${t("copy")}: ${t(key)}` }, t("copy"));
    copyButton(button, () => c[key], t);
    box.append(element("div", {}, element("h3", {}, t(key)), element("div", { class: "copy" }, element("code", { "data-command": key }, c[key]), button)));
  }
  if (c.noShell) box.append(element("p", { class: "hint", "data-command": "noShell" }, t(c.noShell)));
  if (c.noRedis) box.append(element("p", { class: "hint", "data-command": "noRedis" }, t(c.noRedis, { limit: redisLimit })));
}

function showCharts(results, want) {
  const chosen = results[layout]?.p;
  for (const section of document.querySelectorAll("[data-planned]")) section.hidden = !chosen;
  if (!chosen) return;
  const keys = bySpace(document.getElementById("chart-a"), layout, chosen, t, oneIn);
  document.getElementById("a-note").textContent = t("chartANote", { keys: human.commas(keys) });
  const target = want.rate || chosen.rate;
  const plans = Object.fromEntries(Object.entries(results).filter(([, r]) => r.p).map(([name, r]) => [name, r.p]));
  byOverfill(document.getElementById("chart-b"), layout, plans, target, t, oneIn);
  byKeys(document.getElementById("chart-c"), layout, chosen, Math.max(target, 1e-12), want.probes, t);
}

load();
