// What is known of a person, each attribute with since when and the words it came from.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { hear } from "../events.js";
import { day, named, t } from "../i18n.js";
import { attributeName } from "../parts/attributes.js";
import { markOpen, opens, row } from "../parts/memory.js";
import { noteProblem } from "../parts/notes.js";
import { empty, loading } from "../parts/states.js";
import { here } from "../router.js";
import { kept } from "../store.js";

export async function showProfile(place, params, signal) {
  const body = h("div", { class: "stack" }, loading());
  fill(place, h("div", { class: "head" }, h("h1", null, t("profile_title")), h("p", null, t("profile_text", { user: kept.user }))), body);

  async function load() {
    const [profiles, preferences] = await Promise.all([
      api.profile(signal), api.list({ memory_types: ["preference"], limit: 30 }, signal)]);
    const known = (memory) => memory.data.attributes?.length ?? 0;
    const people = [...profiles.items].sort((a, b) => known(b) - known(a));
    if (!people.length && !preferences.items.length) {
      fill(body, empty("profile", t("profile_empty"), t("profile_empty_text")));
      return;
    }
    fill(body, people.map(person),
      preferences.items.length
        ? h("section", { class: "stack" }, h("h2", null, t("profile_preferences")),
          h("div", { class: "card rows" }, h("ul", null, preferences.items.map(row))))
        : null);
    markOpen(body, here().params.get("open"));
  }

  hear("memory", signal, () => load().catch(noteProblem));
  hear("shown", signal, (id) => markOpen(body, id));
  await load();
}

function person(memory) {
  const attributes = Array.isArray(memory.data.attributes) ? memory.data.attributes.filter((one) => one && typeof one === "object") : [];
  const groups = new Map();
  for (const one of attributes) {
    const name = String(one.attribute ?? "");
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  const subject = memory.data.subject || memory.group_id || memory.user_id;
  return h("section", { class: "card padded person" },
    h("div", { class: "line" },
      h("span", { class: "face", "aria-hidden": "true" }, [...String(subject)][0] ?? "?"),
      h("div", null, said("h2", null, String(subject)), h("p", { class: "tiny faint" }, `${named("type", memory.memory_type)} · ${t("updated")} ${day(memory.updated_at)}`)),
      h("a", { class: "button compact push", href: opens(memory.id), data: { item: memory.id } }, t("profile_evidence"))),
    groups.size
      ? h("dl", { class: "traits" }, [...groups].map(([name, values]) => h("div", { class: "trait" },
        h("dt", null, attributeName(name)),
        values.map((one) => h("dd", { title: one.content ?? "" },
          said("span", { class: one.ended ? "no-longer" : null }, String(one.value ?? one.content ?? "")),
          h("span", { class: "tiny faint" }, one.ended ? t("profile_ended") : one.since ? t("profile_since", { date: day(one.since) }) : ""))))))
      : said("p", { class: "prose" }, memory.content));
}
