// The change log: what was learned, changed, ended and forgotten, by day, with undo.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { hear, tell } from "../events.js";
import { clock, moment, named, t, weekday } from "../i18n.js";
import { segments } from "../parts/dialogs.js";
import { shownDiff } from "../parts/diff.js";
import { markOpen, opens, plain } from "../parts/memory.js";
import { note as say, noteProblem } from "../parts/notes.js";
import { empty, loading } from "../parts/states.js";
import { here, note } from "../router.js";
import { session } from "../shell.js";

const PAGE = 60;
const SOURCES = ["chat", "person", "agent", "model", "file", "jiyi"];

export async function showChanges(place, params, signal) {
  let source = params.get("source") ?? "";
  let items = [];
  let cursor = null;
  const body = h("div", { class: "stack" }, loading());
  fill(place, h("div", { class: "head" }, h("h1", null, t("changes_title")), h("p", null, t("changes_text"))),
    segments(t("changes_source"), "source", [["", t("changes_all")], ...SOURCES.map((name) => [name, named("source", name)])], source, (chosen) => {
      source = chosen;
      note({ source: chosen || null });
      tell("moved");
      load().catch(noteProblem);
    }), body);

  async function load(more = false) {
    const page = await api.changes({ limit: PAGE, source: source || null, cursor: more ? cursor : null }, signal);
    items = more ? [...items, ...page.items] : page.items;
    cursor = page.next_cursor;
    draw();
  }

  function draw() {
    if (!items.length) {
      fill(body, empty("changes", t("changes_empty"), t("changes_empty_text")));
      return;
    }
    const days = new Map();
    for (const one of items) {
      const name = weekday(one.changed_at);
      days.set(name, [...(days.get(name) ?? []), one]);
    }
    fill(body, [...days].map(([name, entries]) => h("section", { class: "stack log-day" }, h("h2", null, name, " ", h("span", { class: "small faint numbers" }, summary(entries))),
      h("ul", { class: "card rows" }, entries.map(entry)))),
    cursor ? h("button", { class: "button", type: "button", onclick: () => load(true).catch(noteProblem) }, t("more")) : null);
    markOpen(body, here().params.get("open"));
  }

  function entry(one) {
    const text = one.text === null ? h("span", { class: "row-text faint" }, t("changes_gone"))
      : one.before ? shownDiff(one.before, one.text) : said("span", { class: "row-text" }, plain(one.text));
    return h("li", { class: "log-line", data: { change: `${one.memory_id}-${one.version}` } },
      h("div", { class: "row-head" }, h("span", { class: `chip kind-of-${one.kind}` }, t(`changes_${one.kind}`)), one.memory_type && h("span", { class: "tiny faint" }, named("type", one.memory_type)),
        h("span", { class: "tiny faint" }, named("source", one.source)),
        h("time", { class: "push tiny faint numbers", datetime: one.changed_at, title: moment(one.changed_at) }, clock(one.changed_at)),
        one.can_undo && session.may("write") ? h("button", { class: "button compact", type: "button", data: { undo: one.memory_id }, "aria-label": `${t("undo")}: ${plain(one.text)}`, onclick: () => undo(one) }, t("undo")) : null),
      one.text === null ? text : h("a", { class: "quiet", href: opens(one.memory_id), data: { item: one.memory_id } }, text),
      one.reason && said("p", { class: "tiny faint" }, one.reason));
  }

  async function undo(one) {
    try {
      const done = await api.undo(one.memory_id);
      say(done.steps.length ? t("changes_undone") : done.left[0] ?? t("changes_not_undone"));
      tell("memory");
    } catch (error) {
      noteProblem(error);
    }
  }

  hear("memory", signal, () => load().catch(noteProblem));
  hear("shown", signal, (id) => markOpen(body, id));
  await load();
}

function summary(entries) {
  const kinds = ["learned", "changed", "ended", "forgotten", "restored"];
  return kinds.map((kind) => [kind, entries.filter((one) => one.kind === kind).length]).filter(([, many]) => many)
    .map(([kind, n]) => t(`changes_n_${kind}`, { n })).join(" · ");
}
