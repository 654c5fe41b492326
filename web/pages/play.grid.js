// The bits as a picture: a canvas of tiles, one for each block, with a cursor for the
// pointer and the arrow keys. Thousands of cells change within a frame, so only those
// that changed are drawn again.

const gap = 10; // between tiles, and between lines of a block a third of it
const label = 18; // over a tile that has one

// tilesOf says which cells a layer shows where.
function tilesOf(model) {
  const tiles = [];
  model.layers.forEach((layer, l) => {
    const paired = layer.layout === "paired" || layer.layout === "counting";
    const split = layer.layout === "split";
    const size = paired ? 4096 : split ? 256 : layer.m;
    const cols = paired ? 64 : split ? 32 : layer.m <= 20 ? layer.m : layer.m <= 128 ? 16 : layer.m <= 1024 ? 32 : 64;
    for (let block = 0; block < layer.m / size; block++) {
      tiles.push({ layer: l, first: block * size, size, cols, rows: Math.ceil(size / cols), every: paired ? 8 : 0, head: model.grows && block === 0 });
    }
  });
  return tiles;
}

export class Grid {
  // On canvas, in a box of which it takes the width. name(layer) names a layer of a model
  // that has several.
  constructor(canvas, name) {
    this.canvas = canvas;
    this.name = name;
    this.context = canvas.getContext("2d");
    this.fresh = new Set(); // "layer:position" of the cells that were set last
    this.asked = null; // the answer that is shown
    this.cursor = null; // {layer, position}
  }

