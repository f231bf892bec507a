// Current facts, patterns and preferences, grouped by the person they are about.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { hear } from "../events.js";
import { t } from "../i18n.js";
import { markOpen, row } from "../parts/memory.js";
import { noteProblem } from "../parts/notes.js";
import { empty, loading } from "../parts/states.js";
import { here } from "../router.js";
import { kept } from "../store.js";

export async function showProfile(place, params, signal) {
  const body = h("div", { class: "stack" }, loading());
  fill(place, h("div", { class: "head" }, h("h1", null, t("profile_title")), h("p", null, t("profile_text", { user: kept.user }))), body);

  async function load() {
    const profile = await api.profile(signal);
    const preferences = profile.items.filter((memory) => memory.memory_type === "preference");
    const people = new Map();
    for (const memory of profile.items.filter((one) => one.memory_type !== "preference")) {
      const subject = String(memory.data.subject || memory.user_id);
      people.set(subject, [...(people.get(subject) ?? []), memory]);
    }
    if (!profile.items.length) {
      fill(body, empty("profile", t("profile_empty"), t("profile_empty_text")));
      return;
    }
    const ordered = [...people].sort((a, b) => b[1].length - a[1].length);
    fill(body, ordered.map(([subject, memories]) => person(subject, memories)),
      preferences.length
        ? h("section", { class: "stack" }, h("h2", null, t("profile_preferences")),
          h("div", { class: "card rows" }, h("ul", null, preferences.map(row))))
        : null);
    markOpen(body, here().params.get("open"));
  }

  hear("memory", signal, () => load().catch(noteProblem));
  hear("shown", signal, (id) => markOpen(body, id));
  await load();
}

function person(subject, memories) {
  return h("section", { class: "stack person" },
    h("div", { class: "line" },
      h("span", { class: "face", "aria-hidden": "true" }, [...subject][0] ?? "?"), said("h2", null, subject)),
    h("div", { class: "card rows" }, h("ul", null, memories.map(row))));
}
