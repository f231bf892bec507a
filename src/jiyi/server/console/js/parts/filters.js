// Filters of search and list. Their state is in the address, so that a filtered view can be shared.
import { h } from "../dom.js";
import { named, t } from "../i18n.js";
import { endOf, startOf } from "./days.js";
import { field } from "./dialogs.js";

export const FILTERS = ["types", "tag", "session", "group", "agent", "since", "until", "as_of"];

/** The filters of an address as parameters of the API. */
export function wanted(params) {
  return {
    memory_types: params.get("types") ? params.get("types").split(",") : null,
    tags: params.get("tag") ? [params.get("tag")] : null,
    session_id: params.get("session"),
    group_id: params.get("group"),
    agent_id: params.get("agent"),
    since: startOf(params.get("since")),
    until: endOf(params.get("until")),
    as_of: endOf(params.get("as_of")),
  };
}

export function some(params) {
  return FILTERS.filter((name) => params.get(name)).length;
}

/** A chip for each type, the most frequent first; several can be selected. */
export function typeChips(byType, params, onchange) {
  const chosen = new Set((params.get("types") ?? "").split(",").filter(Boolean));
  const names = [...new Set([...Object.keys(byType), ...chosen])].sort((a, b) => (byType[b] ?? 0) - (byType[a] ?? 0));
  return h("div", { class: "chips", role: "group", "aria-label": t("filter_type") }, names.map((name) => h("button", {
    class: "chip", type: "button", "aria-pressed": String(chosen.has(name)), data: { type: name },
    onclick: () => {
      if (chosen.has(name)) chosen.delete(name);
      else chosen.add(name);
      onchange({ types: [...chosen].join(",") });
    },
  }, named("type", name))));
}

export function filterFields(params, onchange, names) {
  let waiting;
  const make = (name) => {
    const dated = ["since", "until", "as_of"].includes(name);
    const input = h("input", { class: "input", type: dated ? "date" : "text", value: params.get(name) ?? "", data: { filter: name }, autocomplete: "off" });
    input.addEventListener(dated ? "change" : "input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => onchange({ [name]: input.value.trim() }), dated ? 0 : 300);
    });
    const made = field(t(`filter_${name}`), input);
    if (dated) made.classList.add("date");
    return made;
  };
  return h("div", { class: "filters" }, names.map(make),
    h("button", {
      class: "button plain compact", type: "button",
      onclick: () => onchange(Object.fromEntries(FILTERS.map((name) => [name, null])), true),
    }, t("clear")));
}
