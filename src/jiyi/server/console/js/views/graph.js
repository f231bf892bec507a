// Relations between memories, as a graph and as a list.
import { api } from "../api.js";
import { fill, h, s, said } from "../dom.js";
import { hear } from "../events.js";
import { named, t } from "../i18n.js";
import { layout } from "../parts/force.js";
import { markOpen, opens } from "../parts/memory.js";
import { noteProblem } from "../parts/notes.js";
import { shownText } from "../parts/when.js";
import { empty, loading } from "../parts/states.js";
import { here, open } from "../router.js";

const [LOWEST, HIGHEST] = [260, 620]; // height of the graph in pixels
const SMALLEST = 0.55; // smallest scale at which labels are readable
const MOST = 300; // newest memories to read
const ALONE = new Set(["message", "episode"]); // types without relations
const AT_ONCE = 6;
const KINDS = ["supports", "contradicts", "refines", "replaced"];

export async function showGraph(place, params, signal) {
  const body = h("div", { class: "stack" }, loading());
  const size = h("span", { class: "numbers" });
  fill(place, h("div", { class: "head" }, h("h1", null, t("graph_title")), h("p", null, t("graph_text")), h("p", { class: "end small" }, size)), body);

  async function load() {
    const graph = await gathered(signal);
    if (!graph.edges.length) {
      fill(body, empty("graph", t("graph_empty"), t("graph_empty_text")));
      return;
    }
    size.textContent = `${t("graph_nodes", { n: graph.nodes.length })} · ${t("graph_edges", { n: graph.edges.length })}`;
    fill(body, picture(graph, Math.max(body.clientWidth - 2, 300), signal),
      h("div", { class: "line legend" }, KINDS.filter((kind) => graph.edges.some((edge) => edge.kind === kind))
        .map((kind) => h("span", { class: `kind-${kind}` }, h("i", { class: `stroke-${kind}` }), t(`relation_${kind}`))),
      h("span", { class: "push" }, t("graph_hint"))),
      h("details", { class: "card padded" }, h("summary", null, t("graph_list")), h("ul", { class: "stack edge-list" }, graph.edges.map((edge) => h("li", null,
        ending(graph.nodes[edge.from]), h("span", { class: `kind kind-${edge.kind}` }, ` ${t(`relation_${edge.kind}`)} `), ending(graph.nodes[edge.to]))))));
    markOpen(body, here().params.get("open"));
  }
  hear("shown", signal, (id) => markOpen(body, id));
  hear("memory", signal, () => load().catch(noteProblem));
  await load();
}

const ending = (memory) => said("a", { href: opens(memory.id), data: { item: memory.id } }, shownText(memory));

/** Relations from the server, and "superseded by" from the memories. */
async function gathered(signal) {
  const { items: memories } = await api.timeline({ limit: MOST }, signal);
  const items = await relationsOf(memories.filter((memory) => !ALONE.has(memory.memory_type)), signal);
  const known = new Map(memories.map((memory) => [memory.id, memory]));
  const pairs = items.map((one) => [one.memory_id, one.target_id, one.relation_type, one.strength]);
  const told = new Set(pairs.map(([from, to]) => [from, to].sort().join()));
  for (const { id, superseded_by: by } of memories) {
    if (by && !told.has([id, by].sort().join())) pairs.push([id, by, "replaced", 1]);
  }
  const whole = pairs.filter(([from, to]) => known.has(from) && known.has(to));
  const ids = [...new Set(whole.flatMap(([from, to]) => [from, to]))];
  const edges = whole.map(([from, to, kind, strength]) => ({ from: ids.indexOf(from), to: ids.indexOf(to), kind, strength }));
  return { nodes: ids.map((id) => known.get(id)), edges };
}

/** Reads the relations of all memories, a few at a time, without duplicates. */
async function relationsOf(memories, signal) {
  const found = new Map();
  const left = [...memories];
  const ask = async () => {
    for (let memory; (memory = left.shift()); ) {
      const { items } = await api.relations(memory.id, signal);
      for (const one of items) found.set([one.memory_id, one.relation_type, one.target_id].join(), one);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, ask));
  return [...found.values()];
}

function shortened(text) {
  const points = [...text];
  const most = /[\u3400-\u9fff]/.test(text) ? 13 : 24;
  return points.length > most ? `${points.slice(0, most).join("")}…` : text;
}

/** Width of a label in pixels; Chinese characters are about twice as wide. */
function widthOf(label) {
  return 24 + [...label].reduce((sum, one) => sum + (/[\u2e80-\uffef]/.test(one) ? 13 : 7.2), 0);
}

