// Validity over time: a lane per attribute, a bar per value, and a line for the chosen time.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { hear, tell } from "../events.js";
import { day, named, number, t } from "../i18n.js";
import { segments } from "../parts/dialogs.js";
import { attributeName } from "../parts/attributes.js";
import { markOpen, opens } from "../parts/memory.js";
import { noteProblem } from "../parts/notes.js";
import { empty, failure, loading } from "../parts/states.js";
import { here, note } from "../router.js";

const PAGE = 300;
const STEPS = 1000; // of the slider

export async function showTimeline(place, params, signal) {
  const body = h("div", { class: "stack" }, loading());
  const count = h("p", { class: "small soft numbers", role: "status", "aria-live": "polite" });
  let items = [];
  let cursor = null;
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
    fill(body, chart(lanes, count), count, older());
    markOpen(body, here().params.get("open"));
  }

  function older() {
    return cursor && h("button", { class: "button", type: "button", onclick: () => load(true).catch((error) => body.append(failure(error))) }, t("timeline_older"));
  }

  hear("memory", signal, () => load().catch(noteProblem));
  hear("shown", signal, (id) => markOpen(body, id));
  await load();
}

const begins = (memory) => Date.parse(memory.valid_from);
const ends = (memory) => (memory.valid_to ? Date.parse(memory.valid_to) : Infinity);

/** Lanes by subject and attribute, or by type. */
function lanesOf(items, shown) {
  const lanes = new Map();
  for (const memory of items) {
    const { subject, attribute } = memory.data;
    const fact = typeof attribute === "string" && !["episode", "profile", "group_profile", "message"].includes(memory.memory_type);
    if (!fact && shown !== "everything") continue;
    const who = fact ? subject ?? "" : "";
    const name = fact ? attribute : memory.memory_type;
    const key = `${who}\n${name}`;
    if (!lanes.has(key)) lanes.set(key, { who, name, fact, items: [] });
    lanes.get(key).items.push(memory);
  }
  const all = [...lanes.values()].filter((lane) => shown !== "changed" || lane.items.some((one) => one.valid_to));
  for (const lane of all) {
    lane.items.sort((a, b) => begins(a) - begins(b));
    lane.rows = packed(lane.items);
  }
  const changes = (lane) => lane.items.filter((one) => one.valid_to).length;
  const many = new Map();
  for (const lane of all) many.set(lane.who, (many.get(lane.who) ?? 0) + lane.items.length);
  return all.sort((a, b) => Number(b.fact) - Number(a.fact) || many.get(b.who) - many.get(a.who) || a.who.localeCompare(b.who)
    || changes(b) - changes(a) || a.name.localeCompare(b.name));
}

/** Overlapping bars get separate rows, at most six. */
function packed(items) {
  const rows = [];
  for (const memory of items) {
    let row = rows.find((one) => one.until <= begins(memory));
    if (!row && rows.length < 6) rows.push((row = { until: 0, items: [] }));
    row ??= rows[items.indexOf(memory) % rows.length];
    row.items.push(memory);
    row.until = ends(memory);
  }
  return rows.map((row) => row.items);
}

function chart(lanes, count) {
  const all = lanes.flatMap((lane) => lane.items);
  const now = Date.now();
  const first = Math.min(...all.map(begins));
  const low = first - (now - first) * 0.02;
  const high = Math.max(now, ...all.map((one) => Math.min(ends(one), now))) + (now - first) * 0.015 + 3_600_000;
  const x = (at) => (100 * (Math.min(Math.max(at, low), high) - low)) / (high - low);
  const bars = [];

  const bar = (memory) => {
    const to = ends(memory);
    const text = memory.data.value && typeof memory.data.value === "string" ? memory.data.value : memory.summary || memory.content;
    const link = said("a", {
      class: to === Infinity ? "span lasting" : "span", href: opens(memory.id), data: { item: memory.id },
      css: { left: `${x(begins(memory))}%`, width: `${Math.max(x(to) - x(begins(memory)), 0.4)}%` },
      title: `${memory.content}\n${to === Infinity ? t("valid_now", { from: day(memory.valid_from) }) : t("valid_ended", { from: day(memory.valid_from), to: day(memory.valid_to) })}`,
    }, text);
    bars.push([memory, link]);
    return link;
  };

  const line = h("i", { class: "moment-line" });
  const when = h("output", { class: "moment-when numbers" });
  const range = h("input", { class: "moment", type: "range", min: 0, max: STEPS, step: "any", "aria-label": t("timeline_moment") });
  const move = () => {
    const at = low + ((high - low) * Number(range.value)) / STEPS;
    line.style.left = `${x(at)}%`;
    when.style.setProperty("--at", `${x(at)}%`);
    when.textContent = day(at);
    range.setAttribute("aria-valuetext", day(at));
    let valid = 0;
    for (const [memory, link] of bars) {
      const holds = begins(memory) <= at && at < ends(memory);
      valid += holds;
      link.classList.toggle("past", !holds);
    }
    count.textContent = `${t("timeline_at", { date: day(at) })}: ${t("timeline_count", { n: valid, of: number(all.length) })}`;
  };
  const element = h("div", { class: "card timeline" },
    h("div", { class: "lane axis" }, h("span", null, h("button", {
      class: "button compact", type: "button",
      onclick: () => {
        range.value = (STEPS * (now - low)) / (high - low);
        move();
      },
    }, t("timeline_today"))), h("div", { class: "track" }, when, range)),
    h("div", { class: "lanes" },
      h("div", { class: "lane over" }, h("span"), h("div", { class: "track" }, ticks(low, high).map(([at, words]) => h("i", { class: "tick", css: { left: `${x(at)}%` } }, h("span", null, words))), line)),
      lanes.map((lane, at) => [
        lane.who && lane.who !== lanes[at - 1]?.who && said("div", { class: "lane-group" }, lane.who),
        h("div", { class: "lane" },
          h("span", { class: "lane-name" }, lane.fact ? attributeName(lane.name) : named("type", lane.name)),
          h("div", { class: "track" }, lane.rows.map((row) => h("div", { class: "track-row" }, row.map(bar)))))])));
  range.value = (STEPS * (now - low)) / (high - low);
  range.addEventListener("input", move);
  move();
  return element;
}

/** Ticks: years, months or days, depending on the range. */
function ticks(low, high) {
  const days = (high - low) / 86_400_000;
  const every = days > 3650 ? [24, "y"] : days > 900 ? [12, "y"] : days > 420 ? [3, "m"] : days > 60 ? [1, "m"] : [0, "d"];
  const found = [];
  const at = new Date(low);
  if (every[0]) at.setUTCDate(1), at.setUTCMonth(every[0] >= 12 ? 0 : at.getUTCMonth() - (at.getUTCMonth() % every[0]));
  at.setUTCHours(0, 0, 0, 0);
  const step = Math.max(1, Math.ceil(days / 8));
  for (let guard = 0; at.getTime() < high && guard < 60; guard += 1) {
    if (at.getTime() > low) {
      const words = every[1] === "y" ? String(at.getUTCFullYear()) : every[1] === "m"
        ? `${at.getUTCFullYear()}-${String(at.getUTCMonth() + 1).padStart(2, "0")}` : at.toISOString().slice(5, 10);
      found.push([at.getTime(), words]);
    }
    if (every[0]) at.setUTCMonth(at.getUTCMonth() + every[0]);
    else at.setUTCDate(at.getUTCDate() + step);
  }
  return found;
}
