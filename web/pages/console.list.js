// The list of filters: a table of which only the rows in view exist, so that tens of
// thousands cost what forty do.

import { element } from "./page.js";
import { shownName } from "./console.api.js";
import { inN, kindName, lasting, percent, short, size } from "./console.text.js";

const svgSpace = "http://www.w3.org/2000/svg";

// columns are the table's, with what they sort by.
const columns = [
  { key: "name", by: (f) => f.shown },
  { key: "kind", by: (f) => f.row.kind },
  { key: "level", by: level },
  { key: "rate", by: (f) => (f.row.rate ?? 0) / (f.row.target || 1), right: true },
  { key: "bytes", by: (f) => f.row.bytes ?? 0, right: true },
  { key: "ops", by: (f) => f.ops.at(-1) ?? 0, right: true },
  { key: "ttl", by: (f) => f.row.expires ?? Infinity, right: true },
];

// level is the share of a filter's capacity that is used.
export function level(f) {
  return f.row.capacity ? f.row.items / f.row.capacity : 0;
}

// spark draws values as a line, or changes one that is drawn.
export function spark(old, values, name) {
  const made = old ?? document.createElementNS(svgSpace, "svg");
  if (!old) {
    made.setAttribute("class", "spark");
    made.setAttribute("viewBox", "0 0 100 20");
    made.setAttribute("preserveAspectRatio", "none");
    made.setAttribute("role", "img");
    made.append(document.createElementNS(svgSpace, "path"));
  }
  if (name) made.setAttribute("aria-label", name);
  else made.setAttribute("aria-hidden", "true");
  const most = Math.max(...values, 1);
  const step = 100 / Math.max(values.length - 1, 1);
  made.firstChild.setAttribute("d", values.map((v, i) => `${i ? "L" : "M"}${(i * step).toFixed(1)} ${(19 - (18 * v) / most).toFixed(1)}`).join(""));
  return made;
}

// meter is the bar of a filter's capacity.
export function meter(f) {
  const share = level(f);
  const bar = element("div", { class: "meter" + (share >= 1 ? " over" : share >= 0.8 ? " near" : ""), "aria-hidden": "true" }, element("i"));
  bar.firstChild.style.width = `${Math.min(100 * share, 100)}%`;
  return bar;
}