function picture({ nodes, edges }, width, signal) {
  const labels = nodes.map((memory) => shortened(shownText(memory)));
  const places = layout(nodes.length, edges.map((edge) => [edge.from, edge.to]), width / HIGHEST, labels.map(widthOf));
  const marks = s("defs", null, KINDS.map((kind) => s("marker", {
    id: `arrow-${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse",
  }, s("path", { d: "M1 1L7 4L1 7", class: `stroke-${kind} tip` }))));
  const lines = edges.map((edge) => s("path", { class: `edge stroke-${edge.kind}`, "marker-end": `url(#arrow-${edge.kind})`, "stroke-width": 0.8 + edge.strength }));
  const circles = nodes.map((memory, at) => {
    const text = shownText(memory);
    return s("a", { class: memory.valid_to ? "node ended" : "node", href: opens(memory.id), data: { item: memory.id }, "aria-label": `${named("type", memory.memory_type)}: ${text}` },
      s("title", null, text), s("circle", { r: 5 + 5 * memory.importance, class: `fill-${memory.layer}` }),
      s("text", { y: 24, "text-anchor": "middle" }, labels[at]));
  });
  const scene = s("g", null, lines, circles);
  const view = fitted(places, width);
  const svg = s("svg", { class: "graph", viewBox: `0 0 ${width} ${view.height}`, role: "group", "aria-label": t("graph_label", { nodes: nodes.length, edges: edges.length }) }, marks, scene);

  const draw = () => {
    circles.forEach((circle, at) => circle.setAttribute("transform", `translate(${places[at].x.toFixed(1)} ${places[at].y.toFixed(1)})`));
    edges.forEach((edge, at) => lines[at].setAttribute("d", bent(places[edge.from], places[edge.to], edge.kind === "replaced" ? 0.16 : -0.1)));
  };
  const look = () => scene.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  handled({ svg, width, circles, places, view, draw, look }, signal);
  draw();
  look();
  return h("div", { class: "card graph-card" }, svg);
}

function bent(from, to, by) {
  const [x, y] = [to.x - from.x, to.y - from.y];
  const far = Math.hypot(x, y) || 1;
  const gap = from.y > to.y && Math.abs(y) > Math.abs(x) ? 32 : 14; // an edge from below ends below the label
  const end = { x: to.x - (x / far) * gap, y: to.y - (y / far) * gap };
  return `M${from.x.toFixed(1)} ${from.y.toFixed(1)}Q${((from.x + to.x) / 2 - y * by).toFixed(1)} ${((from.y + to.y) / 2 + x * by).toFixed(1)} ${end.x.toFixed(1)} ${end.y.toFixed(1)}`;
}

/** Fits the graph into the view, if the labels stay readable. */
function fitted(places, width) {
  const xs = places.map((one) => one.x);
  const ys = places.map((one) => one.y);
  const half = Math.max(...places.map((one) => one.width)) / 2;
  const [left, right, top, foot] = [Math.min(...xs) - half, Math.max(...xs) + half, Math.min(...ys) - 30, Math.max(...ys) + 45];
  const scale = Math.max(Math.min(width / (right - left), HIGHEST / (foot - top), 1.2), SMALLEST);
  const height = Math.min(Math.max((foot - top) * scale, LOWEST), HIGHEST);
  const middle = (low, high, room) => Math.max((room - (low + high) * scale) / 2, -low * scale);
  return { height, scale, x: middle(left, right, width), y: middle(top, foot, height) };
}

function handled({ svg, width, circles, places, view, draw, look }, signal) {
  let held = null; // { at, moved } of a node or of the background
  const unit = () => width / svg.getBoundingClientRect().width;
  svg.addEventListener("pointerdown", (event) => {
    held = { at: circles.indexOf(event.target.closest("a")), moved: false };
    svg.setPointerCapture(event.pointerId);
  }, { signal });
  svg.addEventListener("pointermove", (event) => {
    if (!held || (!event.movementX && !event.movementY)) return;
    held.moved = true;
    const [x, y] = [event.movementX * unit(), event.movementY * unit()];
    if (held.at >= 0) {
      places[held.at].x += x / view.scale;
      places[held.at].y += y / view.scale;
      draw();
    } else {
      view.x += x;
      view.y += y;
      look();
    }
  }, { signal });
  svg.addEventListener("pointerup", () => {
    if (held && !held.moved && held.at >= 0) open(circles[held.at].dataset.item);
    held = null;
  }, { signal });
  svg.addEventListener("click", (event) => {
    if (event.detail) event.preventDefault(); // clicks are handled above; Enter on a link has no detail
  }, { signal });
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) * unit(), (event.clientY - box.top) * unit()];
    const by = Math.min(Math.max(view.scale * Math.exp(-event.deltaY / 500), 0.3), 4) / view.scale;
    Object.assign(view, { x: x - (x - view.x) * by, y: y - (y - view.y) * by, scale: view.scale * by });
    look();
  }, { signal, passive: false });
}
