// What every page has: the head with its links, the language and the colours.
//
//   const t = startPage(catalogue, (t) => draw again);

import { fill, language, state, translator } from "./i18n.js";
import { texts as own } from "./page.texts.js";

// startPage fills the page with its texts and returns t. When the reader changes the
// language it fills the page again and calls redraw with the new t. When the address
// changes from outside, as by the back button, it calls redraw too.
export function startPage(catalogue, redraw) {
  const show = () => {
    const t = translator(own, catalogue);
    const lang = language();
    document.documentElement.lang = lang === "zh" ? "zh-CN" : "en";
    document.title = t("title") + " \u00b7 Bloomery";
    fill(document, t);
    for (const link of document.querySelectorAll(".top nav a")) link.hash = state().has("lang") ? "lang=" + lang : "";
    for (const button of document.querySelectorAll("[data-lang]")) button.setAttribute("aria-pressed", button.dataset.lang === lang);
    return t;
  };
  for (const button of document.querySelectorAll("[data-lang]")) {
    button.addEventListener("click", () => {
      const values = state();
      values.set("lang", button.dataset.lang);
      history.replaceState(null, "", "#" + values);
      redraw(show(), "language");
    });
  }
  document.querySelector("#theme").addEventListener("click", () => {
    const root = document.documentElement;
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // Storage is refused: the choice lasts as long as the page.
    }
  });
  new MutationObserver(() => redraw(show(), "theme")).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  addEventListener("hashchange", () => redraw(show(), "address"));
  return show();
}

// copyButton makes a button copy what text returns, and say so.
export function copyButton(button, text, t) {
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = t("copied");
    } catch {
      button.textContent = t("notCopied");
    }
    setTimeout(() => (button.textContent = t("copy")), 1500);
  });
}

// element makes an element: element("p", {class: "muted"}, "text", child, ...).
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== undefined));
  return made;
}
