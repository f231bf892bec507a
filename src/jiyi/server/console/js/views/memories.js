// All memories, newest first, with filters and pages.
import { api } from "../api.js";
import { fill, h } from "../dom.js";
import { hear, tell } from "../events.js";
import { named, t } from "../i18n.js";
import { icon } from "../icons.js";
import { dialog, field, form, segments } from "../parts/dialogs.js";
import { FILTERS, filterFields, some, typeChips, wanted } from "../parts/filters.js";
import { firstRun } from "../parts/firstrun.js";
import { markOpen } from "../parts/memory.js";
import { note as say, noteProblem } from "../parts/notes.js";
import { savedFilters } from "../parts/savedfilters.js";
import { isLeaving, selection } from "../parts/selection.js";
import { empty, failure, loading } from "../parts/states.js";
import { here, note, open } from "../router.js";
import { virtualList } from "../parts/virtual.js";
import { session } from "../shell.js";
import { copy } from "./pane.js";

const PAGE = 100;

export function showMemories(place, params, signal) {
  const count = h("p", { class: "numbers", role: "status", "aria-live": "polite" });
  const chips = h("div");
  const fields = h("div", { hidden: true });
  const toggle = h("button", { class: "button plain compact", type: "button", data: { action: "filters" }, "aria-expanded": "false" }, icon("filter"), t("filters"));
  toggle.addEventListener("click", () => unfold(fields.hidden));
  function unfold(open) {
    fields.hidden = !open;
    toggle.setAttribute("aria-expanded", String(open));
  }
  const saved = h("div", { class: "chips" });
  const statuses = h("div");
  const list = h("div", { class: "card rows" });
  let asking = null;
  signal.addEventListener("abort", () => asking?.abort());

  let shown = null; // the list with its items and the cursor of the next page
  const chosen = selection(() => shown?.items ?? [], () => here().params.get("status") ?? "active");

  async function load(cursor = null) {
    asking?.abort();
    asking = new AbortController();
    const own = asking.signal;
    const { params: now } = here();
    if (!cursor && !list.querySelector("ul")) fill(list, loading(9));
    try {
      const query = { ...wanted(now), status: now.get("status"), limit: PAGE, cursor, include_total: cursor ? null : true };
      const page = await api.list(query, own);
      if (!own.aborted) show(page, cursor, now);
    } catch (error) {
      if (error.name === "AbortError" || own.aborted) return;
      fill(list, h("div", { class: "stack card padded" }, failure(error, () => load())));
    }
  }

  function show(page, cursor, now) {
    const items = page.items.filter((one) => !isLeaving(one));
    if (cursor) shown.items.push(...items);
    else {
      count.textContent = page.total === null ? "" : t("memories_count", { n: page.total - (page.items.length - items.length) });
      shown = { items };
      fill(list, items.length || page.next_cursor ? (shown.list = virtualList(shown.items, chosen.row, signal, { onEnd: more })) : nothing(now));
    }
    chosen.draw();
    shown.cursor = page.next_cursor;
    shown.busy = false;
    shown.list?.grow();
    markOpen(list, now.get("open"));
  }

  /** Reads the next page when the end of the list comes near. */
  function more() {
    if (!shown?.cursor || shown.busy) return;
    shown.busy = true;
    load(shown.cursor);
  }

  function nothing(now) {
    return some(now) || now.get("status")
      ? empty("filter", t("memories_none_match"), t("memories_none_match_text"))
      : firstRun(copy);
  }

  function change(changes, anew = false) {
    note(changes);
    tell("moved");
    draw(anew);
    load();
  }

  let byType = {};
  function draw(anew = true) {
    const { params: now } = here();
    fill(chips, typeChips(byType, now, change));
    savedFilters(saved, now, change);
    fill(statuses, segments(t("status"), "status", [["active", t("status_active")], ["archived", t("status_archived")]], now.get("status") ?? "active",
      (status) => change({ status: status === "active" ? null : status })));
    if (anew && some(now) > Number(Boolean(now.get("types")))) unfold(true);
    if (anew) fill(fields, filterFields(now, change, FILTERS.filter((name) => name !== "types")));
  }

  fill(place,
    h("div", { class: "head" }, h("h1", null, t("memories_title")), count,
      h("div", { class: "end" },
        statuses,
        session.may("write") && h("button", { class: "button", type: "button", data: { action: "add" }, onclick: () => addOne() }, icon("add"), t("add")))),
    h("div", { class: "line" }, chips, toggle), fields, saved, chosen.bar, list);
  draw();
  refreshTypes();
  hear("memory", signal, () => {
    refreshTypes();
    load();
  });
  hear("shown", signal, (id) => markOpen(list, id));
  return load();

  function refreshTypes() {
    api.stats({}, signal).then((stats) => {
      byType = stats.by_type;
      draw(false);
    }, () => null);
  }
}

/** Asks for a memory, beginning with these words, and adds it. */
export async function addOne(words = "") {
  const text = h("textarea", { class: "textarea", value: words, autofocus: true, maxlength: 100_000, required: true });
  const type = h("input", { class: "input", list: "types-known", placeholder: "fact", maxlength: 64 });
  const receipt = await dialog((close) => form(async () => {
    if (!text.value.trim()) return text.focus();
    try {
      close(await api.add({ text: text.value, ...(type.value.trim() ? { memory_type: type.value.trim() } : {}) }));
    } catch (error) {
      noteProblem(error);
    }
    return undefined;
  },
  h("h2", null, t("add")), field(t("add_text"), text), field(t("filter_type"), type), typesKnown(),
  h("div", { class: "ends" },
    h("button", { class: "button", type: "button", onclick: () => close(null) }, t("cancel")),
    h("button", { class: "button first", type: "submit" }, t("save")))), { label: t("add") });
  if (!receipt) return;
  say(receipt.ended.length ? t("add_ended", { n: receipt.ended.length }) : receipt.created ? t("add_done") : t("add_known"));
  tell("memory");
  if (receipt.memories.length) open(receipt.memories[0].id);
}

export function typesKnown() {
  const names = ["fact", "preference", "task", "event", "episode", "pattern", "skill", "lesson"];
  return h("datalist", { id: "types-known" }, names.map((name) => h("option", { value: name }, named("type", name))));
}
