// A memory as an item of a list.
import { h, said } from "../dom.js";
import { ago, day, moment, named } from "../i18n.js";
import { changed } from "../router.js";
import { shownText } from "./when.js";

export function badge(memory) {
  return h("span", { class: `badge layer-${memory.layer}` }, named("type", memory.memory_type));
}

export function tags(memory) {
  return memory.tags.map((tag) => said("span", { class: "chip tag" }, tag));
}

/** The day of a time, with the minute in the title. */
export function time(at, { relative = false } = {}) {
  return h("time", { datetime: at, title: moment(at) }, relative ? ago(at) : day(at));
}

export function opens(id) {
  return changed({ open: id });
}

/** Strips Markdown, for one-line previews. */
export function plain(text) {
  return text.replace(/(^|\s)(#{1,6}|[>*+-])(?=\s)/g, "$1").replace(/\*\*|~~|`+/g, "").replace(/\[([^\]]*)\]\([^)\s]*\)/g, "$1").trim();
}

/** An item of a list, as a link. */
export function row(memory) {
  return h("li", null, h("a", {
    class: memory.status === "archived" ? "row put-aside" : "row", href: opens(memory.id), data: { item: memory.id },
  },
  h("span", { class: "row-head" }, badge(memory), tags(memory), h("span", { class: "push faint tiny numbers" }, time(memory.occurred_at))),
  said("span", { class: "row-text" }, plain(shownText(memory)))));
}

/** Marks the item whose memory is open in the pane. */
export function markOpen(place, id) {
  for (const one of place.querySelectorAll("[data-item]")) {
    if (one.dataset.item === id) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
}
