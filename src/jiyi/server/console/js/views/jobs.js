// Jobs with their problems, and the health checks of the server.
import { api } from "../api.js";
import { fill, h } from "../dom.js";
import { ago, moment, named, number, t } from "../i18n.js";
import { icon } from "../icons.js";
import { confirmed, segments } from "../parts/dialogs.js";
import { note as say, noteProblem } from "../parts/notes.js";
import { empty, failure, loading } from "../parts/states.js";
import { session } from "../shell.js";

const EVERY_MS = 5000;
const STATES = { accepted: "mid", extracted: "mid", indexed: "on", failed: "off" };

export async function showJobs(place, params, signal) {
  const health = h("div", null, loading(3));
  const list = h("div", { class: "card" }, loading(4));
  let state = null;
  let before = "";

  async function look() {
    const told = await api.health(session.who.all_users, signal);
    const good = told.checks.every((check) => check.ok);
    fill(health, h("div", { class: `card padded health ${good ? "good" : "poor"}`, role: good ? null : "alert" },
      h("div", { class: "line" }, icon(good ? "check" : "alert"), h("h2", null, good ? t("health_ready") : t("health_not_ready"))),
      h("ul", { class: "checks" }, told.checks.map((check) => h("li", null,
        h("span", { class: check.ok ? "chip on" : "chip off" }, named("check", check.name)),
        (check.problem ?? check.detail) && h("span", null, check.problem ?? check.detail))))));
  }

  async function load() {
    const wanted = state;
    const { items } = await api.jobs({ state, limit: 100 }, signal);
    const now = JSON.stringify(items);
    if (now === before || wanted !== state) return; // redraw only if something changed
    before = now;
    fill(list, items.length ? table(items, load) : empty("jobs", t("jobs_none"), t("jobs_none_text")));
  }

  const refresh = () => Promise.all([
    look().catch((error) => signal.aborted || fill(health, failure(error, refresh))),
    load().catch((error) => signal.aborted || fill(list, h("div", { class: "stack padded" }, failure(error, refresh)))),
  ]);

  fill(place, h("div", { class: "head" }, h("h1", null, t("jobs_title"))), health,
    h("div", { class: "line" }, h("h2", null, t("jobs")), h("span", { class: "push" },
      segments(t("state"), "state", [["", t("jobs_all")], ...Object.keys(STATES).map((name) => [name, named("state", name)])], "", (chosen) => {
        state = chosen || null;
        before = "";
        load().catch(noteProblem);
      }))), list);
  const timer = setInterval(() => document.hidden || refresh(), EVERY_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  await refresh();
}

function table(items, load) {
  const act = async (call, id, words) => {
    try {
      await call(id);
      say(words);
      await load();
    } catch (error) {
      noteProblem(error);
    }
  };
  const cancel = async (job) => {
    if (await confirmed({ title: t("job_cancel_title"), text: t("job_cancel_text"), action: t("job_cancel") })) act(api.cancelJob, job.id, t("job_cancelled"));
  };
  return h("div", { class: "scrolls", tabindex: "0" }, h("table", { class: "table" },
    h("thead", null, h("tr", null, [t("job"), t("state"), t("attempts"), t("problems"), t("when"), ""].map((words) => h("th", { scope: "col", class: words === t("attempts") ? "number" : null }, words)))),
    h("tbody", null, items.map((job) => h("tr", null,
      h("td", null, job.kind, job.session_id && h("div", { class: "tiny faint" }, job.session_id)),
      h("td", null, h("span", { class: `chip ${STATES[job.state]}` }, named("state", job.state))),
      h("td", { class: "number" }, number(job.attempts)),
      h("td", { class: "soft" }, job.problems.join("; "), job.next_attempt_at && job.attempts ? h("div", { class: "tiny faint" }, t("next_attempt", { when: ago(job.next_attempt_at) })) : null),
      h("td", { class: "soft" }, h("time", { datetime: job.updated_at, title: moment(job.updated_at) }, ago(job.updated_at))),
      h("td", null, h("div", { class: "line" },
        session.may("write") && job.state === "failed" ? h("button", { class: "button compact", type: "button", onclick: () => act(api.retryJob, job.id, t("job_retried")) }, t("job_retry")) : null,
        session.may("write") && job.next_attempt_at ? h("button", { class: "button compact", type: "button", onclick: () => cancel(job) }, t("job_cancel")) : null)))))));
}
