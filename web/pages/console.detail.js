// One filter's page.

import { element } from "./page.js";
import { decades, drawChart } from "./chart.js";
import { ask, pathOf, shownName } from "./console.api.js";
import { level, meter } from "./console.list.js";
import { drawPopulation, drawSeries, drawVerdict } from "./console.draw.js";
import { date, inN, kindName, lasting, percent, short, size, whole } from "./console.text.js";

const again = 5000; // between two readings of the page while the filter changes
const parts = 1024;

export class Detail {
  // change asks and sends, leave goes back to the list, find finds what the list has of a
  // filter, moved goes to another filter.
  constructor({ change, leave, find, moved }) {
    Object.assign(this, { change, leave, find, moved });
    this.id = null;
    this.root = document.querySelector("#detail");
  }

  setText(t) {
    this.t = t;
    if (this.id !== null) {
      this.build();
      this.draw();
    }
  }

  show(id, name) {
    this.id = id;
    this.name = name;
    this.data = this.population = null;
    this.root.hidden = id === null;
    this.root.replaceChildren();
    if (id === null || !this.t) return;
    this.build();
    this.read();
  }

  gone() {
    this.data = null;
    this.root.replaceChildren(this.crumbs(), element("p", { class: "note warn", role: "status" }, this.t("gone")));
  }

  // read asks for everything, and draws it.
  async read() {
    const id = this.id;
    if (id === null || this.reading) return;
    this.reading = true;
    this.readAt = Date.now();
    try {
      const data = await ask("GET", pathOf(this.name));
      const hasBits = data.kind !== "counting" && data.kind !== "cuckoo"; // not counters or slots
      const population = hasBits ? await ask("GET", pathOf(this.name, "/population", "parts=" + parts)).catch(() => null) : null;
      if (this.id === id) {
        if (!this.parts) this.build();
        this.data = data;
        this.population = population;
        this.draw();
      }
    } catch (error) {
      if (this.id === id && error.status === 404) this.gone();
    }
    this.reading = false;
    if (this.id !== null && this.id !== id) this.read();
  }

  // update draws what an event has brought.
  update(changed) {
    if (this.id === null || !this.parts) return;
    const f = this.find(this.id);
    if (f) drawSeries(this.parts.series, f.series, this.t);
    if (f && this.data && changed) {
      Object.assign(this.data, { items: f.row.items, capacity: f.row.capacity, bytes: f.row.bytes, rate: f.row.rate ?? this.data.rate, fill: f.row.fill ?? this.data.fill });
      this.drawFacts();
    }
    if (this.data) this.drawCrossing();
    if (changed && Date.now() - this.readAt > again) this.read();
  }

  crumbs() {
    const t = this.t;
    const back = element("button", { type: "button", class: "plain" }, "← " + t("back"));
    back.addEventListener("click", () => this.leave());
    return element("div", { class: "crumbs" }, back, element("h2", { id: "detail-name" }, shownName(this.name)));
  }

