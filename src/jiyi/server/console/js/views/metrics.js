// Figures and charts: of one user, or of the server with a key for all users.
import { api } from "../api.js";
import { fill, h } from "../dom.js";
import { bytes, clock, moment, named, number, percent, t } from "../i18n.js";
import { asTable, barChart, lengths, lineChart } from "../parts/charts.js";
import { failure, loading } from "../parts/states.js";
import { session } from "../shell.js";

const EVERY_MS = 10_000;
const ms = (seconds) => (seconds === null || seconds === undefined ? null : seconds * 1000);
const shown = (value) => (value === null ? "–" : number(value, value < 10 ? 1 : 0));
const rate = (value) => (value === null || value === undefined ? "–" : percent(value, value < 1 && value > 0.99 ? 1 : 0));

export async function showMetrics(place, params, signal) {
  const since = h("p");
  const body = h("div", { class: "stack" }, loading());
  fill(place, h("div", { class: "head" }, h("h1", null, t("metrics_title")), since), body);

  async function load() {
    const all = session.who.all_users;
    const [stats, metrics] = await Promise.all([api.stats(all ? { all_users: true } : {}, signal), all ? api.metrics(signal) : null]);
    if (metrics) since.textContent = t("metrics_text", { since: moment(metrics.since) });
    fill(body, ...(metrics ? everything(stats, metrics) : ofOne(stats)));
  }
  const refresh = () => load().catch((error) => signal.aborted || fill(body, failure(error, refresh)));
  const timer = setInterval(() => document.hidden || body.querySelector("details[open]") || refresh(), EVERY_MS); // a table is being read
  signal.addEventListener("abort", () => clearInterval(timer));
  await refresh();
}

function ofOne(stats) {
  const { coverage } = stats;
  return [
    h("div", { class: "card figures" },
      figure(t("metrics_memories"), number(stats.memories)),
      figure(t("metrics_coverage"), coverage.memories ? rate(coverage.embedded / coverage.memories) : "–", `${number(coverage.embedded)} / ${number(coverage.memories)}`)),
    h("p", { class: "hint-box" }, t("metrics_yours")),
    h("div", { class: "cards" }, card(t("metrics_by_type"), types(stats.by_type)), store(stats))];
}

/** The last hour by minute; the server omits minutes without requests. */
function lastHour(minutes) {
  const known = new Map(minutes.map((minute) => [Date.parse(minute.at) / 60_000, minute]));
  const now = Math.floor(Date.now() / 60_000);
  return Array.from({ length: 60 }, (_, at) => known.get(now - 59 + at)
    ?? { at: (now - 59 + at) * 60_000, requests: 0, errors: 0, p50: null, p95: null });
}

function everything(stats, { memory, requests, minutes: told }) {
  const { search } = memory;
  const minutes = lastHour(told);
  const names = minutes.map((minute) => clock(minute.at));
  return [
    h("div", { class: "card figures" },
      figure(t("metrics_memories"), number(memory.memories), `${t("status_archived")}: ${number(memory.archived)}`),
      figure(t("metrics_coverage"), rate(memory.vector_coverage), `${t("keywords")}: ${rate(memory.index_coverage)}`),
      figure(t("metrics_p95"), search.count ? t("ms", { n: shown(ms(search.p95)) }) : "–", search.count ? `p50 ${shown(ms(search.p50))} · p99 ${shown(ms(search.p99))}` : null),
      figure(t("metrics_cache"), rate(memory.cache_hit_rate), `${number(memory.cache.answered)} / ${number(memory.cache.asked)}`),
      figure(t("metrics_requests"), number(requests.total), `${t("metrics_errors")}: ${number(requests.errors)}`),
      figure(t("metrics_tool_use"), rate(memory.tool_use_rate), `${t("metrics_useful")}: ${rate(memory.usefulness)}`)),
    h("div", { class: "cards" },
      growth(memory), recallLatency(minutes, names), relevance(memory.best_relevance),
      card(t("metrics_by_minute"), barChart(t("metrics_by_minute"), minutes.map((minute, at) => [names[at], minute.requests, minute.errors])),
        legend(["", t("metrics_requests")], ["bad", t("metrics_errors")])),
      card(`${t("metrics_latency_minutes")} (ms)`, lineChart(t("metrics_latency_minutes"), names, [minutes.map((minute) => ms(minute.p50)), minutes.map((minute) => ms(minute.p95))]),
        legend(["", "p50"], ["b", "p95"])),
      card(t("metrics_added"), barChart(t("metrics_added"), days(memory.added_by_day))),
      card(t("metrics_importance"), barChart(t("metrics_importance"), memory.by_importance.map((many, at) => [number(at / 10, 1), many]))),
      card(t("metrics_by_type"), types(memory.by_type)),
      h("div", { class: "stack" },
        card(t("metrics_latency"), timings(memory)),
        Object.keys(memory.jobs).length ? card(t("metrics_jobs"), lengths(Object.entries(memory.jobs), (name) => named("state", name))) : null,
        store(stats)),
      h("div", { class: "across" }, card(t("metrics_routes"), routes(requests.by_route))))];
}

