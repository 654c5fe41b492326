// The filters of the playground. Bits, positions and answers are those of the reader's
// kernel; what is added here is what a filter forgets: which words set a bit, and which
// words were really added.

import { schemePositions } from "../bloomery.js";
import { load, XXH3, XXH64 } from "../hash.js";
import { ClassicLayer, PairedLayer, SplitLayer } from "../layout.js";
import { out, toBigInt } from "../words.js";
import { log1p, expm1 } from "../elementary.js";
import * as rates from "../rate.js";
import { plan } from "./sizing.js";

export const layouts = ["classic", "paired", "split", "counting", "scalable", "window"];
export const mostCount = 15; // where a counter stays
export const scalableFirst = 100;
export const grownRate = 0.01; // of the scalable filter and the window
export const generations = 4;
export const windowKeys = 400; // in the span of the window
const tightening = 0.8;

// Split blocks are Parquet's, and so is their hash.
const xxh3 = new XXH3(0n);
const xxh64 = new XXH64(0n);
export const hashName = (layout) => (layout === "split" ? "XXH64" : "XXH3");

// hashOf is a word's hash as a BigInt, and as two halves for the kernel.
function hashOf(word, layout) {
  load(word);
  (layout === "split" ? xxh64 : xxh3).hash();
  return { low: out[0], high: out[1], big: toBigInt() };
}

const choices = { classic: { m: 128, k: 3 }, paired: { m: 4096, k: 6 }, split: { m: 1024, k: 8 }, counting: { m: 4096, k: 4 }, scalable: { m: 0, k: 0 }, window: { m: 0, k: 0 } };

// shape makes m and k fit the layout.
export function shape(layout, m, k) {
  const usual = choices[layout];
  m = Number.isFinite(m) && m > 0 ? m : usual.m;
  k = Number.isFinite(k) && k > 0 ? k : usual.k;
  const within = (x, least, most) => Math.min(Math.max(Math.round(x), least), most);
  switch (layout) {
    case "classic":
      return { m: within(m, 8, 4096), k: within(k, 1, 16) };
    case "split":
      return { m: within(m / 256, 1, 16) * 256, k: 8 };
    case "paired":
      return { m: within(m / 4096, 1, 4) * 4096, k: within(k / 2, 1, 8) * 2 };
    case "counting":
      return { m: 4096, k: within(k / 2, 1, 8) * 2 };
  }
  return { m: 0, k: 0 };
}

// A Layer is one array of bits, with what it stands for.
class Layer {
  constructor(layout, blocks, k, { room = Infinity, rate = 0, scheme = "" } = {}) {
    const section = { offset: 0, blocks, k };
    this.kernel = layout === "classic" ? new ClassicLayer(section) : layout === "split" ? new SplitLayer(section) : new PairedLayer(section);
    this.layout = layout;
    this.scheme = scheme;
    this.blocks = blocks;
    this.k = k;
    this.m = this.kernel.m;
    this.room = room; // keys, after which another layer begins
    this.rate = rate;
    this.keys = 0;
    this.bytes = new Uint8Array(Math.ceil(this.m / 8));
    this.counts = new Uint16Array(this.m); // how many words set each bit
    this.owners = new Map(); // position to words
    this.set = 0;
  }

  // bits are the cells of a word; positions may repeat.
  bits(word, hash) {
    if (this.scheme) return schemePositions(this.scheme, word, this.m, this.k).map((position) => ({ position }));
    return this.kernel.positions(hash.big).bits;
  }

  // has is the kernel's answer.
  has(word, hash) {
    if (this.scheme) return this.bits(word, hash).every(({ position }) => this.isSet(position));
    out[0] = hash.low;
    out[1] = hash.high;
    if (this.layout === "classic") return this.kernel.has(this.bytes);
    const at = this.kernel.block() * this.kernel.blockBytes;
    out[0] = hash.low;
    out[1] = hash.high;
    return this.kernel.test(this.bytes, at);
  }

  isSet(position) {
    return (this.bytes[position >>> 3] >>> (position & 7)) & 1;
  }

