// Bars over time in lanes, with zoom, pan and a line for the chosen time.
import { h, said } from "../dom.js";
import { day, number, t } from "../i18n.js";
import { icon } from "../icons.js";
import { opens } from "./memory.js";
import { saysEnd, valueText } from "./attributes.js";

const STEPS = 1000; // of the slider
const DAY = 86_400_000;
const LABEL = 74; // pixels that a label of the axis needs
const SHARE = 0.95; // of the bars that the first view holds
const FEWEST = 5; // bars; with fewer, none is left out

export const begins = (memory) => Date.parse(memory.valid_from);
export const ends = (memory) => (memory.valid_to ? Date.parse(memory.valid_to) : Infinity);

/** The time span of the first view: it leaves out a few bars if they would squash the others to less than half. */
export function firstSpan(items, now = Date.now()) {
  const starts = items.map(begins).sort((a, b) => a - b);
  const left = starts.length < FEWEST ? 0 : Math.max(Math.floor(starts.length * (1 - SHARE)), 1);
  let [from, to] = [0, starts.length - 1];
  for (let gone = 0; gone < left; gone += 1) {
    const span = Math.max(now, starts[to]) - starts[from];
    const later = Math.max(now, starts[to]) - starts[from + 1];
    const earlier = Math.max(now, starts[to - 1]) - starts[from];
    if (Math.min(later, earlier) > span / 2) break;
    if (later <= earlier) from += 1;
    else to -= 1;
  }
  const [first, last] = [starts[from], Math.max(now, starts[to])];
  const room = Math.max(last - first, DAY);
  return { low: first - room * 0.02, high: last + room * 0.03 };
}

export function timeChart(lanes, count) {
  const all = lanes.flatMap((lane) => lane.items);
  const now = Date.now();
  const whole = { low: Math.min(...all.map(begins)) - DAY, high: Math.max(now, ...all.map((one) => begins(one))) + DAY };
  const first = firstSpan(all, now);
  let { low, high } = first;
  let at = now;
  const x = (time) => (100 * (Math.min(Math.max(time, low), high) - low)) / (high - low);
  const bars = [];

  const bar = (memory) => {
    const to = ends(memory);
    const link = said("a", {
      class: `span${to === Infinity ? " lasting" : ""}${saysEnd(memory) ? " over" : ""}`, href: opens(memory.id), data: { item: memory.id },
      title: `${memory.content}\n${to === Infinity ? t("valid_now", { from: day(memory.valid_from) }) : t("valid_ended", { from: day(memory.valid_from), to: day(memory.valid_to) })}`,
    }, valueText(memory));
    bars.push([memory, link]);
    return link;
  };

  const line = h("i", { class: "moment-line" });
  const when = h("output", { class: "moment-when numbers" });
  const range = h("input", { class: "moment", type: "range", min: 0, max: STEPS, step: "any", "aria-label": t("timeline_moment") });
  const axis = h("div", { class: "track" }, line);
  const outside = h("span", { class: "small faint numbers", role: "status" });

  function place() {
    let hidden = 0;
    for (const [memory, link] of bars) {
      const [from, to] = [begins(memory), Math.min(ends(memory), high)];
      link.hidden = from > high || ends(memory) < low;
      hidden += link.hidden;
      link.style.left = `${x(from)}%`;
      link.style.width = `${Math.max(x(to) - x(from), 0.4)}%`;
      link.classList.toggle("cut", from < low);
    }
    const width = axis.clientWidth || 600;
    axis.replaceChildren(...ticks(low, high, Math.max(Math.floor(width / LABEL), 2)).map(([time, words]) =>
      h("i", { class: "tick", css: { left: `${x(time)}%` } }, h("span", null, words))), line);
    outside.textContent = hidden ? t("timeline_outside", { n: hidden }) : "";
    range.value = (STEPS * (Math.min(Math.max(at, low), high) - low)) / (high - low);
    move(false);
  }

  function move(chosen = true) {
    if (chosen) at = low + ((high - low) * Number(range.value)) / STEPS;
    const shown = Math.min(Math.max(at, low), high);
    line.style.left = `${x(shown)}%`;
    when.style.setProperty("--at", `${x(shown)}%`);
    when.textContent = day(shown);
    range.setAttribute("aria-valuetext", day(shown));
    let valid = 0;
    for (const [memory, link] of bars) {
      const holding = begins(memory) <= shown && shown < ends(memory);
      valid += holding;
      link.classList.toggle("past", !holding);
    }
    count.textContent = `${t("timeline_at", { date: day(shown) })}: ${t("timeline_count", { n: valid, of: number(all.length) })}`;
  }

  /** Shows another span, not wider than all bars and not narrower than a day. */
  function look(from, to) {
    const length = Math.min(Math.max(to - from, DAY), whole.high - whole.low + 2 * DAY);
    const start = Math.min(Math.max(from, whole.low - length / 2), whole.high - length / 2);
    [low, high] = [start, start + length];
    place();
  }
  const zoom = (by, middle = (low + high) / 2) => look(middle - (middle - low) * by, middle + (high - middle) * by);
  const pan = (by) => look(low + (high - low) * by, high + (high - low) * by);

  const button = (name, action, inside) => h("button", {
    class: "icon-button lined", type: "button", title: t(`timeline_${name}`), "aria-label": t(`timeline_${name}`), data: { action: `time-${name}` }, onclick: action,
  }, inside);
  const controls = h("div", { class: "line time-controls" },
    button("earlier", () => pan(-0.4), "←"), button("zoom_in", () => zoom(0.5), icon("add")), button("zoom_out", () => zoom(2), "−"),
    button("later", () => pan(0.4), "→"),
    h("button", { class: "button compact", type: "button", data: { action: "time-fit" }, onclick: () => look(first.low, first.high) }, t("timeline_fit")),
    h("button", { class: "button compact", type: "button", data: { action: "time-all" }, onclick: () => look(whole.low, whole.high) }, t("timeline_all")),
    h("button", {
      class: "button compact", type: "button",
      onclick: () => {
        at = now;
        if (now < low || now > high) pan((now - (low + high) / 2) / (high - low));
        place();
      },
    }, t("timeline_today")), outside);

  const body = h("div", { class: "lanes" },
    h("div", { class: "lane over" }, h("span"), axis),
    lanes.map((lane, order) => [
      lane.who && lane.who !== lanes[order - 1]?.who && said("div", { class: "lane-group" }, lane.who),
      h("div", { class: "lane" }, h("span", { class: "lane-name" }, lane.label),
        h("div", { class: "track" }, lane.rows.map((row) => h("div", { class: "track-row" }, row.map(bar))),
          lane.more ? h("p", { class: "tiny faint" }, t("timeline_more", { n: lane.more })) : null))]));
  const element = h("div", { class: "card timeline" }, controls,
    h("div", { class: "lane axis" }, h("span"), h("div", { class: "track" }, when, range)), body);
  range.addEventListener("input", () => move());
  dragged(body, axis, (part) => look(low - part * (high - low), high - part * (high - low)));
  body.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // without it the page scrolls
    event.preventDefault();
    const box = axis.getBoundingClientRect();
    zoom(Math.exp(event.deltaY / 400), low + ((high - low) * (event.clientX - box.left)) / box.width);
  }, { passive: false });
  requestAnimationFrame(place); // the width is known then
  place();
  return { element, place };
}