export class List {
  // onOpen is called with a filter, onShown when other rows are in view, onSort when the
  // order was chosen.
  constructor({ onOpen, onShown, onSort }) {
    this.filters = new Map(); // by id
    this.order = [];
    this.active = 0; // the row that the tab key reaches
    this.sort = "name";
    this.down = false;
    this.search = "";
    this.made = new Map(); // rows in view, by id
    this.window = document.querySelector("#window");
    this.body = document.querySelector("#rows");
    this.table = document.querySelector("#table");
    Object.assign(this, { onOpen, onShown, onSort });
    this.window.addEventListener("scroll", () => this.later(), { passive: true });
    new ResizeObserver(() => this.later()).observe(this.window);
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (!row || event.target.closest("a") && (event.ctrlKey || event.metaKey || event.shiftKey)) return;
      event.preventDefault();
      this.onOpen(this.filters.get(row.dataset.id));
    });
  }

  // setText writes the head in the language of t.
  setText(t) {
    this.t = t;
    const head = document.querySelector("#head");
    head.replaceChildren(
      ...columns.map((column, i) => {
        const button = element("button", { type: "button" }, t(column.key));
        button.addEventListener("click", () => {
          this.down = this.sort === column.key ? !this.down : column.key !== "name" && column.key !== "kind";
          this.sort = column.key;
          this.onSort();
          this.arrange();
        });
        return element("div", { role: "columnheader", class: `c-${column.key}${column.right ? " right" : ""}`, "aria-colindex": i + 1, "data-column": column.key }, button);
      }),
    );
    this.clearRows();
    this.arrange();
  }

  clearRows() {
    this.made.clear();
    this.body.replaceChildren();
  }

  // arrange sorts and searches, and draws.
  arrange() {
    const column = columns.find((c) => c.key === this.sort) ?? columns[0];
    const wanted = this.search.toLowerCase();
    const found = [];
    for (const f of this.filters.values()) if (!wanted || f.lower.includes(wanted)) found.push([column.by(f), f]);
    const sign = this.down ? -1 : 1;
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    found.sort((a, b) => sign * compare(a[0], b[0]) || compare(a[1].shown, b[1].shown));
    this.order = found.map(([, f]) => f);
    this.active = Math.min(this.active, Math.max(this.order.length - 1, 0));
    for (const head of document.querySelectorAll("#head [data-column]")) {
      if (head.dataset.column === this.sort) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.table.setAttribute("aria-rowcount", this.order.length + 1);
    this.table.setAttribute("aria-colcount", columns.length);
    this.draw();
  }

  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      this.draw();
    });
  }

  // draw makes the rows in view, moves those that stay and removes the others.
  draw() {
    if (!this.t) return;
    const height = (this.height = matchMedia("(max-width: 40rem)").matches ? 64 : 48);
    this.body.style.height = `${this.order.length * height}px`;
    this.window.style.height = `${Math.min(this.order.length * height, Math.max(0.65 * innerHeight, 5 * height), 560)}px`;
    const first = Math.max(Math.floor(this.window.scrollTop / height) - 6, 0);
    const last = Math.min(Math.ceil((this.window.scrollTop + this.window.clientHeight) / height) + 6, this.order.length);
    const seen = this.order.slice(first, last);
    const ids = new Set(seen.map((f) => f.id));
    for (const [id, row] of this.made) {
      if (ids.has(id) || row.contains(document.activeElement)) continue;
      row.remove();
      this.made.delete(id);
    }
    seen.forEach((f, i) => {
      let row = this.made.get(f.id);
      if (!row) {
        row = this.makeRow(f);
        this.made.set(f.id, row);
        this.body.append(row);
      }
      row.style.transform = `translateY(${(first + i) * height}px)`;
      row.setAttribute("aria-rowindex", first + i + 2);
      row.link.tabIndex = first + i === this.active ? 0 : -1;
    });
    this.onShown(seen);
  }

  makeRow(f) {
    const link = element("a", { href: "#" + new URLSearchParams({ f: f.id }), tabindex: "-1", title: f.shown }, f.shown);
    const row = element("div", { class: "row", role: "row", "data-id": f.id });
    row.link = link;
    for (const [i, column] of columns.entries()) {
      row.append(element("div", { role: i ? "gridcell" : "rowheader", "aria-colindex": i + 1, class: `c-${column.key}${column.right ? " right" : ""}` }));
    }
    row.firstChild.append(link);
    this.fillRow(row, f);
    return row;
  }

  fillRow(row, f) {
    const t = this.t;
    const [, kind, use, rate, bytes, ops, ttl] = row.children;
    const r = f.row;
    kind.textContent = kindName(r.kind, t);
    if (r.partial) return;
    use.className = "c-level level";
    use.replaceChildren(meter(f), element("span", {}, percent(level(f))));
    use.title = `${short(r.items)} / ${short(r.capacity)}`;
    const over = r.rate !== null && r.rate > r.target;
    rate.className = "c-rate right rate" + (over ? " over" : "");
    rate.replaceChildren(
      element("b", {}, r.rate === null ? t("noRate") : r.rate === 0 ? "0" : t("oneIn", { n: inN(r.rate) })),
      element("small", {}, t("target", { n: inN(r.target) })),
    );
    bytes.textContent = size(r.bytes);
    if (f.ops.length > 1) ops.replaceChildren(spark(ops.querySelector("svg"), f.ops), element("span", { class: "unseen" }, short(f.ops.at(-1))));
    else ops.textContent = "";
    ops.title = f.ops.length ? short(f.ops.at(-1)) : "";
    ttl.textContent = r.expires ? lasting((r.expires - Date.now()) / 1000, t) : r.span_seconds ? "↻ " + lasting(r.span_seconds, t) : t("never");
  }

  // update draws a filter again if it is in view.
  update(f) {
    const row = this.made.get(f.id);
    if (row) this.fillRow(row, f);
  }

  key(event) {
    const page = Math.max(Math.floor(this.window.clientHeight / this.height) - 1, 1);
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === " ") {
      event.preventDefault();
      event.target.click();
    }
    if (move === undefined) return;
    event.preventDefault();
    this.focus(Math.min(Math.max(this.active + move, 0), this.order.length - 1));
  }

  // focus moves to a row, which it scrolls into view.
  focus(index) {
    const f = this.order[index];
    if (!f) return;
    this.active = index;
    const top = index * this.height;
    if (top < this.window.scrollTop) this.window.scrollTop = top;
    else if (top + this.height > this.window.scrollTop + this.window.clientHeight) this.window.scrollTop = top + this.height - this.window.clientHeight;
    this.draw();
    this.made.get(f.id)?.link.focus({ preventScroll: true });
  }
}

// makeFilter is what the console keeps of a filter.
export function makeFilter(id, row) {
  const shown = shownName(row.name);
  return { id, name: row.name, shown, lower: shown.toLowerCase(), row, ops: [], series: [] };
}
