// API keys with their permissions and users. The secret of a key is shown once, when it is created.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { tell } from "../events.js";
import { ago, day, moment, t } from "../i18n.js";
import { icon } from "../icons.js";
import { endOf } from "../parts/days.js";
import { confirmed, dialog, field, form } from "../parts/dialogs.js";
import { note as say, noteProblem } from "../parts/notes.js";
import { empty, failure, loading } from "../parts/states.js";
import { session } from "../shell.js";
import { kept } from "../store.js";
import { copy } from "./pane.js";

const SCOPES = ["read", "write", "delete", "admin"];

export async function showKeys(place, params, signal) {
  const { who } = session;
  const body = h("div", { class: "stack" }, loading());
  fill(place, h("div", { class: "head" }, h("h1", null, t("keys_title")), h("p", null, t("keys_text")),
    session.may("admin") && h("div", { class: "end" }, h("button", { class: "button first", type: "button", data: { action: "new-key" }, onclick: () => make(load) }, icon("add"), t("key_new")))), body);

  async function load() {
    if (!session.may("admin")) {
      fill(body, empty("keys", t("keys_need_admin"), t("keys_need_admin_text", { scopes: who.scopes.map((scope) => t(`scope_${scope}`)).join(", ") })));
      return;
    }
    const [{ items }, audit] = await Promise.all([api.keys(signal), api.audit(signal)]);
    fill(body,
      items.length ? h("div", { class: "card scrolls", tabindex: "0" }, table(items, load)) : h("div", { class: "card" }, empty("keys", t("keys_none"), t("keys_none_text"))),
      audit.items.length ? [h("h2", null, t("audit")), h("div", { class: "card scrolls", tabindex: "0" }, auditTable(audit.items, items))] : null);
  }
  await load();
}

function stateOf(key) {
  if (key.revoked_at) return h("span", { class: "chip off", title: moment(key.revoked_at) }, t("key_revoked", { when: ago(key.revoked_at) }));
  if (key.expires_at && Date.parse(key.expires_at) < Date.now()) return h("span", { class: "chip off" }, t("key_expired"));
  return h("span", { class: "chip on" }, t("key_active"));
}

function table(items, load) {
  const revoke = async (key) => {
    const sure = await confirmed({ title: t("key_revoke_title", { name: key.name }), text: t("key_revoke_text"), action: t("key_revoke") });
    if (!sure) return;
    try {
      await api.revokeKey(key.id);
      await load();
    } catch (error) {
      noteProblem(error);
    }
  };
  const heads = [t("key_name"), t("key_scopes"), t("key_users"), t("created"), t("key_expires"), t("state"), ""];
  return h("table", { class: "table" },
    h("thead", null, h("tr", null, heads.map((words) => h("th", { scope: "col" }, words)))),
    h("tbody", null, items.map((key) => h("tr", { class: key.revoked_at ? "put-aside" : null },
      h("td", null, said("b", null, key.name), h("div", { class: "tiny faint mono" }, key.id)),
      h("td", null, h("span", { class: "chips" }, key.scopes.map((scope) => h("span", { class: "chip" }, t(`scope_${scope}`))))),
      h("td", null, key.all_users ? t("key_users_all") : said("span", null, key.user_ids.join(", "))),
      h("td", { class: "soft" }, day(key.created_at)),
      h("td", { class: "soft" }, key.expires_at ? day(key.expires_at) : t("key_expires_never")),
      h("td", null, stateOf(key)),
      h("td", null, key.revoked_at ? null : h("button", { class: "button danger compact", type: "button", onclick: () => revoke(key) }, t("key_revoke")))))));
}

export function auditTable(items, keys) {
  const names = new Map(keys.map((key) => [key.id, key.name]));
  return h("table", { class: "table" },
    h("thead", null, h("tr", null, [t("when"), t("key"), t("audit_action"), t("audit_target")].map((words) => h("th", { scope: "col" }, words)))),
    h("tbody", null, items.map((one) => h("tr", null,
      h("td", { class: "soft" }, h("time", { datetime: one.at, title: moment(one.at) }, ago(one.at))),
      h("td", null, names.get(one.key_id) ?? one.key_id ?? "–"),
      h("td", null, h("code", null, one.action)),
      h("td", { class: "soft" }, [one.target, one.detail].filter(Boolean).map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(" · "))))));
}

async function make(load) {
  const name = h("input", { class: "input", autofocus: true, maxlength: 100, required: true, autocomplete: "off" });
  const scopes = SCOPES.filter((scope) => session.may(scope)).map((scope) => h("label", { class: "check" },
    h("input", { type: "checkbox", value: scope, checked: scope === "read" || scope === "write" }), t(`scope_${scope}`)));
  const all = h("input", { type: "radio", name: "users", value: "all", checked: session.who.all_users, disabled: !session.who.all_users });
  const some = h("input", { type: "radio", name: "users", value: "some", checked: !session.who.all_users });
  const users = h("textarea", { class: "textarea short", value: kept.user, "aria-label": t("key_users_hint"), onfocus: () => { some.checked = true; } });
  const expires = h("input", { class: "input", type: "date" });
  const problem = h("div");
  const made = await dialog((close) => form(async () => {
    if (!name.value.trim()) return name.focus();
    const wanted = {
      name: name.value.trim(), scopes: scopes.map((label) => label.firstChild).filter((box) => box.checked).map((box) => box.value),
      ...(all.checked ? { all_users: true } : { user_ids: users.value.split("\n").map((one) => one.trim()).filter(Boolean) }),
      ...(expires.value ? { expires_at: endOf(expires.value) } : {}),
    };
    try {
      close(await api.makeKey(wanted));
    } catch (error) {
      fill(problem, failure(error));
    }
    return undefined;
  },
  h("h2", null, t("key_new")), field(t("key_name"), name),
  h("fieldset", { class: "field" }, h("legend", { class: "label" }, t("key_scopes")), h("div", { class: "line wide-line" }, scopes)),
  h("fieldset", { class: "field" }, h("legend", { class: "label" }, t("key_users")),
    h("label", { class: "check" }, all, t("key_users_all")), h("label", { class: "check" }, some, t("key_users_some")), users,
    h("span", { class: "hint" }, t("key_users_hint"))),
  field(t("key_expires"), expires, t("key_expires_never")), problem,
  h("div", { class: "ends" },
    h("button", { class: "button", type: "button", onclick: () => close(null) }, t("cancel")),
    h("button", { class: "button first", type: "submit" }, t("key_new")))), { label: t("key_new") });
  if (!made) return;
  const first = !session.who.keys_needed;
  await dialog((close) => h("div", { class: "inner" }, h("h2", null, t("key_made")), h("p", { class: "soft" }, t("key_made_text")),
    h("code", { class: "quote secret" }, made.key), first && h("p", { class: "hint-box" }, t("key_first")),
    h("div", { class: "ends" },
      h("button", { class: "button", type: "button", autofocus: true, onclick: () => copy(made.key) }, icon("copy"), t("copy")),
      h("button", { class: "button first", type: "button", onclick: () => close(null) }, t("key_done")))), { label: t("key_made"), kind: "large" });
  if (first) {
    kept.keepKey(made.key, false);
    tell("restart");
    return;
  }
  say(t("key_active"));
  await load();
}
