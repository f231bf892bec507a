// Validity over time: a lane per attribute and person, a bar per value.
import { api } from "../api.js";
import { fill, h } from "../dom.js";
import { hear, tell } from "../events.js";
import { named, t } from "../i18n.js";
import { attributeName, personOf } from "../parts/attributes.js";
import { segments } from "../parts/dialogs.js";
import { markOpen } from "../parts/memory.js";
import { noteProblem } from "../parts/notes.js";
import { empty, failure, loading } from "../parts/states.js";
import { begins, ends, timeChart } from "../parts/timechart.js";
import { here, note } from "../router.js";

const PAGE = 300;
const MOST_ROWS = 6; // of a lane
const OTHER_ROWS = 12; // of the lane with facts that have no attribute
const WITHOUT = ["episode", "profile", "group_profile", "message"]; // no facts

export async function showTimeline(place, params, signal) {
  const body = h("div", { class: "stack" }, loading());
  const count = h("p", { class: "small soft numbers", role: "status", "aria-live": "polite" });
  let items = [];
  let cursor = null;
  let chart = null;
  let shown = params.get("show") ?? "facts";

  fill(place, h("div", { class: "head" }, h("h1", null, t("timeline_title")), h("p", null, t("timeline_text")),
    h("div", { class: "end" }, segments(t("timeline_show"), "shown",
      ["changed", "facts", "everything"].map((name) => [name, t(`timeline_${name}`)]), shown, (chosen) => {
        shown = chosen;
        note({ show: chosen === "facts" ? null : chosen });
        tell("moved");
        draw();
      }))), body);

  async function load(more = false) {
    const page = await api.timeline({ limit: PAGE, cursor: more ? cursor : null }, signal);
    items = more ? [...items, ...page.items] : page.items;
    cursor = page.next_cursor;
    draw();
  }

  function draw() {
    const lanes = lanesOf(items, shown);
    if (!lanes.length) {
      fill(body, empty("timeline", t("timeline_empty"), t("timeline_empty_text")), older());
      return;
    }
    chart = timeChart(lanes, count);
    fill(body, chart.element, count, older());
    markOpen(body, here().params.get("open"));
  }

  function older() {
    return cursor && h("button", { class: "button", type: "button", onclick: () => load(true).catch((error) => body.append(failure(error))) }, t("timeline_older"));
  }

  hear("memory", signal, () => load().catch(noteProblem));
  hear("shown", signal, (id) => markOpen(body, id));
  addEventListener("resize", () => chart?.place(), { signal });
  await load();
}

/** Lanes by person and attribute; facts without a readable attribute share one lane of their person. */
export function lanesOf(items, shown) {
  const lanes = new Map();
  for (const memory of items) {
    const fact = !WITHOUT.includes(memory.memory_type);
    if (!fact && shown !== "everything") continue;
    const who = fact ? personOf(memory) : "";
    const name = fact ? attributeName(memory.data.attribute) : null;
    const label = fact ? name ?? t("timeline_other") : named("type", memory.memory_type);
    const key = `${who}\n${label}`;
    if (!lanes.has(key)) lanes.set(key, { who, label, fact, other: !name, items: [] });
    lanes.get(key).items.push(memory);
  }
  const all = [...lanes.values()].filter((lane) => shown !== "changed" || lane.items.some((one) => one.valid_to));
  for (const lane of all) {
    if (shown === "changed" && lane.other) lane.items = lane.items.filter((one) => one.valid_to);
    lane.items.sort((a, b) => begins(a) - begins(b));
    const kept = lane.other ? lane.items.slice(-OTHER_ROWS) : lane.items;
    lane.more = lane.items.length - kept.length;
    lane.items = kept;
    lane.rows = packed(kept, lane.other ? OTHER_ROWS : MOST_ROWS);
  }
  const changes = (lane) => lane.items.filter((one) => one.valid_to).length;
  const many = new Map();
  for (const lane of all) many.set(lane.who, (many.get(lane.who) ?? 0) + lane.items.length);
  return all.sort((a, b) => Number(b.fact) - Number(a.fact) || many.get(b.who) - many.get(a.who) || a.who.localeCompare(b.who)
    || Number(a.other) - Number(b.other) || changes(b) - changes(a) || a.label.localeCompare(b.label));
}

/** Overlapping bars get separate rows. */
function packed(items, most) {
  const rows = [];
  for (const memory of items) {
    let row = rows.find((one) => one.until <= begins(memory));
    if (!row && rows.length < most) rows.push((row = { until: 0, items: [] }));
    row ??= rows[items.indexOf(memory) % rows.length];
    row.items.push(memory);
    row.until = ends(memory);
  }
  return rows.map((row) => row.items);
}
