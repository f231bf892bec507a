// Notifications at the bottom of the page, announced by screen readers; errors stay longer and may have an action.
import { h } from "../dom.js";
import { t } from "../i18n.js";

export const ACTION_MS = 8000; // for which an undo is offered

export function note(text, { bad = false, action = null, label = null } = {}) {
  const place = document.getElementById("notes");
  const shown = h("div", { class: bad ? "note bad" : "note" }, h("span", null, text),
    action && h("button", {
      type: "button",
      onclick: () => {
        shown.remove();
        action();
      },
    }, label));
  place.append(shown);
  while (place.children.length > 3) place.firstChild.remove();
  setTimeout(() => shown.remove(), bad || action ? ACTION_MS : 3500);
}

export function noteProblem(error) {
  if (error.name === "AbortError") return;
  note(error.code === "offline" ? t("problem_offline") : error.detail || error.title || error.message, { bad: true });
}
