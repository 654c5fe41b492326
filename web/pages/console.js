// The console: the server at a glance, the list of its filters, and one filter's page.
// All it knows comes from /api/v1; a stream of events keeps it current.

import { element, startPage } from "./page.js";
import { setState, state } from "./i18n.js";
import { parseCount, parseRate } from "./human.js";
import { texts } from "./console.texts.js";
import { ask, idOf, mostShown, nameFrom, pathOf, usePassword, watch } from "./console.api.js";
import { List, makeFilter, spark } from "./console.list.js";
import { Detail } from "./console.detail.js";
import { change } from "./console.dialog.js";
import { date, kindName, lasting, percent, quick, short, size, whole } from "./console.text.js";

const $ = (selector) => document.querySelector(selector);
const samples = 300; // seconds of history
const reloadTime = 15_000; // between two listings when names come and go

let t;
let server = null; // what /server said
let totals = null; // of the last event
let history = []; // {ops, keys, found, looked} of each second
let stop = null; // ends the stream
let watched = ""; // what it shows
let listed = 0; // when the list was last read
let loading = false;
let loadedAll = false;

const list = new List({ onOpen: open, onShown: () => watchLater(), onSort: keepState });
const detail = new Detail({ change: (about) => change(t, { access: server?.access, ...about }), leave: () => show(null), find: (id) => list.filters.get(id), moved: (name) => show(idOf(name)) });

// The state: f is the filter shown, q the search, sort and down the order.
function keepState() {
  setState({ f: detail.id ?? "", q: list.search, sort: list.sort === "name" ? "" : list.sort, down: list.down ? "1" : "" });
}

function readState() {
  const s = state();
  list.search = s.get("q") ?? "";
  $("#search").value = list.search;
  list.sort = s.get("sort") || "name";
  list.down = s.get("down") === "1";
  const id = s.get("f") || null;
  if (id !== detail.id) show(id, true);
}

function open(f) {
  if (!f) return;
  history_push(f.id);
  show(f.id);
}

// history_push makes the back button lead to the list.
function history_push(id) {
  const next = state();
  next.set("f", id);
  window.history.pushState(null, "", "#" + next);
}

// show shows a filter's page, or the list.
function show(id, quiet) {
  const before = detail.id;
  detail.show(id, id ? nameFrom(id) : null);
  $("#list").hidden = $("#operations").hidden = id !== null;
  if (!quiet) keepState();
  if (id === null) {
    list.arrange();
    if (before) list.focus(Math.max(list.order.findIndex((f) => f.id === before), 0));
  } else {
    scrollTo(0, 0);
  }
  watchLater();
}

// load reads the list, page by page, and draws after the first.
async function load() {
  if (loading) return;
  loading = true;
  listed = Date.now();
  const found = new Set();
  try {
    for (let cursor = "0", first = true; first || cursor !== "0"; first = false) {
      const page = await ask("GET", `/filters?count=${first ? 200 : 1000}&cursor=${cursor}`);
      cursor = page.next;
      for (const row of page.filters) {
        const id = idOf(row.name);
        found.add(id);
        const f = list.filters.get(id);
        if (!f) list.filters.set(id, makeFilter(id, row));
        else if (!row.partial) f.row = { ...f.row, ...row, rate: row.rate ?? f.row.rate, fill: row.fill ?? f.row.fill };
      }
      if (!loadedAll) {
        list.arrange();
        count();
        if (first) performance.mark("bloomery-first-rows");
      }
    }
    for (const id of list.filters.keys()) if (!found.has(id)) list.filters.delete(id);
    loadedAll = true;
    list.clearRows();
    list.arrange();
    performance.mark("bloomery-all-rows");
  } catch (error) {
    failed(error);
  }
  loading = false;
  count();
}

function count() {
  const n = whole(list.order.length);
  const all = whole(list.filters.size);
  $("#count").textContent = loading ? t("countLoading", { n }) : list.search ? t("countSome", { n, all }) : t("countAll", { n });
  const none = !loading && list.order.length === 0;
  $("#empty").hidden = !none;
  $("#empty").textContent = t(list.filters.size === 0 ? "empty" : "noneFound");
}

