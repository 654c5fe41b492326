// A filter from real life: a .bloom file that the reader drops, or one on a web server, of
// which a lookup reads one block by HTTP Range. The file stays in the browser.

import { open, openURL } from "../bloomery.js";
import { element } from "./page.js";
import { bytesOf, commas, oneIn } from "./human.js";

const by = (id) => document.getElementById(id);
const largestWhole = 64 << 20; // a larger file is read in place, block by block

export function startFile(t) {
  let filter = null;
  let name = "";
  let failed = null;

  const say = (id, text, kind) => {
    const note = by(id);
    note.hidden = text === "";
    note.className = "note " + (id === "file-verdict" ? "verdict " : "") + kind;
    note.textContent = text;
  };

  async function take(source, from) {
    filter = null;
    failed = null;
    name = from;
    by("file-open").hidden = true;
    say("file-state", t()("opening", { name }), "");
    try {
      filter = await source();
    } catch (error) {
      failed = error;
    }
    show();
  }

  function show() {
    if (failed) say("file-state", t()("notOpened", { name, why: failed.message }), "bad");
    if (!filter) return;
    say("file-state", t()("opened", { name }), "good");
    by("file-open").hidden = false;
    const rows = [
      ["kind", t()("fileKind"), filter.kind],
      ["keys", t()("fileKeys"), commas(filter.n)],
      ["rate", t()("fileRate"), oneIn(filter.p)],
      ["added", t()("fileAdded"), commas(filter.added)],
      ["layers", t()("fileLayers"), String(filter.layers.length)],
      ["size", t()("fileSize"), bytesOf(filter.fileBytes)],
    ];
    if (filter.normalizer) rows.push(["normalizer", t()("fileNormalizer"), filter.normalizer]);
    const facts = by("file-facts");
    facts.replaceChildren();
    for (const [key, label, value] of rows) facts.append(element("dt", {}, label), element("dd", { "data-fact": key }, value));
  }

  async function judge(key) {
    try {
      const place = await filter.where(filter.normalized(key));
      const read = filter.requests === undefined ? "" : " " + t()("fileRead", { requests: commas(filter.requests), bytes: commas(filter.bytesRead) });
      const bits = place.layers.flatMap((layer) => layer.bits.map((bit) => ({ ...bit, layer: layer.layer })));
      const clear = bits.filter((bit) => !bit.set).length;
      const text = filter.kind === "cuckoo" ? t()(place.found ? "fileYesSlot" : "fileNoSlot", { key, fingerprint: place.layers[0].fingerprint, k: bits.length })
        : place.found ? t()("fileYes", { key, rate: oneIn(filter.p) }) : place.excepted ? t()("fileExcepted", { key }) : t()("fileNo", { key, clear, k: bits.length });
      say("file-verdict", text + read, place.found ? "cool" : "good");
      by("file-where").replaceChildren(table(bits));
    } catch (error) {
      say("file-verdict", t()("notJudged", { why: error.message }), "bad");
      by("file-where").replaceChildren();
    }
  }

  function table(bits) {
    const slots = filter.kind === "cuckoo";
    const titles = ["fileLayer", slots ? "fileSlot" : "fileBit", "fileByte", slots ? "fileValue" : "fileState"];
    const head = titles.map((title) => element("th", { scope: "col" }, t()(title)));
    const state = (bit) => slots ? (bit.value === 0 ? t()("slotEmpty") : String(bit.value)) : t()(bit.set ? "isSet" : "isClear");
    const rows = bits.slice(0, 64).map((bit) => element("tr", {}, element("th", { scope: "row" }, String(bit.layer + 1)),
      element("td", {}, commas(bit.position)), element("td", {}, commas(bit.byte)), element("td", {}, element("span", { class: "tag " + (bit.set ? "" : "good") }, state(bit)))));
    return element("table", {}, element("caption", {}, t()(slots ? "fileSlots" : "fileBits")), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
  }

  const fromFile = (file) => file && take(() => open(file, { ranges: file.size > largestWhole }), file.name);
  by("file").addEventListener("change", () => fromFile(by("file").files[0]));
  // The whole page takes a file: a drop next to the field would leave the page otherwise.
  addEventListener("dragover", (event) => {
    event.preventDefault();
    by("drop").classList.add("over");
  });
  addEventListener("dragleave", () => by("drop").classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    by("drop").classList.remove("over");
    fromFile(event.dataTransfer.files[0]);
  });
  by("remote").addEventListener("submit", (event) => {
    event.preventDefault();
    const url = by("url").value.trim();
    if (url) take(() => openURL(new URL(url, location.href)), url);
  });
  by("judge").addEventListener("submit", (event) => {
    event.preventDefault();
    judge(by("key").value);
  });
  new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["lang"] });
}

