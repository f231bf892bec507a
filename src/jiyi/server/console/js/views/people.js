// People and things: a list of everybody and everything that memories name, and a page for each.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { hear } from "../events.js";
import { ago, moment, named, t } from "../i18n.js";
import { holds, saysEnd } from "../parts/attributes.js";
import { barChart } from "../parts/charts.js";
import { dialog, field, form, segments } from "../parts/dialogs.js";
import { markOpen, row } from "../parts/memory.js";
import { note as say, noteProblem } from "../parts/notes.js";
import { empty, loading } from "../parts/states.js";
import { virtualList } from "../parts/virtual.js";
import { address, go, here } from "../router.js";
import { session } from "../shell.js";
import { person } from "./profile.js";

const KINDS = ["person", "place", "organisation", "project", "thing"];
const MONTHS = 24; // of the chart

export async function showPeople(place, params, signal) {
  const name = params.get("name");
  if (name) return showOne(place, name, signal);
  const body = h("div", { class: "stack" }, loading());
  let kind = params.get("kind") ?? "";
  fill(place, h("div", { class: "head" }, h("h1", null, t("people_title")), h("p", null, t("people_text"))), body);
  const { items } = await api.subjects(signal);
  if (!items.length) {
    fill(body, empty("people", t("people_empty"), t("people_empty_text")));
    return undefined;
  }
  const list = h("div", { class: "card rows" });
  const draw = () => fill(list, virtualList(items.filter((one) => !kind || one.kind === kind || (kind === "person" && one.kind === "user")), subjectRow, signal));
  fill(body, segments(t("people_kind"), "kind", [["", t("people_all")], ...KINDS.map((one) => [one, named("subject", one)])], kind, (chosen) => {
    kind = chosen;
    draw();
  }), list);
  draw();
  return undefined;
}

function subjectRow(one) {
  return h("li", null, h("a", { class: "row subject", href: address("people", { name: one.name }), data: { subject: one.name } },
    h("span", { class: "face small-face", "aria-hidden": "true" }, [...one.name][0]),
    h("span", { class: "subject-name" }, said("b", null, one.name), h("span", { class: "tiny faint" }, named("subject", one.kind), one.aliases.length ? ` · ${one.aliases.join(", ")}` : "")),
    h("span", { class: "push small soft numbers" }, t("people_facts", { n: one.facts })),
    h("span", { class: "tiny faint numbers subject-last", title: moment(one.last_at) }, ago(one.last_at))));
}

async function showOne(place, name, signal) {
  const body = h("div", { class: "stack" }, loading());
  const heading = h("div", { class: "head" });
  fill(place, h("p", { class: "small" }, h("a", { href: address("people") }, `← ${t("people_title")}`)), heading, body);

  async function load() {
    const [{ items: subjects }, { items }] = await Promise.all([api.subjects(signal), api.mentions(name, signal)]);
    const own = subjects.find((one) => one.name === name || one.aliases.includes(name));
    fill(heading, h("span", { class: "face", "aria-hidden": "true" }, [...name][0]), said("h1", null, own?.name ?? name),
      own ? h("p", null, named("subject", own.kind)) : null,
      own && own.kind !== "user" && session.may("write") ? h("div", { class: "end" }, h("button", { class: "button", type: "button", data: { action: "merge" }, onclick: () => merge(own, subjects) }, t("people_merge"))) : null);
    if (!items.length) {
      fill(body, empty("people", t("people_none"), t("people_none_text")));
      return;
    }
    const current = items.filter((one) => holds(one) && !saysEnd(one));
    const past = items.filter((one) => !current.includes(one));
    fill(body,
      own?.aliases.length ? h("div", { class: "line" }, h("span", { class: "small soft" }, t("people_aliases")), own.aliases.map((alias) => aliasChip(own, alias))) : null,
      h("section", { class: "stack" }, h("h2", null, t("people_current", { n: current.length })), current.length ? person(own?.name ?? name, current, { linked: false }) : h("p", { class: "soft" }, t("none"))),
      past.length ? h("section", { class: "stack" }, h("h2", null, t("people_history", { n: past.length })), h("div", { class: "card rows" }, h("ul", null, past.map(row)))) : null,
      h("section", { class: "card padded stack" }, h("h2", null, t("people_mentions")), barChart(t("people_mentions"), byMonth(items))));
    markOpen(body, here().params.get("open"));
  }

  function aliasChip(own, alias) {
    return h("span", { class: "chip" }, alias, session.may("write") && h("button", {
      class: "drop", type: "button", "aria-label": t("people_split", { name: alias }),
      onclick: () => api.removeSynonym(alias, own.name).then(() => {
        say(t("people_split_done", { name: alias }));
        return load();
      }).catch(noteProblem),
    }, "×"));
  }

  async function merge(own, subjects) {
    const input = h("input", { class: "input", list: "subjects-known", autofocus: true, autocomplete: "off", maxlength: 200 });
    const chosen = await dialog((close) => form(() => input.value.trim() && close(input.value.trim()),
      h("h2", null, t("people_merge_title", { name: own.name })), h("p", { class: "soft" }, t("people_merge_text")), field(t("people_merge_with"), input),
      h("datalist", { id: "subjects-known" }, subjects.filter((one) => one !== own && one.kind !== "user").map((one) => h("option", { value: one.name }))),
      h("div", { class: "ends" },
        h("button", { class: "button", type: "button", onclick: () => close(null) }, t("cancel")),
        h("button", { class: "button first", type: "submit" }, t("people_merge")))), { label: t("people_merge_title", { name: own.name }) });
    if (!chosen) return;
    try {
      await api.addSynonym(own.name, chosen);
      say(t("people_merged", { name: chosen }), { label: t("undo"), action: () => api.removeSynonym(own.name, chosen).then(load).catch(noteProblem) });
      go("people", { name: [own.name, chosen].sort((a, b) => b.length - a.length)[0] });
      await load();
    } catch (error) {
      noteProblem(error);
    }
  }

  hear("memory", signal, () => load().catch(noteProblem));
  hear("shown", signal, (id) => markOpen(body, id));
  await load();
}

/** Numbers of memories in each of the last months up to the newest one. */
function byMonth(items) {
  const last = new Date(Math.max(...items.map((one) => Date.parse(one.occurred_at))));
  return Array.from({ length: MONTHS }, (_, at) => {
    const month = new Date(Date.UTC(last.getUTCFullYear(), last.getUTCMonth() - (MONTHS - 1 - at), 1)).toISOString().slice(0, 7);
    return [month, items.filter((one) => one.occurred_at.startsWith(month)).length];
  });
}