  change(position, word, by) {
    const before = this.counts[position];
    if (this.layout === "counting" && before === mostCount) return; // it stays
    const after = before + by;
    this.counts[position] = after;
    if (before === 0) this.set++;
    if (after === 0) this.set--;
    if (after > 0) this.bytes[position >>> 3] |= 1 << (position & 7);
    else this.bytes[position >>> 3] &= ~(1 << (position & 7));
    const words = this.owners.get(position) ?? new Set();
    if (by > 0) words.add(word);
    else words.delete(word);
    this.owners.set(position, words);
  }
}

const distinct = (bits) => [...new Map(bits.map((bit) => [bit.position, bit])).values()];

function planLayer(keys, rate) {
  const made = plan("paired", { keys: Math.ceil(keys / (1 - rate)), rate });
  const full = plan("paired", { bits: made.bits, probes: made.probes, rate });
  return new Layer("paired", full.blocks, full.probes, { room: Math.trunc(Math.max(full.keys * (1 - full.rate), 1)), rate });
}

export class Model {
  constructor({ layout, m, k, scheme = "" }) {
    Object.assign(this, { layout, scheme }, scheme ? { m, k } : shape(layout, m, k));
    this.words = new Map(); // what was really added: word to how often it is in, its hash
    this.layers = []; // the newest last
    this.added = 0; // adds that were answered "new"
    this.lost = []; // false negatives
    this.turns = 0;
    if (layout === "scalable") this.layers.push(this.scalableLayer(0));
    else if (layout === "window") this.layers.push(this.generation());
    else this.layers.push(new Layer(layout, layout === "classic" ? this.m : this.m / (layout === "split" ? 256 : 4096), this.k, { scheme }));
  }

  scalableLayer(i) {
    return planLayer(scalableFirst * 2 ** i, grownRate * (1 - tightening) * tightening ** i);
  }

  generation() {
    const keys = windowKeys / generations;
    const layer = planLayer(Math.min(keys + Math.ceil(4 * Math.sqrt(keys)), windowKeys), grownRate / (generations + 1) / 2);
    layer.turn = this.turns;
    return layer;
  }

  get newest() {
    return this.layers[this.layers.length - 1];
  }

  get grows() {
    return this.layout === "scalable" || this.layout === "window";
  }

  // add adds a word as the library does, and returns the answer and the changed cells.
  add(word) {
    const hash = this.words.get(word)?.hash ?? hashOf(word, this.layout);
    const known = this.layers.some((layer) => layer.has(word, hash));
    const held = this.words.get(word);
    this.words.set(word, { hash, times: (held?.times ?? 0) + 1, turn: this.turns });
    const skip = this.layout === "scalable" && known;
    if (skip) return { isNew: false, cells: [] };
    if (this.layout === "scalable" && this.newest.keys >= this.newest.room) this.layers.push(this.scalableLayer(this.layers.length));
    const layer = this.newest;
    const fresh = !layer.has(word, hash);
    const cells = distinct(layer.bits(word, hash));
    const counts = fresh || this.layout === "counting" || !held || held.turn !== this.turns;
    if (counts) for (const { position } of cells) layer.change(position, word, 1);
    if (fresh) layer.keys++;
    if (!known) this.added++;
    return { isNew: !known, layer, cells };
  }

  // remove removes a word of a counting filter, once; false if the filter has no such word.
  remove(word) {
    const held = this.words.get(word);
    const hash = held?.hash ?? hashOf(word, this.layout);
    const layer = this.newest;
    if (!layer.has(word, hash)) return { removed: false, cells: [] };
    const cells = distinct(layer.bits(word, hash));
    for (const { position } of cells) layer.change(position, word, -1);
    if (held && held.times > 1) {
      held.times--;
      for (const { position } of cells) layer.owners.get(position).add(word); // it is still in
    } else this.words.delete(word);
    this.findLost();
    return { removed: true, wrong: !held, cells };
  }

