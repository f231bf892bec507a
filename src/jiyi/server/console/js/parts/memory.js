// How a memory looks in a list.
import { h, said } from "../dom.js";
import { ago, day, moment, named } from "../i18n.js";
import { changed } from "../router.js";

export function badge(memory) {
  return h("span", { class: `badge layer-${memory.layer}` }, named("type", memory.memory_type));
}

export function tags(memory) {
  return memory.tags.map((tag) => said("span", { class: "chip tag" }, tag));
}

/** A day for what happened, with the minute in the title. */
export function time(at, { relative = false } = {}) {
  return h("time", { datetime: at, title: moment(at) }, relative ? ago(at) : day(at));
}

export function opens(id) {
  return changed({ open: id });
}

/** Without the marks of Markdown, for a place where only a line of it is shown. */
export function plain(text) {
  return text.replace(/(^|\s)(#{1,6}|[>*+-])(?=\s)/g, "$1").replace(/\*\*|~~|`+/g, "").replace(/\[([^\]]*)\]\([^)\s]*\)/g, "$1").trim();
}

/** One line of a list; a link, so that it can be opened, copied and reached by keyboard. */
export function row(memory) {
  return h("li", null, h("a", {
    class: memory.status === "archived" ? "row put-aside" : "row", href: opens(memory.id), data: { item: memory.id },
  },
  h("span", { class: "row-head" }, badge(memory), tags(memory), h("span", { class: "push faint tiny numbers" }, time(memory.occurred_at))),
  said("span", { class: "row-text" }, plain(memory.summary || memory.content))));
}

/** Marks the row of the memory that is open beside the list. */
export function markOpen(place, id) {
  for (const one of place.querySelectorAll("[data-item]")) {
    if (one.dataset.item === id) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
}
