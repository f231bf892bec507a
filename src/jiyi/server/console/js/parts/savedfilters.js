// Filters that a person has saved in this browser, as chips.
import { fill, h } from "../dom.js";
import { t } from "../i18n.js";
import { icon } from "../icons.js";
import { here } from "../router.js";
import { kept } from "../store.js";
import { dialog, field, form } from "./dialogs.js";
import { FILTERS } from "./filters.js";

const NAMES = [...FILTERS, "status"];
const MAX_FILTERS = 30;

/** The filters of an address, as the text under which they are stored. */
function filtersOf(params) {
  const used = new URLSearchParams();
  for (const name of NAMES) if (params.get(name)) used.set(name, params.get(name));
  return used.toString();
}

/** A chip for each saved filter, and a button that saves the present one; nothing if there is neither. */
export function savedFilters(place, params, onchange) {
  const present = filtersOf(params);
  const { filters } = kept;
  const apply = (query) => {
    const wanted = new URLSearchParams(query);
    onchange(Object.fromEntries(NAMES.map((name) => [name, wanted.get(name)])), true);
  };
  const chips = filters.map((one) => h("span", { class: "chip saved" },
    h("button", { class: "bare", type: "button", "aria-pressed": String(one.query === present), data: { saved: one.name }, onclick: () => apply(one.query === present ? "" : one.query) }, one.name),
    h("button", {
      class: "drop", type: "button", "aria-label": t("saved_remove", { name: one.name }),
      onclick: () => {
        kept.filters = kept.filters.filter((other) => other.name !== one.name);
        savedFilters(place, params, onchange);
      },
    }, "×")));
  const button = present && !filters.some((one) => one.query === present) && filters.length < MAX_FILTERS
    && h("button", {
      class: "button plain compact", type: "button", data: { action: "save-filter" },
      onclick: async () => {
        const name = await askName();
        if (!name) return;
        kept.filters = [...kept.filters.filter((other) => other.name !== name), { name, query: filtersOf(here().params) }];
        savedFilters(place, here().params, onchange);
      },
    }, icon("add"), t("saved_save"));
  place.hidden = !chips.length && !button;
  fill(place, chips.length ? h("span", { class: "small soft" }, t("saved_filters")) : null, chips, button);
}

function askName() {
  const input = h("input", { class: "input", autofocus: true, maxlength: 60, autocomplete: "off" });
  return dialog((close) => form(() => (input.value.trim() ? close(input.value.trim()) : input.focus()),
    h("h2", null, t("saved_save")), field(t("saved_name"), input, t("saved_hint")),
    h("div", { class: "ends" },
      h("button", { class: "button", type: "button", onclick: () => close(null) }, t("cancel")),
      h("button", { class: "button first", type: "submit" }, t("save")))), { label: t("saved_save") });
}
