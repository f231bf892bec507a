// Maintenance: export, backup, verification, compression preview, health, users, settings in effect, audit log.
import { api, download } from "../api.js";
import { fill, h, said } from "../dom.js";
import { named, number, t } from "../i18n.js";
import { icon } from "../icons.js";
import { confirmed } from "../parts/dialogs.js";
import { plain } from "../parts/memory.js";
import { note as say, noteProblem } from "../parts/notes.js";
import { failure, loading } from "../parts/states.js";
import { virtualList } from "../parts/virtual.js";
import { address } from "../router.js";
import { session } from "../shell.js";
import { tell } from "../events.js";
import { kept } from "../store.js";
import { auditTable } from "./keys.js";

export async function showMaintenance(place, params, signal) {
  const all = session.who.all_users;
  const admin = session.may("admin") && all;
  fill(place, h("div", { class: "head" }, h("h1", null, t("upkeep_title")), h("p", null, t("upkeep_text"))),
    h("div", { class: "cards" }, takeAway(admin), verification(signal), compression(signal), linked()),
    all ? section(t("upkeep_health"), () => Promise.all([api.health(true, signal), api.engineLags(signal)]), health, signal) : null,
    all ? section(t("upkeep_users"), () => api.sizes(signal), users, signal) : null,
    admin ? section(t("upkeep_settings"), () => api.settings(signal), settings, signal, t("upkeep_settings_text")) : null,
    admin ? section(t("audit"), () => api.audit(signal), (found) => (found.items.length ? h("div", { class: "scrolls", tabindex: "0" }, auditTable(found.items, [])) : h("p", { class: "soft padded" }, t("none"))), signal) : null);
}

function card(title, text, ...inside) {
  return h("section", { class: "card padded stack" }, h("h2", null, title), h("p", { class: "small soft" }, text), inside);
}

function section(title, ask, show, signal, text) {
  const body = h("div", { class: "card" }, loading(3));
  const load = () => ask().then((found) => signal.aborted || fill(body, show(found)), (error) => signal.aborted || fill(body, failure(error, load)));
  load();
  return h("section", { class: "stack" }, h("h2", null, title), text && h("p", { class: "small soft" }, text), body);
}

function takeAway(admin) {
  const get = (path, name, query) => async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      await download(path, name, query);
    } catch (error) {
      noteProblem(error);
    }
    button.disabled = false;
  };
  return card(t("upkeep_export"), t("upkeep_export_text", { user: kept.user }), h("div", { class: "line" },
    h("button", { class: "button", type: "button", data: { action: "export" }, onclick: get("v1/export", `${kept.user}.jsonl`, { user_id: kept.user }) }, icon("import"), "JSONL"),
    h("button", { class: "button", type: "button", onclick: get("v1/export", `${kept.user}.md`, { user_id: kept.user, format: "markdown" }) }, icon("import"), "Markdown"),
    admin ? h("button", { class: "button", type: "button", data: { action: "backup" }, onclick: get("v1/backup", "memory-backup.db") }, icon("import"), t("upkeep_backup")) : null));
}

function verification(signal) {
  const result = h("div", { role: "status" });
  const run = async () => {
    fill(result, loading(1));
    try {
      const found = await api.verify(signal);
      const wrong = Object.entries(found.drift);
      fill(result, h("p", null, h("span", { class: wrong.length ? "chip off" : "chip on" }, wrong.length ? t("upkeep_wrong") : t("upkeep_sound")), " ", t("upkeep_checked", { n: found.memories })),
        wrong.length ? h("ul", { class: "plain-list small" }, wrong.map(([kind, many]) => h("li", null, `${kind}: ${number(many)}`)), h("li", null, h("code", null, "jiyi verify --repair"))) : null);
    } catch (error) {
      if (!signal.aborted) fill(result, failure(error, run));
    }
  };
  return card(t("upkeep_verify"), t("upkeep_verify_text"), h("div", null, h("button", { class: "button", type: "button", data: { action: "verify" }, onclick: run }, t("upkeep_verify_run"))), result);
}

