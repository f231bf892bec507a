// A week of changes: its days, and how much of each kind changed on them.
import { h } from "../dom.js";
import { day, t, weekday } from "../i18n.js";
import { dayOf } from "./days.js";

export const KINDS = ["learned", "changed", "ended", "forgotten", "restored"];
const DAYS = 7;

/** The local midnight at which a week begins: this one is 0, the one before it -1. */
export function weekStart(offset, now = new Date()) {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - ((now.getDay() + 6) % DAYS) + DAYS * offset);
}

/** "16 Nov 2026 – 22 Nov 2026" */
export function weekName(offset) {
  return `${day(weekStart(offset))} – ${day(new Date(weekStart(offset + 1) - 1))}`;
}

/** A table of the days of a week with the number of changes of each kind. */
export function weekTable(offset, entries) {
  const start = weekStart(offset);
  const days = Array.from({ length: DAYS }, (_, at) => new Date(start.getFullYear(), start.getMonth(), start.getDate() + at));
  const count = (some, kind) => some.filter((one) => one.kind === kind).length;
  const cells = (some) => KINDS.map((kind) => h("td", { class: count(some, kind) ? "number" : "number faint", data: { kind } }, String(count(some, kind))));
  const rows = days.filter((one) => one <= new Date()).map((one) => {
    const own = entries.filter((entry) => dayOf(entry.changed_at) === dayOf(one));
    return h("tr", { data: { day: dayOf(one) } }, h("th", { scope: "row" }, weekday(one)), cells(own));
  });
  return h("div", { class: "card scrolls", tabindex: "0" }, h("table", { class: "table" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, t("week_day")), KINDS.map((kind) => h("th", { scope: "col", class: "number" }, t(`changes_${kind}`))))),
    h("tbody", null, rows),
    h("tfoot", null, h("tr", null, h("th", { scope: "row" }, t("week_total")), cells(entries)))));
}
