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
import { KINDS, weekName, weekStart, weekTable } from "../parts/week.js";
import { here, note } from "../router.js";
import { session } from "../shell.js";

const PAGE = 60;
const WEEK_PAGE = 500;
const MAX_OF_WEEK = 5000; // changes that are read for a week
const SOURCES = ["chat", "person", "agent", "model", "file", "jiyi"];

export async function showChanges(place, params, signal) {
  let source = params.get("source") ?? "";
  let week = params.get("week") === null ? null : Math.min(Math.trunc(Number(params.get("week"))) || 0, 0);
  let items = [];
  let cursor = null;
  const heading = h("h1");
  const weeks = h("div", { class: "line" });
  const body = h("div", { class: "stack" }, loading());
  fill(place, h("div", { class: "head" }, heading, h("p", null, t("changes_text"))), weeks,
    segments(t("changes_source"), "source", [["", t("changes_all")], ...SOURCES.map((name) => [name, named("source", name)])], source, (chosen) => {
      source = chosen;
      note({ source: chosen || null });
      tell("moved");
      load().catch(noteProblem);
    }), body);

  function choose(chosen) {
    week = chosen;
    note({ week });
    tell("moved");
    drawWeeks();
    load().catch(noteProblem);
  }

  function drawWeeks() {
    heading.textContent = week === null ? t("changes_title") : week === 0 ? t("week_title") : t("week_title_past");
    const step = (name, by, shown) => h("button", { class: "button compact", type: "button", disabled: !shown, data: { week: name }, onclick: () => choose(week + by) }, t(`week_${name}`));
    fill(weeks, segments(t("week_span"), "span", [["week", t("week_this")], ["all", t("changes_all")]], week === null ? "all" : week === 0 ? "week" : "", (chosen) => choose(chosen === "week" ? 0 : null)),
      week === null ? null : [step("before", -1, true), step("after", 1, week < 0), h("span", { class: "small soft numbers", role: "status" }, weekName(week))]);
  }

  /** Reads the changes of the week, page by page, from the newest back. */
  async function loadWeek() {
    const [start, end] = [weekStart(week), weekStart(week + 1)];
    const found = [];
    let next = null;
    let read = 0;
    do {
      const page = await api.changes({ limit: WEEK_PAGE, source: source || null, cursor: next }, signal);
      read += page.items.length;
      found.push(...page.items.filter((one) => new Date(one.changed_at) >= start && new Date(one.changed_at) < end));
      next = page.items.length && new Date(page.items.at(-1).changed_at) < start ? null : page.next_cursor;
    } while (next && read < MAX_OF_WEEK);
    return [found, Boolean(next)];
  }

  async function load(more = false) {
    if (week !== null) {
      const asked = week;
      const [found, cut] = await loadWeek();
      if (asked !== week) return;
      [items, cursor] = [found, null];
      draw(cut);
      return;
    }
    const page = await api.changes({ limit: PAGE, source: source || null, cursor: more ? cursor : null }, signal);
    items = more ? [...items, ...page.items] : page.items;
    cursor = page.next_cursor;
    draw();
  }

  function draw(cut = false) {
    const hint = cut ? h("p", { class: "hint-box" }, t("week_cut", { n: MAX_OF_WEEK })) : null;
    if (!items.length) {
      fill(body, hint, week === null ? empty("changes", t("changes_empty"), t("changes_empty_text")) : empty("changes", t("week_empty")));
      return;
    }
    const days = new Map();
    for (const one of items) {
      const name = weekday(one.changed_at);
      days.set(name, [...(days.get(name) ?? []), one]);
    }
    fill(body, hint, week === null ? null : weekTable(week, items), [...days].map(([name, entries]) => h("section", { class: "stack log-day" }, h("h2", null, name, " ", h("span", { class: "small faint numbers" }, summary(entries))),
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

  drawWeeks();
  hear("memory", signal, () => load().catch(noteProblem));
  hear("shown", signal, (id) => markOpen(body, id));
  await load();
}

function summary(entries) {
  return KINDS.map((kind) => [kind, entries.filter((one) => one.kind === kind).length]).filter(([, many]) => many)
    .map(([kind, n]) => t(`changes_n_${kind}`, { n })).join(" · ");
}
