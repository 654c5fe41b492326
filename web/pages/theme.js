// Chooses the colours before the page is drawn, so that it does not flash: what the
// reader chose, or else what the system prefers. A classic script, because modules run
// after the first paint. page.js has the button.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    let chosen = null;
    try {
      chosen = localStorage.getItem("theme");
    } catch {
      // Storage is refused: follow the system.
    }
    document.documentElement.dataset.theme = chosen ?? (dark.matches ? "dark" : "light");
  };
  show();
  dark.addEventListener("change", show);
})();
