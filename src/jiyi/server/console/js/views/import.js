// Imports a file of chats: choose or drop it, upload it, and follow its progress.
import { api } from "../api.js";
import { fill, h } from "../dom.js";
import { tell } from "../events.js";
import { ago, bytes, moment, named, number, t } from "../i18n.js";
import { icon } from "../icons.js";
import { failure } from "../parts/states.js";
import { address } from "../router.js";
import { session } from "../shell.js";

export async function showImport(place, params, signal) {
  const running = h("div", { class: "stack", "aria-live": "polite" });
  const past = h("div", { class: "stack" });
  const most = session.who.limits?.upload_bytes ?? null;
  const chooser = h("input", { type: "file", class: "unseen", id: "chooser", accept: ".zip,.json,.jsonl,.gz,.txt", multiple: true, onchange: () => { take(chooser.files); chooser.value = ""; } });
  const drop = h("label", { class: "drop-place", for: "chooser" }, icon("import"), h("b", null, t("import_drop")),
    h("span", { class: "button" }, t("import_choose")),
    h("span", { class: "small faint" }, t("import_kinds", { size: most ? bytes(most) : "–" })));

  for (const name of ["dragenter", "dragover"]) {
    place.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  for (const name of ["dragleave", "drop"]) {
    place.addEventListener(name, (event) => {
      event.preventDefault();
      if (name === "drop" || !place.contains(event.relatedTarget)) drop.classList.remove("over");
    });
  }
  place.addEventListener("drop", (event) => take(event.dataTransfer.files));

  async function take(files) {
    for (const file of [...files]) await bring(file); // one after the other
  }

  async function bring(file) {
    const card = h("div", { class: "card padded stack", data: { import: file.name } });
    running.prepend(card);
    if (most && file.size > most) {
      fill(card, failure({ title: t("import_failed", { name: file.name }), detail: t("import_too_big", { name: file.name, size: bytes(most) }) }));
      return;
    }
    fill(card, h("b", null, t("import_sending", { name: file.name })), progress().element);
    try {
      await follow(await api.startImport(file), card);
    } catch (error) {
      if (signal.aborted) return;
      fill(card, h("b", null, t("import_failed", { name: file.name })), failure(error));
    }
    await showPast();
  }

  /** Follows an import until it is done, whether started here or before. */
  async function follow(begun, card) {
    watched.add(begun.id);
    const bar = progress();
    const count = h("span", { class: "push small soft numbers" });
    fill(card, h("div", { class: "line" }, h("b", null, t("import_running", { name: begun.filename })), count), bar.element);
    let last = begun;
    for await (const [, value] of api.importEvents(begun.id, signal)) {
      last = value;
      bar.at(value.done, value.total);
      count.textContent = value.total ? t("import_count", { done: value.done, total: value.total }) : "";
    }
    fill(card, outcome(last));
    tell("memory");
  }

  function goOn(items) {
    for (const one of items.filter((each) => each.state === "running" && !watched.has(each.id))) {
      const card = h("div", { class: "card padded stack", data: { import: one.filename } });
      running.append(card);
      follow(one, card).then(showPast).catch((error) => signal.aborted || fill(card, failure(error)));
    }
  }

  const watched = new Set();
  let asked = 0;

  async function showPast() {
    asked += 1;
    const own = asked;
    const { items } = await api.imports(signal).catch(() => ({ items: [] })); // optional: the current import is shown above
    if (own === asked) fill(past, items.length ? [h("h2", null, t("import_past")), table(items)] : null);
    return items;
  }

  fill(place, h("div", { class: "head" }, h("h1", null, t("import_title")), h("p", null, t("import_text"))),
    session.may("write") ? [chooser, drop] : h("div", { class: "hint-box" }, t("problem_scope")), running, past);
  goOn(await showPast());
}

function progress() {
  const filled = h("span");
  const element = h("div", { class: "progress unsure", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100 }, filled);
  return {
    element,
    at(done, total) {
      if (!total) return;
      const part = Math.round((100 * done) / total);
      element.classList.remove("unsure");
      element.setAttribute("aria-valuenow", part);
      filled.style.width = `${part}%`;
    },
  };
}

function outcome(one) {
  if (one.state === "failed") {
    return [h("div", { class: "line" }, h("span", { class: "chip off" }, t("import_state_failed")), h("b", null, t("import_failed", { name: one.filename }))),
      h("p", { class: "problem" }, one.problem ?? "")];
  }
  return [
    h("div", { class: "line" }, h("span", { class: "chip on" }, icon("check"), t("import_state_done")), h("b", null, t("import_done", { name: one.filename })),
      h("a", { class: "button compact push", href: address("memories") }, t("import_look"))),
    ...counted(one)];
}

const sum = (counts) => Object.values(counts).reduce((total, many) => total + many, 0);

/** What an import has read, stored, known and skipped: messages of chats, or memories. */
function counts({ report, memories }) {
  if (report) {
    const skipped = sum(report.left_out);
    return { read: report.messages + skipped, stored: report.new, known: report.messages - report.new, skipped };
  }
  const [read, stored] = [sum(memories.read), sum(memories.new)];
  return { read, stored, known: read - stored, skipped: 0 };
}

function counted(one) {
  if (!one.report && !one.memories) return [];
  const { notes } = one.report ?? one.memories;
  const reasons = Object.entries(one.report?.left_out ?? {}).sort(([, a], [, b]) => b - a);
  return [
    h("p", { class: "soft" }, one.report ? t("import_conversations", { n: one.report.conversations }) : t("import_format", { format: one.memories.format })),
    h("dl", { class: "counts numbers" }, Object.entries(counts(one)).map(([name, many]) => h("div", { data: { count: name } }, h("dt", null, t(`import_count_${name}`)), h("dd", null, number(many))))),
    reasons.length || notes.length
      ? h("div", { class: "small soft" }, reasons.length ? h("b", null, t("import_left_out")) : null,
        h("ul", { class: "plain-list" }, reasons.map(([why, many]) => h("li", null, `${number(many)} × ${named("skip", why)}`)), notes.map((text) => h("li", null, text))))
      : null];
}

function summary(one) {
  if (one.problem) return one.problem;
  if (!one.report && !one.memories) return "";
  return Object.entries(counts(one)).filter(([name, many]) => many || name === "stored").map(([name, many]) => `${t(`import_count_${name}`)} ${number(many)}`).join(" · ");
}

function table(items) {
  const states = { done: "on", failed: "off", running: "mid" };
  return h("div", { class: "card scrolls", tabindex: "0" }, h("table", { class: "table" },
    h("thead", null, h("tr", null, [t("file"), t("state"), t("result"), t("when")].map((words) => h("th", { scope: "col" }, words)))),
    h("tbody", null, items.map((one) => h("tr", null,
      h("td", null, one.filename),
      h("td", null, h("span", { class: `chip ${states[one.state] ?? ""}` }, named("import_state", one.state))),
      h("td", { class: "soft" }, summary(one)),
      h("td", { class: "soft" }, h("time", { datetime: one.created_at, title: moment(one.created_at) }, ago(one.created_at))))))));
}