/** Calls `pan` with the share of the width by which the background was dragged. */
function dragged(body, axis, pan) {
  let from = null;
  body.addEventListener("pointerdown", (event) => {
    if (event.button || event.target.closest("a, button")) return;
    from = event.clientX;
    body.setPointerCapture(event.pointerId);
  });
  body.addEventListener("pointermove", (event) => {
    if (from === null) return;
    pan((event.clientX - from) / axis.getBoundingClientRect().width);
    from = event.clientX;
  });
  for (const name of ["pointerup", "pointercancel"]) {
    body.addEventListener(name, () => {
      from = null;
    });
  }
}

const UNITS = [[1, "d"], [2, "d"], [7, "d"], [14, "d"], [1, "m"], [3, "m"], [6, "m"], [1, "y"], [2, "y"], [5, "y"], [10, "y"], [25, "y"], [100, "y"]];
const LENGTH = { d: DAY, m: 30.4 * DAY, y: 365.25 * DAY };

/** At most `most` ticks of days, months or years. */
export function ticks(low, high, most) {
  const [step, unit] = UNITS.find(([many, name]) => (high - low) / (many * LENGTH[name]) <= most) ?? UNITS.at(-1);
  const time = new Date(low);
  time.setUTCHours(0, 0, 0, 0);
  if (unit !== "d") time.setUTCDate(1);
  if (unit === "m") time.setUTCMonth(time.getUTCMonth() - (time.getUTCMonth() % step));
  if (unit === "y") time.setUTCFullYear(time.getUTCFullYear() - (time.getUTCFullYear() % step), 0);
  const found = [];
  for (let guard = 0; time.getTime() < high && guard < 200; guard += 1) {
    if (time.getTime() > low) found.push([time.getTime(), label(time, unit)]);
    if (unit === "d") time.setUTCDate(time.getUTCDate() + step);
    else if (unit === "m") time.setUTCMonth(time.getUTCMonth() + step);
    else time.setUTCFullYear(time.getUTCFullYear() + step);
  }
  return found;
}

function label(time, unit) {
  const iso = time.toISOString();
  if (unit === "y") return String(time.getUTCFullYear());
  return unit === "m" ? iso.slice(0, 7) : iso.slice(5, 10);
}
