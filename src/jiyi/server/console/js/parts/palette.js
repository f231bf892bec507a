// The command palette (Ctrl+K): go to a page, search memories, add one.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { named, t } from "../i18n.js";
import { icon } from "../icons.js";
import { go, open } from "../router.js";
import { session } from "../shell.js";
import { addOne } from "../views/memories.js";
import { dialog } from "./dialogs.js";
import { plain } from "./memory.js";
import { noteProblem } from "./notes.js";

const PAUSE_MS = 160; // after the last key
const MAX_MEMORIES = 7;

/** Shows the palette and does what was chosen. */
export async function showPalette(views) {
  const choice = await dialog((close) => palette(views, close), { label: t("palette"), kind: "palette" });
  choice?.act();
}

function palette(views, close) {
  const list = h("ul", { class: "palette-list", id: "palette-list", role: "listbox", "aria-label": t("palette") });
  const input = h("input", {
    class: "input", type: "text", role: "combobox", autofocus: true, autocomplete: "off", spellcheck: "false", maxlength: 4000,
    placeholder: t("palette_placeholder"), "aria-label": t("palette_placeholder"), "aria-expanded": "true", "aria-controls": list.id, "aria-autocomplete": "list",
  });
  const status = h("p", { class: "unseen", role: "status" });
  let choices = [];
  let at = 0;
  let asking = null;
  let waiting = null;

  function commands(words) {
    const wanted = words.toLowerCase();
    const pages = views.map(({ name, key }) => ({ icon: name, label: t(`nav_${name}`), more: `g ${key}`, words: `${t(`nav_${name}`)} ${name}`, act: () => go(name) }));
    const add = { icon: "add", label: t("add"), words: `${t("add")} add new`, act: () => addOne(words) };
    const week = { icon: "changes", label: t("week_title"), words: t("week_title"), act: () => go("changes", { week: 0 }) };
    return [...(session.may("write") ? [add] : []), week, ...pages].filter((one) => one.words.toLowerCase().includes(wanted));
  }

  /** Shows the commands for these words, then a search for them, then the memories that are found. */
  function draw(hits = []) {
    const words = input.value.trim();
    const search = { icon: "search", label: t("palette_search", { words }), act: () => go("search", { q: words }) };
    const memories = hits.map((hit) => ({ label: plain(hit.content_preview), more: named("type", hit.memory_type), memory: true, act: () => open(hit.id) }));
    const add = { icon: "add", label: t("palette_add", { words }), act: () => addOne(words) };
    choices = [...commands(words), ...(words ? [search] : []), ...memories, ...(words && session.may("write") ? [add] : [])];
    at = Math.min(at, choices.length - 1);
    fill(list, choices.map((one, place) => h("li", {
      id: `palette-${place}`, role: "option", "aria-selected": "false", class: "palette-choice",
      onpointermove: () => mark(place), onclick: () => close(choices[place]),
    }, icon(one.icon ?? "memories"), one.memory ? said("span", { class: "palette-text" }, one.label) : h("span", { class: "palette-text" }, one.label),
    one.more && h("span", { class: "push tiny faint" }, one.more))));
    status.textContent = t("palette_count", { n: choices.length });
    mark(at);
  }

  function mark(place) {
    list.children[at]?.setAttribute("aria-selected", "false");
    at = place;
    list.children[at].setAttribute("aria-selected", "true");
    list.children[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", `palette-${at}`);
  }

  async function find() {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    const query = input.value.trim();
    if (!query) return;
    try {
      const { hits } = await api.search({ query, limit: MAX_MEMORIES }, signal);
      if (input.isConnected && !signal.aborted) draw(hits);
    } catch (error) {
      if (!signal.aborted) noteProblem(error);
    }
  }

  input.addEventListener("input", () => {
    at = 0;
    draw();
    clearTimeout(waiting);
    waiting = setTimeout(find, PAUSE_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (event.key === "Enter") close(choices[at]);
    else if (to !== undefined) mark((to + choices.length) % choices.length);
    else return;
    event.preventDefault();
  });
  draw();
  return h("div", { class: "palette-inner" }, h("div", { class: "search-box" }, icon("search"), input), list, status);
}

/** The button that shows the palette. */
export function paletteButton(views) {
  const apple = /mac|iphone|ipad/i.test(navigator.platform);
  return h("button", { class: "button palette-button", type: "button", data: { action: "palette" }, onclick: () => showPalette(views) },
    icon("search"), h("span", null, t("palette_open")), h("kbd", { class: "push" }, apple ? "⌘ K" : "Ctrl K"));
}
