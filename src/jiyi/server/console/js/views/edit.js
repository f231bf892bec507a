// The form that edits a memory. If the memory was changed meanwhile, both versions are shown.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { number, t } from "../i18n.js";
import { dayOf, startOf } from "../parts/days.js";
import { field } from "../parts/dialogs.js";
import { shownDiff } from "../parts/diff.js";
import { failure } from "../parts/states.js";
import { typesKnown } from "./memories.js";

export function editForm(memory, { done, cancel, newer }) {
  let base = memory;
  const content = h("textarea", { class: "textarea", value: memory.content, maxlength: 100_000, dir: "auto" });
  const type = h("input", { class: "input", list: "types-known", value: memory.memory_type, maxlength: 64 });
  const ended = memory.valid_to ? dayOf(memory.valid_to) : "";
  const until = h("input", { class: "input", type: "date", value: ended });
  const shown = h("output", { class: "push numbers small" }, number(memory.importance, 2));
  const importance = h("input", {
    class: "range", type: "range", min: 0, max: 1, step: 0.01, value: memory.importance,
    oninput: () => { shown.textContent = number(Number(importance.value), 2); },
  });
  const begun = importance.value; // as rounded by the slider, so that an untouched slider changes nothing
  const reason = h("input", { class: "input", maxlength: 1000, autocomplete: "off" });
  const tags = tagField(memory.tags);
  const problem = h("div");
  const importanceField = field(t("importance"), importance);
  importanceField.querySelector("label").append(" ", shown);

  function changes() {
    const found = {};
    if (content.value !== base.content) found.content = content.value;
    if (type.value.trim() && type.value.trim() !== base.memory_type) found.memory_type = type.value.trim();
    if (importance.value !== begun) found.importance = Number(importance.value);
    if (tags.values().join("\n") !== base.tags.join("\n")) found.tags = tags.values();
    if (until.value !== ended) found.valid_to = until.value ? startOf(until.value) : null;
    return found;
  }

  async function save() {
    tags.take();
    const found = changes();
    if (!Object.keys(found).length) return cancel();
    try {
      done(await api.update(memory.id, { ...found, ...(reason.value.trim() ? { reason: reason.value.trim() } : {}) }, base.version));
    } catch (error) {
      if (error.status === 412 || error.code === "version_conflict") return conflict();
      fill(problem, failure(error));
    }
    return undefined;
  }

  async function conflict() {
    const theirs = await api.get(memory.id);
    newer(theirs);
    base = theirs;
    fill(problem, h("div", { class: "problem stack", role: "alert" },
      h("h3", null, t("conflict")), h("p", { class: "small" }, t("conflict_text", { n: theirs.version })),
      shownDiff(memory.content, theirs.content),
      h("div", { class: "line" },
        h("button", { class: "button compact", type: "button", onclick: () => cancel() }, t("conflict_take", { n: theirs.version })),
        h("button", { class: "button compact danger", type: "button", onclick: save }, t("conflict_over")))));
  }

  return h("form", {
    class: "edit-form", novalidate: true,
    onsubmit: (event) => {
      event.preventDefault();
      save();
    },
    onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
      if (event.key === "Escape") {
        event.stopPropagation();
        cancel();
      }
    },
  },
  h("h2", null, t("edit")), field(t("content"), content), tags.element,
  h("div", { class: "pair" }, field(t("filter_type"), type), importanceField),
  h("div", { class: "pair" }, field(t("valid_until"), until, t("valid_until_hint")), field(t("reason"), reason, t("reason_hint"))),
  typesKnown(), problem,
  h("div", { class: "ends" },
    h("button", { class: "button first", type: "submit" }, t("save")),
    h("button", { class: "button", type: "button", onclick: cancel }, t("cancel"))));
}

/** Tags as removable chips, and a field to add more. */
function tagField(given) {
  const chosen = [...given];
  const input = h("input", { type: "text", maxlength: 256, autocomplete: "off" });
  const box = h("div", { class: "tag-field" });
  const made = field(t("tags"), input, t("tag_hint"));
  input.replaceWith(box);

  function draw() {
    fill(box, chosen.map((tag) => said("span", { class: "chip tag" }, tag)), input);
    box.querySelectorAll(".chip").forEach((chip, at) => chip.append(h("button", {
      class: "drop", type: "button", "aria-label": t("tag_remove", { tag: chosen[at] }),
      onclick: () => {
        chosen.splice(at, 1);
        draw();
        input.focus();
      },
    }, "×")));
  }

  function take() {
    for (const tag of input.value.split(/[,，]/).map((one) => one.trim())) {
      if (tag && !chosen.includes(tag)) chosen.push(tag);
    }
    input.value = "";
    draw();
  }

  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if ((event.key === "Enter" || event.key === ",") && input.value.trim()) {
      event.preventDefault();
      take();
      input.focus();
    } else if (event.key === "Backspace" && !input.value && chosen.length) {
      chosen.pop();
      draw();
      input.focus();
    }
  });
  input.addEventListener("blur", () => {
    if (input.value.trim()) take();
  });
  draw();
  return { element: made, values: () => chosen, take };
}
