// The way of a word: to its hash, and from there to its cells, step by step.

import { hashName } from "./play.model.js";

const by = (id) => document.getElementById(id);
const svgSpace = "http://www.w3.org/2000/svg";

export class Way {
  constructor(grid, t) {
    this.grid = grid;
    this.t = t;
    this.asked = null;
    this.step = Infinity; // how much of the way is shown: the word, the hash, then each bit
    by("step").addEventListener("click", () => {
      const last = this.bits.length + 1;
      this.step = this.step >= last ? 0 : this.step + 1;
      this.draw();
    });
  }

  // all shows the whole way.
  all() {
    this.step = Infinity;
  }

  show(asked) {
    if (asked?.word !== this.asked?.word) this.step = Infinity;
    this.asked = asked;
    this.draw();
  }

  get bits() {
    return this.asked ? this.asked.layers[this.asked.at].bits : [];
  }

  draw() {
    const t = this.t();
    const arrows = by("arrows");
    arrows.replaceChildren();
    by("step").hidden = !this.asked;
    by("way-word").textContent = this.asked?.word ?? "";
    const hash = this.asked && this.step >= 1 ? (this.grid.model.scheme ? this.grid.model.scheme : hashName(this.grid.model.layout) + "  " + this.asked.hash.toString(16).padStart(16, "0")) : "";
    by("way-hash").textContent = hash;
    by("way-text").textContent = this.asked ? this.words(t) : t("wayEmpty");
    if (!this.asked || this.step < 2) return;
    const box = by("way").getBoundingClientRect();
    const from = by("way-hash").getBoundingClientRect();
    const canvas = by("canvas").getBoundingClientRect();
    const x0 = from.left + from.width / 2 - box.left;
    const y0 = from.bottom - box.top;
    this.bits.slice(0, this.step - 1).forEach((bit) => {
      const [x, y] = this.grid.centre(this.asked.at, bit.position);
      const [x1, y1] = [x + canvas.left - box.left, y + canvas.top - box.top];
      const middle = (canvas.top - box.top + y0) / 2;
      const path = document.createElementNS(svgSpace, "path");
      path.setAttribute("d", `M${x0} ${y0}C${x0} ${middle} ${x1} ${middle} ${x1} ${Math.min(canvas.top - box.top, y1)}L${x1} ${y1}`);
      const dot = document.createElementNS(svgSpace, "circle");
      for (const [key, value] of Object.entries({ cx: x1, cy: y1, r: 3 })) dot.setAttribute(key, value);
      if (!bit.set) for (const mark of [path, dot]) mark.setAttribute("class", "miss");
      arrows.append(path, dot);
    });
  }

  // words says what the last step did.
  words(t) {
    const { bits } = this;
    if (this.step === 0) return t("wayWord", { bytes: [...new TextEncoder().encode(this.asked.word)].slice(0, 24).map((byte) => byte.toString(16).padStart(2, "0")).join(" ") });
    if (this.step === 1) return t(this.grid.model.scheme ? "wayScheme" : "wayHash", { hash: hashName(this.grid.model.layout) });
    if (this.step === Infinity) return t("wayAll", { bits: bits.map((bit) => bit.position).join(", ") });
    const i = this.step - 2;
    const bit = bits[i];
    const values = { i: i + 1, k: bits.length, position: bit.position, line: bit.line, lane: bit.lane, bit: bit.bit, is: t(bit.set ? "isSet" : "isClear") };
    return t(bit.line !== undefined ? "wayPaired" : bit.lane !== undefined ? "waySplit" : "wayBit", values);
  }
}