  // build makes the page without its numbers.
  build() {
    const t = this.t;
    const part = (this.parts = {
      tags: element("span"), level: element("div", { class: "level" }), facts: element("dl", { class: "facts" }), note: element("p", { class: "muted small" }),
      chart: element("figure"), crossing: element("p", { class: "small", role: "status" }), series: element("div", { class: "series" }),
      population: element("div", { id: "population" }), layers: element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("layers") }),
      verdict: element("div", { "aria-live": "polite" }),
    });
    const crumbs = this.crumbs();
    crumbs.append(part.tags, this.buttons());
    this.root.replaceChildren(
      crumbs,
      element("div", { class: "two" },
        element("div", { class: "card" }, element("h3", {}, t("facts")), part.level, part.facts),
        element("div", { class: "card" }, element("h3", {}, t("test")), this.tester(), part.verdict)),
      element("div", { class: "card", id: "health" }, element("h3", {}, t("health")), part.note, part.chart, part.crossing),
      element("div", { class: "card", id: "series" }, element("h3", {}, t("series")), element("p", { class: "muted small" }, t("seriesNote")), part.series),
      element("div", { class: "two uneven" },
        element("div", { class: "card" }, element("h3", {}, t("population")), part.population),
        element("div", { class: "card" }, element("h3", {}, t("layers")), part.layers)),
    );
    drawSeries(part.series, this.find(this.id)?.series ?? [], t);
  }

  draw() {
    const { t, data, parts: part } = this;
    if (!data || !part) return;
    part.tags.replaceChildren(element("span", { class: "tag" }, kindName(data.kind, t)));
    this.drawFacts();
    this.drawHealth();
    this.drawCrossing();
    drawPopulation(part.population, this.population, t);
    this.drawLayers();
  }

  drawFacts() {
    const { t, data: d, parts: part } = this;
    part.level.replaceChildren(meter({ row: d }), element("span", {}, percent(level({ row: d }))));
    const rows = [
      ["items", whole(d.items)],
      ["capacity", whole(d.capacity)],
      ...(d.planned !== d.capacity ? [["planned", whole(d.planned)]] : []),
      ["rateNow", d.rate === null ? t("noRate") : d.rate === 0 ? "0" : t("oneIn", { n: inN(d.rate) })],
      ["targetIs", t("oneIn", { n: inN(d.target) })],
      ["fill", d.fill === null ? "–" : percent(d.fill)],
      ["keysEstimated", d.keys === null ? t("allSet") : `${whole(d.keys)} ± ${whole(d.keys_error ?? 0)}`],
      ["remaining", whole(d.remaining)],
      ["bytes", size(d.bytes)],
      ["growth", d.growth ? t("growsBy", { n: d.growth }) : t("growsNot")],
      ...(d.span_seconds ? [["span", lasting(d.span_seconds, t)]] : []),
      ["hash", t(d.hash)],
      ["adds", d.durability === "default" ? t("default") : t("d_" + d.durability)],
      ["ttl", d.expires ? date(d.expires) : t("never")],
    ];
    part.facts.replaceChildren(...rows.flatMap(([key, value]) => [element("dt", {}, t(key)), element("dd", { "data-fact": key }, value)]));
  }

  // drawHealth draws the expected rate, the target, and where the filter is.
  drawHealth() {
    const { t, data: d, parts: part } = this;
    const points = d.curve.filter((p) => p.rate > 0).map((p) => [p.items, p.rate]);
    part.note.textContent = t(points.length ? "healthNote" : d.kind === "window" ? "healthWindow" : "healthRemovable");
    part.chart.hidden = points.length === 0;
    if (points.length === 0) return;
    const most = points.at(-1)[0];
    const highest = Math.max(points.at(-1)[1], d.rate ?? 0, d.target);
    const lowest = Math.min(d.target / 1000, d.rate || 1);
    const from = 10 ** Math.floor(Math.log10(Math.max(lowest, d.target / 1e6)));
    const to = Math.min(10 ** Math.ceil(Math.log10(highest * 1.5)), 1);
    const step = most / 4;
    const here = d.rate ? [{ x: Math.min(d.items, most), y: d.rate, label: t("here", { n: inN(d.rate) }) }] : [];
    const format = (rate) => t("oneIn", { n: inN(rate) });
    const n = (x) => short(x);
    drawChart(part.chart, {
      name: t("health"), height: 300,
      x: { label: t("itemsAxis"), from: 0, to: most, ticks: [0, 1, 2, 3, 4].map((i) => ({ at: i * step, label: n(i * step) })), format: n },
      y: { label: t("rateAxis"), from, to, log: true, ticks: decades(from, to, 6, (rate) => "1/" + short(1 / rate)), format },
      lines: [{ name: t("expected"), points, style: "main" }],
      rules: [{ axis: "y", at: d.target, label: t("target", { n: inN(d.target) }) }, { axis: "x", at: d.capacity, label: t("capacity") }],
      marks: here,
      table: { head: [t("itemsAxis"), t("rateAxis")], rows: points.map(([x, y]) => [whole(x), format(y)]) },
    }, t);
  }

  // drawCrossing says when the capacity is reached, if keys keep coming as they did.
  drawCrossing() {
    const { t, data: d, parts: part } = this;
    const series = (this.find(this.id)?.series ?? []).slice(-60);
    const fresh = series.reduce((sum, s) => sum + s.new, 0) / Math.max(series.length, 1);
    part.crossing.hidden = d.curve.length === 0;
    let text = t("noCrossing");
    if (d.items >= d.capacity) text = t("crossed");
    else if (fresh > 0) text = t("crossing", { n: short(fresh), date: date(Date.now() + ((d.capacity - d.items) / fresh) * 1000) });
    if (part.crossing.textContent !== text) part.crossing.textContent = text;
  }

  drawLayers() {
    const { t, data: d, parts: part } = this;
    const windows = d.kind === "window";
    const head = ["layer", "level", "items", "capacity", "bits", "probes", "targetIs", ...(windows ? ["starts", "expires"] : [])];
    const rows = d.all_layers.map((l, i) => {
      const share = l.capacity ? l.items / l.capacity : 0;
      const bar = meter({ row: { items: l.items, capacity: l.capacity } });
      const cells = [bar, whole(l.items), whole(l.capacity), whole(l.bits), l.probes, t("oneIn", { n: inN(l.target) })];
      if (windows) cells.push(t("ago", { time: lasting((Date.now() - l.starts) / 1000, t) }), t("within", { time: lasting((l.expires - Date.now()) / 1000, t) }));
      return element("tr", {}, element("th", { scope: "row" }, String(i)), ...cells.map((c, j) => (j === 0 ? element("td", { "aria-label": percent(share) }, c) : element("td", {}, String(c)))));
    });
    part.layers.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...head.map((key) => element("th", { scope: "col" }, t(key))))), element("tbody", {}, ...rows.reverse())));
  }

  // tester is the form that looks up a key.
  tester() {
    const t = this.t;
    const input = element("input", { id: "key", type: "text", spellcheck: "false", autocomplete: "off" });
    const form = element("form", { class: "inline" }, element("div", { class: "field" }, element("label", { for: "key" }, t("key")), input), element("button", { class: "main", id: "test" }, t("testIt")));
    const add = element("button", { type: "button", id: "add" }, t("addKey"));
    form.append(add);
    const show = async () => {
      const part = this.parts;
      try {
        drawVerdict(part.verdict, await ask("POST", pathOf(this.name, "/test"), { key: input.value }), this.data, t);
      } catch (error) {
        part.verdict.replaceChildren(element("p", { class: "error" }, error.message));
      }
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      show();
    });
    add.addEventListener("click", async () => {
      const done = await this.change({ title: t("addKey"), why: t("addWhy"), send: () => ["POST", pathOf(this.name, "/add"), { keys: [input.value] }] });
      if (!done) return;
      await show();
      this.parts.verdict.prepend(element("p", { class: "note good" }, t(done.new[0] ? "addedNew" : "addedSeen")));
      this.read();
    });
    return form;
  }

  // buttons are the actions.
  buttons() {
    const t = this.t;
    const path = (more = "") => pathOf(this.name, more);
    const confirm = shownName(this.name);
    const actions = {
      rename: { fields: [{ key: "to", label: t("newName") }], send: (v) => ["POST", path("/rename"), { to: v.to }], then: (v) => this.moved(v.to) },
      swap: { fields: [{ key: "with", label: t("otherName") }], send: (v) => ["POST", path("/swap"), { with: v.with }] },
      expire: { fields: [{ key: "seconds", label: t("afterSeconds"), type: "number" }], send: (v) => ["POST", path("/expire"), { seconds: v.seconds === "" ? null : Number(v.seconds) }] },
      fold: { fields: [{ key: "by", label: t("foldBy"), value: "2", type: "number" }], send: (v) => ["POST", path("/fold"), { by: Number(v.by) }] },
      delete: { send: () => ["DELETE", path()], danger: true, then: () => this.leave() },
    };
    const made = Object.entries(actions).map(([key, action]) => {
      const button = element("button", { type: "button", class: action.danger ? "danger" : "", "data-action": key }, t(key));
      button.addEventListener("click", async () => {
        let values;
        const done = await this.change({ title: t(key), why: t(key + "Why"), yes: t(key), confirm, ...action, send: (v) => action.send((values = v)) });
        if (!done) return;
        if (action.then) action.then(values);
        else this.read();
      });
      return button;
    });
    return element("div", { class: "buttons", role: "group", "aria-label": t("actions") }, ...made);
  }
}