function compression(signal) {
  const result = h("div", { role: "status", class: "stack" });
  const look = async () => {
    fill(result, loading(1));
    try {
      const plan = await api.compressPlan(signal);
      fill(result, plan.bundles.length
        ? [h("p", null, t("upkeep_compress_plan", { n: plan.before, after: number(plan.after) })),
          h("ul", { class: "stack bundles" }, plan.bundles.map(bundle)),
          session.may("write") && h("div", null, h("button", { class: "button danger", type: "button", data: { action: "compress" }, onclick: run }, t("upkeep_compress_run")))]
        : h("p", { class: "soft" }, t("upkeep_compress_none")));
    } catch (error) {
      if (!signal.aborted) fill(result, failure(error, look));
    }
  };
  const run = async () => {
    if (!(await confirmed({ title: t("upkeep_compress"), text: t("upkeep_compress_sure"), action: t("upkeep_compress_run") }))) return;
    try {
      const done = await api.compress();
      say(t("upkeep_compressed", { n: done.archived, made: number(done.made) }));
      tell("memory");
      await look();
    } catch (error) {
      noteProblem(error);
    }
  };
  return card(t("upkeep_compress"), t("upkeep_compress_text"), h("div", null, h("button", { class: "button", type: "button", data: { action: "compress-plan" }, onclick: look }, t("upkeep_compress_look"))), result);
}

function bundle(one) {
  return h("li", { class: "source" }, one.members.map((member) => said("del", { class: "small faint" }, plain(member.text))), one.texts.map((text) => said("ins", { class: "small" }, plain(text))));
}

function linked() {
  const link = (view) => h("a", { class: "button", href: address(view) }, icon(view), t(`nav_${view}`));
  return card(t("upkeep_more"), t("upkeep_more_text"), h("div", { class: "line" }, link("jobs"), link("keys"), link("metrics"), link("import")));
}

function health([found, lags]) {
  return h("ul", { class: "checks padded" },
    found.checks.map((check) => h("li", null, h("span", { class: check.ok ? "chip on" : "chip off" }, named("check", check.name)), (check.problem ?? check.detail) && h("span", null, check.problem ?? check.detail))),
    lags.map(([name, lag]) => h("li", null, h("span", { class: lag ? "chip mid" : "chip on" }, name), h("span", { class: "small soft numbers" }, t("upkeep_lag", { n: lag })))));
}

function users(found) {
  const head = h("div", { class: "size-row tiny faint" }, h("span", null, t("user")), h("span", { class: "number" }, t("metrics_memories")), h("span", { class: "number" }, t("upkeep_messages")));
  return [head, virtualList(found.items, (one) => h("li", { class: "size-row" }, said("a", { href: "#", onclick: (event) => { event.preventDefault(); tell("user", one.user_id); } }, one.user_id),
    h("span", { class: "number numbers" }, number(one.memories)), h("span", { class: "number numbers" }, number(one.messages))), null)];
}

function settings(found) {
  const shown = (value) => (value === null ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));
  const set = found.items.filter((one) => one.source !== "default");
  const rows = (items) => h("tbody", null, items.map((one) => h("tr", null, h("th", { scope: "row" }, h("code", null, one.name)), h("td", null, h("code", null, shown(one.value))), h("td", { class: "soft" }, one.source === "default" || one.source === "program" ? t(`upkeep_source_${one.source}`) : one.source))));
  const table = (items) => h("div", { class: "scrolls", tabindex: "0" }, h("table", { class: "table close" }, h("thead", null, h("tr", null, [t("upkeep_setting"), t("value"), t("upkeep_source")].map((words) => h("th", { scope: "col" }, words)))), rows(items)));
  return h("div", { class: "padded stack" }, set.length ? table(set) : h("p", { class: "soft" }, t("upkeep_settings_default")),
    h("details", null, h("summary", null, t("upkeep_settings_all", { n: found.items.length })), table(found.items)));
}
