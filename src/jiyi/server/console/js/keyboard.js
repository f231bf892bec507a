// Keyboard shortcuts. Those without Ctrl or Cmd are ignored in text fields.
import { h } from "./dom.js";
import { t } from "./i18n.js";
import { dialog } from "./parts/dialogs.js";
import { showPalette } from "./parts/palette.js";
import { go } from "./router.js";
import { session } from "./shell.js";
import { paneAction } from "./views/pane.js";

const WRITING = "input:not([type=radio]):not([type=checkbox]):not([type=range]), textarea, select, [contenteditable]";
const PANE_KEYS = { e: "edit", a: "archive", "#": "delete", Delete: "delete", u: "undo", Escape: "close" };

export function listenForKeys(views) {
  let gone = false; // g was pressed
  addEventListener("keydown", (event) => {
    if (event.isComposing || document.querySelector("dialog[open]")) return undefined;
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      return session.ready && done(event, (showPalette(views), true));
    }
    if (event.ctrlKey || event.altKey || event.metaKey) return undefined;
    const writing = event.target instanceof Element && event.target.closest(WRITING);
    if (writing && event.key === "Escape") return leave(event);
    if (writing && event.key === "ArrowDown" && event.target.type === "search") return done(event, move(1, true));
    if (writing) return undefined;
    const after = gone;
    gone = false;
    if (after) {
      const view = views.find((one) => one.key === event.key);
      if (view) return done(event, (go(view.name), true));
    }
    if (event.key === "g") {
      gone = true;
      setTimeout(() => {
        gone = false;
      }, 1200);
      return undefined;
    }
    return done(event, pressed(event));
  });
}

function pressed(event) {
  if (event.key === "?") return showHelp(), true;
  if (event.key === "/") return searchField();
  if (event.key === "j" || event.key === "k") return move(event.key === "j" ? 1 : -1);
  if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target.closest?.("[data-item]")) {
    return move(event.key === "ArrowDown" ? 1 : -1);
  }
  if (event.key === "w") return why(event.target);
  if (PANE_KEYS[event.key]) return paneAction(PANE_KEYS[event.key]);
  return false;
}

function done(event, handled) {
  if (handled) event.preventDefault();
}

function leave(event) {
  if (event.target.type === "search" && event.target.value) return undefined; // the field clears itself first
  event.target.blur();
  return undefined;
}

function searchField() {
  const field = document.querySelector('.main input[type="search"]');
  if (field) field.select(), field.focus();
  else go("search");
  return true;
}

/** Moves the focus to the next or previous item of the list. */
function move(by, fromField = false) {
  const items = [...document.querySelectorAll(".main [data-item]")];
  const at = items.indexOf(document.activeElement);
  const next = items[fromField || at < 0 ? 0 : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return Boolean(next);
}

function why(target) {
  const card = (target.closest?.(".hit-card") ?? document.querySelector(".hit-card"));
  card?.querySelector("[data-why]")?.click();
  return Boolean(card);
}

export function showHelp() {
  const rows = [
    [["/"], "search"], [["Ctrl", "K"], "palette"], [["g"], "go"], [["j", "k"], "move"], [["Enter"], "open"], [["x"], "select"], [["w"], "why"], [["e"], "edit"],
    [["a"], "archive"], [["u"], "undo"], [["#"], "delete"], [["Esc"], "close"], [["?"], "help"],
  ];
  return dialog((close) => h("div", { class: "inner" }, h("h2", null, t("help_title")),
    h("dl", { class: "keys" }, rows.map(([keys, name]) => [
      h("dt", null, keys.map((key) => [h("kbd", null, key), " "])), h("dd", null, t(`help_${name}`))])),
    h("div", { class: "ends" }, h("button", { class: "button", type: "button", autofocus: true, onclick: () => close(null) }, t("close")))),
  { label: t("help_title") });
}