  // arrange lays the tiles out in the width, and draws all.
  arrange(model) {
    this.model = model;
    this.tiles = tilesOf(model);
    const width = Math.floor(this.canvas.parentElement.clientWidth);
    const most = Math.max(...this.tiles.map((tile) => tile.cols));
    let across = this.tiles.length === 1 ? 1 : this.tiles.length <= 4 || width < 560 ? 2 : 3;
    if (model.layout === "split") across = width < 560 ? 1 : Math.min(2, this.tiles.length);
    const room = (width - gap * (across - 1)) / (across * most);
    this.cell = Math.max(1.5, Math.min(40, room >= 8 ? Math.floor(room) : Math.floor(room * 4) / 4));
    let x = 0;
    let y = 0;
    let row = 0;
    let column = 0;
    for (const tile of this.tiles) {
      const own = tile.head ? this.tiles.filter((other) => other.layer === tile.layer).length : 1;
      if (column === across || (column > 0 && column + Math.min(own, across) > across)) {
        x = 0;
        y += row + gap;
        row = 0;
        column = 0;
      }
      column++;
      const top = model.grows ? label : 0;
      Object.assign(tile, { x, y: y + top, width: tile.cols * this.cell });
      const lines = tile.every ? Math.ceil(tile.rows / tile.every) - 1 : 0;
      row = Math.max(row, top + tile.rows * this.cell + lines * 3);
      x += tile.width + gap;
    }
    const height = y + row;
    const used = Math.max(...this.tiles.map((tile) => tile.x + tile.width));
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(used * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.width = used + "px";
    this.canvas.style.height = height + "px";
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.byLayer = model.layers.map((_, l) => this.tiles.filter((tile) => tile.layer === l));
    this.draw();
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    const mix = (a, b, share) => {
      const parse = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
      const [p, q] = [parse(a), parse(b)];
      return `rgb(${p.map((v, i) => Math.round(v + (q[i] - v) * share)).join(" ")})`;
    };
    const accent = read("--accent");
    const ink = read("--ink");
    this.paint = {
      clear: read("--sunken"), line: read("--line"), surface: read("--surface"), ink, muted: read("--muted"),
      fresh: read("--good"), cool: read("--cool"), bad: read("--bad"), accent, accentInk: read("--accent-ink"),
      shades: [0.42, 0.62, 0.8, 1].map((share) => mix(read("--accent-soft"), accent, share)).concat(mix(accent, ink, 0.35), mix(accent, ink, 0.6)),
    };
  }

  draw() {
    this.colours();
    const { context, model } = this;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    for (const tile of this.tiles) {
      if (tile.head) {
        context.fillStyle = this.paint.muted;
        context.font = "12px " + getComputedStyle(this.canvas).fontFamily;
        context.fillText(this.name(model.layers[tile.layer], tile.layer), tile.x, tile.y - 6);
      }
      this.drawTile(tile);
    }
    this.overlay();
  }

  // drawTile draws all cells of a tile, first the clear ones in one go.
  drawTile(tile) {
    const { context } = this;
    const layer = this.model.layers[tile.layer];
    const last = Math.min(tile.first + tile.size, layer.m);
    const inner = this.inner();
    const set = [];
    context.beginPath();
    for (let position = tile.first; position < last; position++) {
      if (layer.counts[position] !== 0 || this.cell >= 24) set.push(position);
      else context.rect(...this.place(tile, position), inner, inner);
    }
    context.fillStyle = this.paint.clear;
    context.fill();
    for (const position of set) this.drawCell(tile, position);
  }

  // inner is the side of a cell without the space around it.
  inner() {
    return this.cell > 6 ? this.cell - 1 : this.cell > 3 ? this.cell - 0.5 : this.cell;
  }

  place(tile, position) {
    const within = position - tile.first;
    const row = Math.floor(within / tile.cols);
    const lines = tile.every ? Math.floor(row / tile.every) * 3 : 0;
    return [tile.x + (within % tile.cols) * this.cell, tile.y + row * this.cell + lines];
  }

  tileOf(layer, position) {
    const tiles = this.byLayer[layer];
    return tiles[Math.floor(position / tiles[0].size)];
  }

  drawCell(tile, position) {
    const { context, cell, paint } = this;
    const [x, y] = this.place(tile, position);
    const count = this.model.layers[tile.layer].counts[position];
    const inner = this.inner();
    const fresh = this.fresh.size > 0 && this.fresh.has(tile.layer + ":" + position);
    const full = this.model.layout === "counting" && count === 15;
    context.fillStyle = full ? paint.bad : count === 0 ? paint.clear : fresh ? paint.fresh : paint.shades[Math.min(count, paint.shades.length) - 1];
    context.fillRect(x, y, inner, inner);
    if (this.model.layout === "counting" && count > 0 && cell >= 8) {
      context.fillStyle = paint.surface;
      context.font = `600 ${Math.min(cell - 2, 13)}px ui-monospace, monospace`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(count.toString(16), x + inner / 2, y + inner / 2 + 0.5);
      context.textAlign = "start";
      context.textBaseline = "alphabetic";
    } else if (cell >= 24) {
      context.fillStyle = count === 0 ? paint.muted : fresh ? paint.surface : count < 3 ? paint.ink : paint.accentInk;
      context.font = `${Math.min(11, cell / 2.6)}px ui-monospace, monospace`;
      context.textAlign = "center";
      context.fillText(position, x + inner / 2, y + inner / 2 + 4);
      context.textAlign = "start";
    }
  }

  // change draws cells again, and marks them as the ones that were set last.
  change(layer, cells, fresh) {
    for (const { position } of cells) {
      if (fresh) this.fresh.add(layer + ":" + position);
      this.drawCell(this.tileOf(layer, position), position);
    }
  }

  // settle ends the marks.
  settle() {
    const old = [...this.fresh];
    this.fresh.clear();
    for (const key of old) {
      const [layer, position] = key.split(":").map(Number);
      if (layer < this.byLayer.length) this.drawCell(this.tileOf(layer, position), position);
    }
  }

  // overlay outlines the cells of the answer and of the cursor.
  overlay() {
    if (this.asked) {
      const { bits, layer } = this.asked;
      for (const bit of bits) this.outline(layer, bit.position, bit.set ? this.paint.cool : this.paint.bad, 2);
    }
    if (this.cursor && this.cursor.layer < this.byLayer.length) this.outline(this.cursor.layer, this.cursor.position, this.paint.ink, 2);
  }

  outline(layer, position, colour, wide) {
    const [x, y] = this.place(this.tileOf(layer, position), position);
    const inner = this.cell > 6 ? this.cell - 1 : this.cell;
    const out = this.cell > 6 ? 0 : 1.5;
    this.context.strokeStyle = colour;
    this.context.lineWidth = wide;
    this.context.strokeRect(x - out + wide / 2 - 0.5, y - out + wide / 2 - 0.5, inner + 2 * out - wide + 1, inner + 2 * out - wide + 1);
  }

  // show draws an answer's outlines: null for none. Without outlines, before and after,
  // the picture is what it is.
  show(asked) {
    if (!asked && !this.asked) return;
    this.asked = asked;
    this.draw();
  }

  // centre is the middle of a cell, in pixels of the canvas.
  centre(layer, position) {
    const [x, y] = this.place(this.tileOf(layer, position), position);
    return [x + this.cell / 2, y + this.cell / 2];
  }

  // at is the cell under a point of the canvas, or null.
  at(x, y) {
    for (const tile of this.tiles) {
      if (x < tile.x || x >= tile.x + tile.width || y < tile.y) continue;
      const col = Math.floor((x - tile.x) / this.cell);
      let rows = (y - tile.y) / this.cell;
      if (tile.every) {
        const line = Math.floor((y - tile.y) / (tile.every * this.cell + 3));
        rows = line * tile.every + Math.min((y - tile.y - line * (tile.every * this.cell + 3)) / this.cell, tile.every - 0.01);
      }
      const position = tile.first + Math.floor(rows) * tile.cols + col;
      if (rows < tile.rows && position < Math.min(tile.first + tile.size, this.model.layers[tile.layer].m)) return { layer: tile.layer, position };
    }
    return null;
  }

  // move moves the cursor by an arrow key, within its tile and on to the next.
  move(key) {
    const cursor = this.cursor ?? { layer: 0, position: 0 };
    const tile = this.tileOf(cursor.layer, cursor.position);
    const m = this.model.layers[cursor.layer].m;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -tile.cols, ArrowDown: tile.cols, Home: -Infinity, End: Infinity }[key];
    let { layer, position } = cursor;
    if (key === "PageDown" || key === "PageUp") layer = Math.min(Math.max(layer + (key === "PageDown" ? 1 : -1), 0), this.byLayer.length - 1);
    position = Math.min(Math.max(position + (by ?? 0), 0), this.model.layers[layer].m - 1, by === undefined ? Infinity : m - 1);
    this.cursor = { layer, position };
    return this.cursor;
  }
}
