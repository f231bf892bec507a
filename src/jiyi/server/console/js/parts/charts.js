// Small SVG charts with text alternatives.
import { h, s } from "../dom.js";
import { number, t } from "../i18n.js";

const [WIDTH, HEIGHT, LEFT, FOOT] = [640, 190, 40, 22];
const FLOOR = HEIGHT - FOOT;

/** A round number at or above the largest value. */
function top(values) {
  const most = Math.max(...values, 1);
  const size = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 2.5, 5, 10].map((step) => step * size).find((step) => step >= most);
}

function frame(label, most, names, drawn) {
  const y = (value) => FLOOR * (1 - value / most);
  const lines = (most > 1 ? [0, most / 2, most] : [0, most]).map((value) => s("g", null,
    s("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value) }),
    s("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, number(value, value % 1 ? 1 : 0))));
  const places = names.length > 2 ? [0, Math.floor((names.length - 1) / 2), names.length - 1] : [names.length - 1];
  const ticks = places.map((at, place) => s("text", {
    x: LEFT + ((WIDTH - LEFT) * (at + (names.length > 2 ? place / 2 : 1))) / names.length, y: HEIGHT - 4,
    "text-anchor": places.length > 1 ? ["start", "middle", "end"][place] : "end",
  }, names[at]));
  return s("svg", { class: "chart", viewBox: `0 -8 ${WIDTH} ${HEIGHT + 8}`, role: "img", "aria-label": label }, lines, drawn, ticks);
}

/** Bars of [name, value, errors among them, class]. */
export function barChart(label, entries) {
  const most = top(entries.map(([, value]) => value));
  const step = (WIDTH - LEFT) / entries.length;
  const width = Math.max(Math.min(step * 0.72, 40), 1.5);
  const tall = (value) => (FLOOR * value) / most;
  return frame(label, most, entries.map(([name]) => name), entries.map(([name, value, bad = 0, kind = "bar-ok"], at) => {
    const x = LEFT + step * at + (step - width) / 2;
    return s("g", null, s("title", null, `${name}: ${number(value)}${bad ? ` (${number(bad)})` : ""}`),
      s("rect", { class: kind, x, width, y: FLOOR - tall(value - bad), height: tall(value - bad), rx: Math.min(2, width / 3) }),
      bad ? s("rect", { class: "bar-bad", x, width, y: FLOOR - tall(value), height: tall(bad) }) : null);
  }));
}

/** A line per series; null leaves a gap. */
export function lineChart(label, names, series) {
  const most = top(series.flat().map((value) => value ?? 0));
  const step = (WIDTH - LEFT) / names.length;
  const at = ([place, value]) => `${(LEFT + step * (place + 0.5)).toFixed(1)},${(FLOOR * (1 - value / most)).toFixed(1)}`;
  return frame(label, most, names, series.map((values, which) => {
    const points = values.map((value, place) => [place, value]).filter(([, value]) => value !== null);
    const kind = which ? "b" : "a";
    return [
      s("polyline", { class: `line-${kind}`, points: points.map(at).join(" ") }),
      points.length < 12 ? points.map((point) => s("circle", { class: `dot-${kind}`, cx: at(point).split(",")[0], cy: at(point).split(",")[1], r: 2.6 })) : null];
  }));
}

/** The values of a chart as a table, for whoever cannot see it. */
export function asTable(columns, rows) {
  return h("details", { class: "small" }, h("summary", null, t("metrics_as_table")),
    h("div", { class: "scrolls tall", tabindex: "0" }, h("table", { class: "table close" },
      h("thead", null, h("tr", null, columns.map((name, at) => h("th", { scope: "col", class: at ? "number" : "" }, name)))),
      h("tbody", null, rows.map(([name, ...values]) => h("tr", null, h("th", { scope: "row" }, name), values.map((value) => h("td", { class: "number" }, value))))))));
}

/** Horizontal bars of named values. */
export function lengths(entries, named) {
  const most = Math.max(...entries.map(([, value]) => value), 1);
  return h("div", { class: "bars numbers" }, entries.map(([name, value]) => [
    h("span", null, named(name)),
    h("span", null, h("span", { class: name === "failed" ? "bar failed" : "bar", css: { width: `${(100 * value) / most}%` } })),
    h("span", { class: "soft" }, number(value))]));
}
