// Search as you type. Old results stay until new ones arrive; an outdated request is aborted.
import { api } from "../api.js";
import { fill, h, marked, said } from "../dom.js";
import { hear, tell } from "../events.js";
import { named, number, t } from "../i18n.js";
import { icon } from "../icons.js";
import { segments } from "../parts/dialogs.js";
import { filterFields, some, typeChips, wanted } from "../parts/filters.js";
import { badge, markOpen, opens, tags, time } from "../parts/memory.js";
import { relevance, scored, whole } from "../parts/score.js";
import { empty, failure, loading } from "../parts/states.js";
import { here, note } from "../router.js";
import { firstRun } from "../parts/firstrun.js";
import { copy } from "./pane.js";

const PAUSE_MS = 160; // after the last key
const LIMIT = 20;

const nothingStored = () => firstRun(copy);

export function showSearch(place, params, signal) {
  const input = h("input", {
    class: "input", type: "search", value: params.get("q") ?? "", autocomplete: "off", spellcheck: "false", maxlength: 4000,
    placeholder: t("search_placeholder"), "aria-label": t("search_label"), "aria-controls": "found",
  });
  const found = h("div", { class: "found stack", id: "found" });
  const count = h("p", { class: "small soft numbers", role: "status", "aria-live": "polite" });
  const panel = h("div", { class: "stack filter-panel", hidden: !some(params) });
  const toggle = h("button", { class: "button plain compact", type: "button", "aria-expanded": String(!panel.hidden) }, icon("filter"), t("filters"));
  toggle.addEventListener("click", () => {
    panel.hidden = !panel.hidden;
    toggle.setAttribute("aria-expanded", String(!panel.hidden));
  });

  let asking = null;
  let waiting = null;
  signal.addEventListener("abort", () => asking?.abort());
  const expanded = new Set(); // ids of hits whose explanation is shown

  async function ask() {
    clearTimeout(waiting);
    asking?.abort();
    const { params: now } = here();
    const query = (now.get("q") ?? "").trim();
    if (!query) {
      count.textContent = "";
      fill(found, stored === 0 ? nothingStored() : empty("search", t("search_start"), t("search_hint")));
      return;
    }
    asking = new AbortController();
    const own = asking.signal;
    if (found.querySelector(".hits")) found.querySelector(".hits").classList.add("stale");
    else fill(found, loading());
    try {
      const { since, until, ...filters } = wanted(now);
      const body = {
        query, search_mode: now.get("mode") ?? "hybrid", limit: LIMIT, explain: true, ...filters,
        ...(since || until ? { time_range: [since, until] } : {}),
      };
      const result = await api.search(Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)), own);
      if (!own.aborted) answer(result);
    } catch (error) {
      if (error.name === "AbortError" || own.aborted) return;
      count.textContent = "";
      fill(found, failure(error, ask));
    }
  }

  function answer(result) {
    const { hits } = result;
    count.textContent = result.searched ? t("search_found", { n: result.total_found, of: number(result.searched) }) : "";
    const other = result.expanded_keywords.filter((word) => !result.query.toLowerCase().includes(word));
    fill(found,
      result.degraded.length ? h("div", { class: "hint-box", role: "alert" }, `${t("search_degraded")}: ${result.degraded.join("; ")}`) : null,
      !result.searched && !some(here().params)
        ? nothingStored()
        : !hits.length
          ? empty("search", t("search_nothing_matched"), t("search_nothing_matched_text", { n: result.searched }))
          : [other.length ? h("p", { class: "small faint also" }, `${t("search_also")}: ${other.slice(0, 12).join(" · ")}`) : null,
            h("ol", { class: "hits" }, hits.map((hit) => h("li", null, card(hit))))]);
    markOpen(found, here().params.get("open"));
  }

  function card(hit) {
    const { explanation } = hit;
    const why = h("button", { class: "button plain compact", type: "button", data: { why: "" }, "aria-expanded": "false" }, t("why"));
    const shown = h("article", { class: "card hit-card" },
      h("a", { class: "hit", href: opens(hit.id), data: { item: hit.id } },
        h("span", { class: hit.relevant ? "score relevant" : "score" }, h("b", null, scored(hit.relevance_score)), h("span", null, relevance(hit.relevant))),
        h("span", { class: "row-head" }, badge(hit), tags(hit), h("span", { class: "push faint tiny numbers" }, time(hit.occurred_at))),
        said("span", { class: "hit-text" }, "")),
      h("div", { class: "hit-foot" }, why));
    const text = shown.querySelector(".hit-text");
    text.lang = /[\u3400-\u9fff]/.test(hit.content_preview) ? "zh" : "en";
    fill(text, marked(hit.content_preview, explanation.matched_terms));
    const turn = (open) => {
      why.setAttribute("aria-expanded", String(open));
      why.textContent = open ? t("why_hide") : t("why");
      shown.querySelector(".why")?.remove();
      if (open) shown.append(whole(explanation));
    };
    why.addEventListener("click", () => {
      const open = !expanded.has(hit.id);
      expanded[open ? "add" : "delete"](hit.id);
      turn(open);
    });
    turn(expanded.has(hit.id));
    return shown;
  }

  function change(changes, anew = false) {
    note(changes);
    tell("moved");
    if (anew || "types" in changes) drawFilters();
    ask();
  }

  let byType = {};
  let stored = null; // number of memories, once known
  function drawFilters() {
    const { params: now } = here();
    fill(panel, typeChips(byType, now, change), filterFields(now, change, ["tag", "session", "group", "since", "until", "as_of"]));
  }

  input.addEventListener("input", (event) => {
    note({ q: input.value });
    tell("moved");
    clearTimeout(waiting);
    if (!event.isComposing) waiting = setTimeout(ask, input.value ? PAUSE_MS : 0);
  });
  input.addEventListener("compositionend", () => {
    waiting = setTimeout(ask, PAUSE_MS);
  });

  fill(place,
    h("h1", { class: "unseen" }, t("nav_search")),
    h("form", { class: "search-box", role: "search", onsubmit: (event) => { event.preventDefault(); ask(); } }, icon("search"), input),
    h("div", { class: "line" },
      segments(t("mode"), "mode", ["hybrid", "keyword", "semantic"].map((mode) => [mode, named("mode", mode)]),
        params.get("mode") ?? "hybrid", (mode) => change({ mode: mode === "hybrid" ? null : mode })),
      toggle, h("span", { class: "push" }, count)),
    panel, found);
  drawFilters();
  api.stats({}, signal).then((stats) => {
    byType = stats.by_type;
    stored = stats.memories;
    drawFilters();
    if (!stored && !input.value) ask();
  }, () => null);
  hear("memory", signal, ask);
  hear("shown", signal, (id) => markOpen(found, id));
  return ask();
}