/** How many memories there were at the end of each of the last thirty days, without those that were deleted since. */
function growth(memory) {
  let total = memory.memories + memory.archived;
  const totals = days(memory.added_by_day).reverse().map(([name, added]) => {
    const entry = [name, total, added];
    total -= added;
    return entry;
  }).reverse();
  const [[first, before], [last, after]] = [totals[0], totals.at(-1)];
  const label = t("metrics_growth_label", { first, before, last, after });
  return plot("growth", t("metrics_growth"), lineChart(label, totals.map(([name]) => name), [totals.map(([, many]) => many)]),
    asTable([t("week_day"), t("metrics_memories"), t("metrics_added_on")], totals.map(([name, many, added]) => [name, number(many), number(added)])));
}

function recallLatency(minutes, names) {
  const told = minutes.map((minute, at) => [names[at], ms(minute.recall_p50), ms(minute.recall_p95)]);
  const measured = told.filter(([, median]) => median !== null);
  const slowest = Math.max(0, ...measured.map(([, , high]) => high));
  const label = measured.length ? t("metrics_recall_label", { n: measured.length, slowest: shown(slowest) }) : t("metrics_none");
  return plot("latency", `${t("metrics_recall")} (ms)`, lineChart(label, names, [told.map(([, median]) => median), told.map(([, , high]) => high)]),
    legend(["", "p50"], ["b", "p95"]),
    measured.length ? asTable([t("metrics_minute"), "p50 ms", "p95 ms"], measured.map(([name, median, high]) => [name, shown(median), shown(high)])) : null);
}

const STEP = 0.05; // of the relevance
const RELEVANT = 0.6; // where the bars change their colour; the server decides what is relevant

function relevance(counts) {
  const names = counts.map((_, at) => `${number(at * STEP, 2)}–${number((at + 1) * STEP, 2)}`);
  const isWeak = (at) => (at + 1) * STEP <= RELEVANT + 1e-9;
  const all = counts.reduce((sum, many) => sum + many, 0);
  const good = counts.reduce((sum, many, at) => sum + (isWeak(at) ? 0 : many), 0);
  const label = all ? t("metrics_relevance_label", { n: all, good }) : t("metrics_none");
  return plot("relevance", t("metrics_relevance"), barChart(label, counts.map((many, at) => [names[at], many, 0, isWeak(at) ? "bar-weak" : "bar-ok"])),
    legend(["", t("relevant")], ["weak", t("weak")]),
    all ? asTable([t("metrics_relevance_of"), t("metrics_searches")], counts.map((many, at) => [names[at], number(many)])) : null);
}

function plot(name, title, ...inside) {
  return h("section", { class: "card padded stack", data: { plot: name } }, h("h2", null, title), inside);
}

/** The last thirty days, including days without additions. */
function days(added) {
  return Array.from({ length: 30 }, (_, at) => {
    const name = new Date(Date.now() - (29 - at) * 86_400_000).toISOString().slice(0, 10);
    return [name.slice(5), added[name] ?? 0];
  });
}

function card(title, ...inside) {
  return h("section", { class: "card padded stack" }, h("h2", null, title), inside);
}

function legend(...entries) {
  return h("div", { class: "legend" }, entries.map(([kind, words]) => h("span", { class: kind }, h("i"), words)));
}

function figure(label, value, more) {
  return h("div", { class: "figure" }, h("span", { class: "small soft" }, label), h("b", { class: "numbers" }, value), more && h("span", { class: "tiny faint numbers" }, more));
}

function types(byType) {
  const entries = Object.entries(byType).sort(([, a], [, b]) => b - a);
  return entries.length ? lengths(entries, (name) => named("type", name)) : h("p", { class: "soft" }, t("memories_empty"));
}

function timings(memory) {
  const rows = ["search", "add", "keyword_extraction", "llm"].filter((name) => memory[name].count).map((name) => [named("timing", name), memory[name]]);
  return rows.length ? latencies(rows) : h("p", { class: "soft" }, t("metrics_none"));
}

function routes(byRoute) {
  const rows = byRoute.filter((one) => one.route.startsWith("/v1")).sort((a, b) => b.count - a.count).slice(0, 15);
  return latencies(rows.map((one) => [h("code", null, `${one.method} ${one.route.slice(3)}`), one]));
}

function latencies(rows) {
  const cell = (seconds) => h("td", { class: "number" }, shown(ms(seconds)));
  return h("div", { class: "scrolls", tabindex: "0" }, h("table", { class: "table close" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, t("metrics_call")), [t("metrics_calls"), "p50 ms", "p95 ms", "p99 ms"].map((words) => h("th", { scope: "col", class: "number" }, words)))),
    h("tbody", null, rows.map(([name, one]) => h("tr", null, h("th", { scope: "row" }, name), h("td", { class: "number" }, number(one.count)), cell(one.p50), cell(one.p95), cell(one.p99))))));
}

function store(stats) {
  const rows = [[t("metrics_users"), number(stats.users)], [t("metrics_embedder"), stats.embedder], [t("metrics_schema"), stats.schema_version],
    [t("metrics_size"), stats.size_bytes ? bytes(stats.size_bytes) : null], [t("metrics_where"), stats.store]];
  return card(named("check", "store"), h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", null, name), h("dd", null, value)])));
}
