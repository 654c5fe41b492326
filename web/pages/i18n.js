// Texts in English and Chinese. A page has one catalogue, {en: {key: text}, zh: {...}},
// with the same keys in both; a test compares them. A text may have {names}, which are
// replaced by values.
//
// The state of a page, its language included, is in the address after #, so that a link
// shows what its sender saw, and so that no server is told what was typed.

export const languages = ["en", "zh"];

// state is what the address says. Values are strings.
export function state() {
  return new URLSearchParams(location.hash.slice(1));
}

// setState replaces the address. Values that are "" or undefined are left out; the
// language is kept.
export function setState(values) {
  const next = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && value !== "") next.set(key, value);
  }
  const lang = state().get("lang");
  if (lang) next.set("lang", lang);
  const hash = next.toString();
  history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
}

// language is that of the address (after # or ?), else the browser's, else English.
export function language() {
  const asked = state().get("lang") ?? new URLSearchParams(location.search).get("lang");
  if (languages.includes(asked)) return asked;
  return navigator.language?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

// translator returns t(key, values), which reads the catalogues in the current language.
// A key that is in none is an error.
export function translator(...catalogues) {
  const texts = Object.assign({}, ...catalogues.map((c) => c[language()]));
  return (key, values = {}) => {
    if (!(key in texts)) throw new Error(`no text for ${key}`);
    return texts[key].replace(/\{(\w+)\}/g, (all, name) => (name in values ? String(values[name]) : all));
  };
}

// fill writes the texts into the page: data-t="key" is the element's text,
// data-t-label="key" its aria-label, data-t-hint="key" its placeholder.
export function fill(root, t) {
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of root.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(element.dataset.tLabel));
  for (const element of root.querySelectorAll("[data-t-hint]")) element.setAttribute("placeholder", t(element.dataset.tHint));
}
