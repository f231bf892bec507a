// Current facts, patterns and preferences, grouped by the person they are about; what is over stands apart.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { hear } from "../events.js";
import { day, t } from "../i18n.js";
import { attributeName, holds, personOf, saysEnd, valueText } from "../parts/attributes.js";
import { markOpen, opens, row } from "../parts/memory.js";
import { noteProblem } from "../parts/notes.js";
import { empty, loading } from "../parts/states.js";
import { address, here } from "../router.js";
import { kept } from "../store.js";

export async function showProfile(place, params, signal) {
  const body = h("div", { class: "stack" }, loading());
  fill(place, h("div", { class: "head" }, h("h1", null, t("profile_title")), h("p", null, t("profile_text", { user: kept.user }))), body);

  async function load() {
    const { items } = await api.profile(signal);
    const people = new Map();
    for (const memory of items) {
      const who = personOf(memory);
      people.set(who, [...(people.get(who) ?? []), memory]);
    }
    if (!items.length) {
      fill(body, empty("profile", t("profile_empty"), t("profile_empty_text")));
      return;
    }
    const ordered = [...people].sort((a, b) => Number(b[0] === kept.user) - Number(a[0] === kept.user) || b[1].length - a[1].length);
    fill(body, ordered.map(([who, memories]) => person(who, memories)));
    markOpen(body, here().params.get("open"));
  }

  hear("memory", signal, () => load().catch(noteProblem));
  hear("shown", signal, (id) => markOpen(body, id));
  await load();
}

/** A person: attributes with their values, other facts, and what no longer holds. */
export function person(who, memories, { linked = true } = {}) {
  const over = memories.filter((memory) => saysEnd(memory) || !holds(memory));
  const current = memories.filter((memory) => !over.includes(memory));
  const traits = current.filter((memory) => attributeName(memory.data.attribute) && typeof memory.data.value === "string");
  const rest = current.filter((memory) => !traits.includes(memory));
  return h("section", { class: "stack person", data: { person: who } },
    linked && h("div", { class: "line" }, h("span", { class: "face", "aria-hidden": "true" }, [...who][0] ?? "?"),
      h("h2", null, said("a", { class: "quiet", href: address("people", { name: who }) }, who))),
    traits.length ? h("div", { class: "card padded" }, h("dl", { class: "traits" }, traits.map(trait))) : null,
    rest.length ? h("div", { class: "card rows" }, h("ul", null, rest.map(row))) : null,
    over.length ? h("details", { class: "card padded over-list" }, h("summary", null, t("profile_over", { n: over.length })), h("ul", { class: "rows" }, over.map(row))) : null);
}

function trait(memory) {
  return h("div", { class: "trait" }, h("dt", null, attributeName(memory.data.attribute)),
    h("dd", null, said("a", { href: opens(memory.id), data: { item: memory.id } }, valueText(memory)),
      h("span", { class: "tiny faint" }, t("valid_now", { from: day(memory.valid_from) }))));
}
