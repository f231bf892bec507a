// Empty, loading and failed states of a view.
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { t } from "../i18n.js";

export function empty(picture, title, text, ...actions) {
  return h("div", { class: "state" }, icon(picture), h("h2", null, title), text && h("p", null, text),
    actions.length ? h("div", { class: "line" }, actions) : null);
}

/** Appears only after a delay. */
export function loading(rows = 6) {
  return h("div", { class: "skeleton", "aria-hidden": "true" }, Array.from({ length: rows }, () => h("i")));
}

/** The problem from the server, with the request id for its log. */
export function failure(error, again) {
  const offline = error.code === "offline";
  const title = offline ? t("problem_offline") : error.status === 403 ? t("problem_scope") : error.title || t("problem");
  const detail = offline ? t("problem_offline_text") : error.detail || (error.status ? null : error.message);
  return h("div", { class: "problem stack", role: "alert" },
    h("h3", null, title),
    detail && detail !== title ? h("p", null, detail) : null,
    error.errors?.length ? h("ul", null, error.errors.map((one) => h("li", null, `${one.argument}: ${one.problem}`))) : null,
    h("div", { class: "line" },
      again && h("button", { class: "button compact", type: "button", onclick: again }, t("retry")),
      error.requestId && h("span", { class: "tiny" }, `${t("problem_request")} `, h("code", null, error.requestId))));
}
