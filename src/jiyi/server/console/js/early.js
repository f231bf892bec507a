// Runs before the first paint, so that a dark page does not flash white.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("jiyi.theme");
  } catch {
    // storage is disabled: use the theme of the system
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