// watchLater opens another stream when other rows have been in view for a moment.
let watchTimer;
function watchLater() {
  clearTimeout(watchTimer);
  watchTimer = setTimeout(rewatch, stop ? 300 : 0);
}

function rewatch() {
  if (!server) return;
  let names;
  if (detail.id !== null) {
    names = [detail.name];
  } else {
    const rows = [...list.made.values()].map((row) => list.filters.get(row.dataset.id)).filter(Boolean);
    names = rows.slice(0, mostShown).map((f) => f.name);
  }
  const now = JSON.stringify(names.map(idOf).sort());
  if (now === watched && stop) return;
  watched = now;
  stop?.();
  for (const f of list.filters.values()) f.counts = undefined; // counting starts again
  stop = watch(names, onEvent, (what, error) => {
    const note = $("#status");
    note.hidden = what === "open" && !server.stopped && !server.remote;
    note.className = what === "open" ? "note cool" : "note warn";
    if (what !== "open") note.textContent = t("lost", { error: error.message });
    else if (server.stopped) note.textContent = t("stopped", { error: server.stopped });
    else if (server.remote) note.textContent = t("remote");
    if (error?.status === 401) failed(error);
  });
}

// onEvent takes an event of the stream.
function onEvent(event) {
  const now = event.totals;
  if (totals && now.time > totals.time && now.uptime_seconds > totals.uptime_seconds) {
    const seconds = (now.time - totals.time) / 1000;
    const a = (key) => (now[key] - totals[key]) / seconds;
    history.push({ ops: a("commands"), keys: a("keys_new") + a("keys_seen"), fresh: a("keys_new"), found: a("keys_found"), looked: a("keys_found") + a("keys_absent"), seconds });
    history = history.slice(-samples);
  } else if (totals && now.uptime_seconds < totals.uptime_seconds) {
    readServer(); // it was started again
  }
  const namesChanged = totals && now.names !== totals.names;
  totals = now;
  strip();
  const seen = new Set();
  for (const row of event.filters) {
    const id = idOf(row.name);
    seen.add(id);
    let f = list.filters.get(id);
    if (!f) {
      f = makeFilter(id, row);
      list.filters.set(id, f);
    }
    f.row = row;
    sample(f, row, now.time);
    list.update(f);
  }
  for (const f of shownFilters()) {
    if (seen.has(f.id) || !f.counts) continue;
    sample(f, f.row, now.time);
    list.update(f);
  }
  for (const name of event.gone) {
    list.filters.delete(idOf(name));
    if (detail.id === idOf(name)) detail.gone();
  }
  detail.update(seen.has(detail.id));
  if (event.gone.length || (namesChanged && Date.now() - listed > reloadTime) || Date.now() - listed > 4 * reloadTime) reload();
}

function reload() {
  if (!server.remote || Date.now() - listed > 4 * reloadTime) load();
}

const shownFilters = () => (detail.id !== null ? [list.filters.get(detail.id)].filter(Boolean) : [...list.made.keys()].map((id) => list.filters.get(id)).filter(Boolean));

// sample appends what was counted since the last event to the filter's history.
function sample(f, row, time) {
  const counts = { new: row.keys_new ?? 0, seen: row.keys_seen ?? 0, found: row.keys_found ?? 0, absent: row.keys_absent ?? 0, removed: (row.keys_removed ?? 0) + (row.keys_refused ?? 0), time };
  const before = f.counts;
  f.counts = counts;
  if (!before || time <= before.time || counts.new < before.new) return;
  const seconds = (time - before.time) / 1000;
  const rates = { time };
  for (const key of ["new", "seen", "found", "absent", "removed"]) rates[key] = (counts[key] - before[key]) / seconds;
  f.series.push(rates);
  f.ops.push(rates.new + rates.seen + rates.found + rates.absent + rates.removed);
  if (f.series.length > samples) {
    f.series.shift();
    f.ops.shift();
  }
}

