// Starts the page: reads the permissions of the key, builds the frame, and shows the view of the address.
import { h, fill } from "./dom.js";
import { hear } from "./events.js";
import { language, t } from "./i18n.js";
import { listenForKeys } from "./keyboard.js";
import { failure } from "./parts/states.js";
import { here, note, open } from "./router.js";
import { buildShell, session } from "./shell.js";
import { kept } from "./store.js";
import { VIEWS } from "./views.js";
import { showPane } from "./views/pane.js";

let leaving = new AbortController();
let shownAs = null;
let shell = null;

function frame() {
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  shell = buildShell(VIEWS, begin, anew);
  fill(document.getElementById("app"), shell.element);
  shownAs = null;
}

/** Shows the view of the address; the pane opens and closes without redrawing the view. */
function show() {
  const { view, params } = here();
  const opened = params.get("open");
  const without = new URLSearchParams(params);
  without.delete("open");
  const wanted = `${view}?${without}`;
  shell.mark(view);
  if (wanted !== shownAs) {
    shownAs = wanted;
    leaving.abort();
    leaving = new AbortController();
    const { signal } = leaving;
    const chosen = VIEWS.find((one) => one.name === view) ?? VIEWS[0];
    document.title = `${t(`nav_${chosen.name}`)} · Jiyi 记忆`;
    const place = h("div", { class: chosen.wide ? "view wide" : "view" });
    fill(shell.main, place);
    (async () => chosen.show(place, params, signal))().catch((error) => {
      if (error.name !== "AbortError" && !signal.aborted) fill(place, failure(error, begin));
    });
  }
  showPane(shell, opened);
}

/** Starts a session: reads the permissions of the key. */
async function begin() {
  leaving.abort();
  frame();
  try {
    await session.begin();
  } catch (error) {
    fill(shell.main, h("div", { class: "view" }, failure(error, begin)));
    return;
  }
  shell.refresh();
  show();
}

/** Redraws in another language or for another user. */
function anew() {
  leaving.abort();
  frame();
  shell.refresh();
  show();
}

addEventListener("hashchange", () => {
  if (session.ready) show();
});
hear("restart", undefined, begin);
hear("user", undefined, (user) => {
  kept.user = user;
  note({ open: null }); // the open memory belongs to another user
  anew();
});
hear("moved", undefined, () => {
  const { view, params } = here();
  params.delete("open");
  shownAs = `${view}?${params}`; // the view has already drawn this address
});
addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("a[data-item]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault(); // keep the current view, not the one of the link
  open(link.dataset.item);
});
listenForKeys(VIEWS);
begin();