  // findLost lists the words that were added and are not found.
  findLost() {
    this.lost = [...this.words].filter(([word, { hash }]) => !this.layers.some((layer) => layer.has(word, hash))).map(([word]) => word);
  }

  // turn begins a generation, and drops the oldest.
  turn() {
    this.turns++;
    this.layers.push(this.generation());
    while (this.layers.length > generations + 1) this.layers.shift();
    const oldest = this.layers[0].turn;
    for (const [word, { turn }] of this.words) if (turn < oldest) this.words.delete(word);
  }

  // ask looks a word up, and says why the answer is what it is.
  ask(word) {
    const held = this.words.get(word);
    const hash = held?.hash ?? hashOf(word, this.layout);
    const layers = this.layers.map((layer, i) => {
      const bits = layer.bits(word, hash).map((bit) => ({ ...bit, set: layer.isSet(bit.position) === 1, count: layer.counts[bit.position] }));
      return { layer: i, bits, found: bits.every((bit) => bit.set) };
    });
    const at = layers.findLast((layer) => layer.found);
    const verdict = at ? (held ? "member" : "wrong") : held ? "lost" : "new";
    return { word, hash: hash.big, layers, at: (at ?? layers[layers.length - 1]).layer, found: Boolean(at), verdict, culprits: verdict === "wrong" ? this.culprits(at) : [] };
  }

  // culprits are few words that together set all these bits: the one that set most of them
  // first, and so on.
  culprits({ layer, bits }) {
    const owners = this.layers[layer].owners;
    const open = new Set(bits.map((bit) => bit.position));
    const named = [];
    while (open.size > 0) {
      const tally = new Map();
      for (const position of open) for (const word of owners.get(position) ?? []) tally.set(word, (tally.get(word) ?? 0) + 1);
      if (tally.size === 0) break;
      const [word] = [...tally].reduce((best, one) => (one[1] > best[1] ? one : best));
      named.push(word);
      for (const position of open) if (owners.get(position)?.has(word)) open.delete(position);
    }
    return named;
  }

  // rate is the formula's rate with n words, or with the words that are in.
  rate(n) {
    if (!this.grows) return this.rateOf(this.layout, n, this.m, this.k);
    const passed = this.layers.reduce((sum, layer) => sum + log1p(-Math.min(rates.paired(layer.keys, layer.blocks, layer.k), 1 - 1e-12)), 0);
    return -expm1(passed);
  }

  rateOf(layout, n, m, k) {
    if (layout === "classic") return rates.classic(n, m, k);
    return layout === "split" ? rates.split(n, m / 256) : rates.paired(n, m / 4096, k);
  }

  get size() {
    return this.words.size;
  }

  get fill() {
    const m = this.layers.reduce((sum, layer) => sum + layer.m, 0);
    return this.layers.reduce((sum, layer) => sum + layer.set, 0) / m;
  }

  get saturated() {
    return this.layout === "counting" ? this.newest.counts.reduce((sum, count) => sum + (count === mostCount ? 1 : 0), 0) : 0;
  }
}

// Words that mean nothing, each different: number i of a hundred million.
const consonants = "bcdfghjklmnprstvwxyz";
const vowels = "aeiou";
export function randomWord(i) {
  let x = (i * 48271 + 7919) % 1e8;
  let word = "";
  for (let part = 0; part < 4; part++) {
    word += consonants[(x % 100) % 20] + vowels[Math.floor((x % 100) / 20)];
    x = Math.floor(x / 100);
  }
  return word;
}

// Strangers are never added: they measure the rate.
export class Strangers {
  constructor(count) {
    this.hashes = { XXH3: [], XXH64: [] };
    this.count = count;
  }

  // measure is the share of the strangers that the model finds.
  measure(model) {
    const hashes = this.hashes[hashName(model.layout)];
    const word = (i) => randomWord(50_000_000 + i);
    for (let i = hashes.length; i < this.count; i++) hashes.push(hashOf(word(i), model.layout));
    const found = hashes.filter((hash, i) => model.layers.some((layer) => layer.has(model.scheme ? word(i) : "", hash)));
    return found.length / this.count;
  }
}