// strip draws the numbers at the top.
function strip() {
  if (!totals || !server) return;
  const last = history.slice(-5);
  const sum = (key) => last.reduce((all, s) => all + s[key] * s.seconds, 0);
  const mean = (key) => (last.length ? sum(key) / last.reduce((all, s) => all + s.seconds, 0) : 0);
  const used = totals.memory_bytes;
  const limit = server.memory_limit_bytes;
  tile("ops", short(mean("ops")), "", history.map((s) => s.ops));
  tile("keys", short(mean("keys")), mean("keys") > 0 ? t("newShare", { n: percent(mean("fresh") / mean("keys")) }) : "", history.map((s) => s.keys));
  tile("hit", sum("looked") > 0 ? percent(sum("found") / sum("looked")) : "–", "", history.map((s) => (s.looked ? s.found / s.looked : 0)));
  tile("latency", quick(totals.p50_seconds), t("slowest", { time: quick(totals.p99_seconds) }));
  tile("memory", size(used), limit ? t("ofLimit", { limit: size(limit) }) : t("noLimit"));
  tile("clients", whole(totals.clients), t("ofMost", { n: whole(server.clients_limit) }));
  tile("names", whole(totals.names), t("uptime", { time: lasting(totals.uptime_seconds, t), version: server.version }));
  facts($("#durability"), [
    [t("durability"), durability()],
    [t("logSize"), size(totals.log_bytes)],
    ...(server.snapshot
      ? [
          [t("snapshotAt"), server.snapshot.at ? date(server.snapshot.at) : t("noSnapshot")],
          [t("snapshotSize"), size(server.snapshot.bytes)],
          [t("snapshotTook"), quick(server.snapshot.took_seconds)],
          [t("recovery"), quick(server.snapshot.recovery_seconds)],
          ...(server.snapshot.failure ? [["", t("snapshotFailed", { error: server.snapshot.failure })]] : []),
        ]
      : [[t("snapshotAt"), t("noSnapshots")]]),
  ]);
  $("#snapshot").hidden = !server.snapshot;
  facts($("#memory"), [
    [t("usedMemory"), size(used)],
    [t("memoryLimit"), limit ? size(limit) : t("noLimit")],
    [t("resident"), size(server.resident_bytes)],
    [t("layoutNew"), kindName(server.layout, t)],
  ]);
}

const tiles = new Map();
function tile(key, value, more, values) {
  let made = tiles.get(key);
  if (!made) {
    made = element("div", { class: "card tile", "data-tile": key }, element("div", { class: "label" }), element("div", { class: "value" }), element("div", { class: "more" }));
    tiles.set(key, made);
    $("#strip").append(made);
  }
  const [label, number, note] = made.children;
  label.textContent = t(key + "Tile");
  number.textContent = value;
  note.textContent = more;
  if (values?.length > 1) {
    const old = made.querySelector("svg");
    const drawn = spark(old, values);
    if (!old) made.append(drawn);
  }
}

function durability() {
  const key = "d_" + server.durability;
  return key in texts.en ? t(key) : server.durability || "–";
}

export function facts(into, rows) {
  into.replaceChildren(...rows.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]));
}

async function readServer() {
  server = await ask("GET", "/server");
  $("#login").hidden = true;
  $("#strip").hidden = false;
  totals ??= server.totals;
  strip();
}

