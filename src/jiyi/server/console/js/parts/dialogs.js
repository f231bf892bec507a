// Modal dialogs; Escape closes them and the focus returns to where it was.
import { h } from "../dom.js";
import { t } from "../i18n.js";

/** Shows the element of `build(close)`; resolves to the value given to `close`, or null. */
export function dialog(build, { label, kind = "", must = false } = {}) {
  return new Promise((resolve) => {
    let answer = null;
    const before = document.activeElement;
    const frame = h("dialog", { class: `dialog ${kind}`, "aria-label": label });
    const close = (value) => {
      answer = value;
      frame.close();
    };
    frame.append(build(close));
    frame.addEventListener("cancel", (event) => {
      if (must) event.preventDefault();
    });
    frame.addEventListener("close", () => {
      frame.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
      resolve(answer);
    });
    if (!must) {
      frame.addEventListener("pointerdown", (event) => {
        if (event.target === frame) frame.close();
      });
    }
    document.body.append(frame);
    frame.showModal();
  });
}

/** Asks for confirmation; the cancel button has the focus. */
export function confirmed({ title, text, quote, action }) {
  return dialog((close) => h("div", { class: "inner" },
    h("h2", null, title), h("p", { class: "soft" }, text),
    quote && h("div", { class: "quote", dir: "auto" }, quote),
    h("div", { class: "ends" },
      h("button", { class: "button", type: "button", autofocus: true, onclick: () => close(false) }, t("cancel")),
      h("button", { class: "button danger sure", type: "button", data: { sure: "" }, onclick: () => close(true) }, action))),
  { label: title });
}

export function form(onsubmit, ...children) {
  return h("form", {
    novalidate: true,
    onsubmit: (event) => {
      event.preventDefault();
      onsubmit(event);
    },
  }, children);
}

let fields = 0;

export function field(label, input, hint) {
  fields += 1;
  input.id = `field-${fields}`;
  if (hint) input.setAttribute("aria-describedby", `hint-${fields}`);
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input,
    hint && h("span", { class: "hint", id: `hint-${fields}` }, hint));
}

/** A row of radio buttons. */
export function segments(label, name, choices, chosen, onchange) {
  return h("fieldset", { class: "segments" }, h("legend", { class: "unseen" }, label),
    choices.map(([value, words]) => h("label", null,
      h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => onchange(value) }),
      h("span", null, words))));
}

export function select(choices, chosen, onchange) {
  return h("select", { class: "select", onchange: (event) => onchange(event.target.value) },
    choices.map(([value, words]) => h("option", { value, selected: value === chosen }, words)));
}
