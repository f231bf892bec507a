// Runs before the first paint, so that a dark page never flashes white. All else is a module.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("jiyi.theme");
  } catch {
    // storage is switched off: the system's theme holds
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