async function clients() {
  const into = $("#clients-list");
  try {
    const { clients: rows } = await ask("GET", "/clients?count=1000");
    const head = ["address", "name", "user", "library", "age", "idle", "last"].map((key) => element("th", { scope: "col" }, t(key)));
    const lines = rows.map((c) => {
      const close = element("button", { type: "button", class: "plain" }, t("close"));
      close.addEventListener("click", async () => {
        const done = await change(t, { title: t("close"), why: t("closeWhy", { address: c.address }), access: server.access, danger: true, send: () => ["DELETE", "/clients/" + c.id] });
        if (done) clients();
      });
      return element("tr", {}, element("th", { scope: "row" }, c.address), ...[c.name, c.user, c.library, lasting(c.age_seconds, t), lasting(c.idle_seconds, t), c.command].map((text) => element("td", {}, text)), element("td", {}, close));
    });
    into.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...head, element("td"))), element("tbody", {}, ...lines)));
  } catch (error) {
    into.replaceChildren(element("p", { class: "muted" }, error.status === 403 ? t("needsFull") : error.message));
  }
}

// newFilter asks for what BF.RESERVE takes.
async function newFilter() {
  let name = "";
  const done = await change(t, {
    title: t("newFilter"), why: t("createWhy"), yes: t("create"), access: server.access,
    fields: [
      { key: "name", label: t("name") },
      { key: "capacity", label: t("capacityField"), value: "1,000,000" },
      { key: "rate", label: t("rateField"), value: "0.001" },
      { key: "layout", label: t("layoutField"), options: [["", t("serverDefault")], ["paired", t("paired")], ["counting", t("counting")], ["redisbloom", "RedisBloom"]] },
      { key: "window", label: t("windowField") },
    ],
    send: (v) => {
      name = v.name;
      const body = { capacity: parseCount(v.capacity), rate: parseRate(v.rate), layout: v.window ? "" : v.layout, window: v.window.trim() };
      if (Number.isNaN(body.capacity) || Number.isNaN(body.rate)) throw new Error(t("badNumber"));
      return ["PUT", pathOf(name), body];
    },
  });
  if (!done) return;
  list.filters.set(idOf(name), makeFilter(idOf(name), (await ask("GET", pathOf(name)))));
  open(list.filters.get(idOf(name)));
}

// failed shows why nothing can be shown.
function failed(error) {
  if (error.status !== 401) {
    $("#status").hidden = false;
    $("#status").className = "note bad";
    $("#status").textContent = error.message;
    return;
  }
  stop?.();
  stop = null;
  $("#login").hidden = false;
  $("#strip").hidden = $("#list").hidden = $("#operations").hidden = $("#detail").hidden = $("#status").hidden = true;
  $("#password").focus();
}

$("#login").addEventListener("submit", async (event) => {
  event.preventDefault();
  usePassword($("#password").value);
  $("#login-error").textContent = "";
  try {
    await begin();
    $("#content").focus();
  } catch (error) {
    $("#login-error").textContent = error.status === 401 ? t("wrongPassword") : error.message;
  }
});
$("#search").addEventListener("input", () => {
  list.search = $("#search").value;
  list.window.scrollTop = 0;
  list.arrange();
  count();
  keepState();
});
$("#new").addEventListener("click", newFilter);
$("#snapshot").addEventListener("click", async () => {
  const done = await change(t, { title: t("snapshotNow"), why: t("snapshotWhy"), access: server.access, send: () => ["POST", "/snapshot"] });
  if (!done) return;
  $("#status").hidden = false;
  $("#status").className = "note good";
  $("#status").textContent = t("snapshotBegun");
  setTimeout(() => readServer().catch(failed), 1500);
});
$("#clients").addEventListener("toggle", () => $("#clients").open && clients());
setInterval(() => !document.hidden && server && readServer().catch(() => {}), 10_000); // durability and memory

// begin reads everything and opens the stream.
async function begin() {
  await readServer();
  $("#list").hidden = $("#operations").hidden = detail.id !== null;
  rewatch();
  await load();
  if (detail.id !== null) detail.read();
}

t = startPage(texts, (next, why) => {
  t = next;
  list.setText(t);
  detail.setText(t);
  strip();
  count();
  if ($("#clients").open && why === "language") clients();
  if (why === "address") {
    readState();
    list.arrange();
  }
});
addEventListener("popstate", () => {
  readState();
  list.arrange();
});
list.setText(t);
detail.setText(t);
readState();
begin().catch(failed);
