// Selected memories of a list: tag, archive, restore or delete several at once, each with undo.
import { api } from "../api.js";
import { fill, h } from "../dom.js";
import { tell } from "../events.js";
import { t } from "../i18n.js";
import { icon } from "../icons.js";
import { session } from "../shell.js";
import { kept } from "../store.js";
import { dialog, field, form } from "./dialogs.js";
import { plain, row } from "./memory.js";
import { note, noteProblem, ACTION_MS } from "./notes.js";
import { shownText } from "./when.js";

const deleting = new Map(); // waiting deletions: ids by the user whose memories they are

/** Is the memory deleted as soon as its undo has passed? */
export function isLeaving(memory) {
  return [...deleting.keys()].some((waiting) => waiting.user === kept.user && waiting.ids.has(memory.id));
}

/** A bar of actions, and rows with a box to select them. `items` returns the memories that are shown. */
export function selection(items, status) {
  const chosen = new Set(); // ids
  const bar = h("div", { class: "line bulk" });
  const list = () => items().filter((one) => chosen.has(one.id));
  const boxes = () => bar.parentElement?.querySelectorAll("[data-select]") ?? [];

  function draw() {
    const all = items();
    const known = new Set(all.map((one) => one.id));
    for (const id of chosen) if (!known.has(id)) chosen.delete(id);
    for (const box of boxes()) box.checked = chosen.has(box.dataset.select);
    bar.hidden = !all.length || !session.may("write");
    const whole = h("input", {
      type: "checkbox", checked: chosen.size > 0 && chosen.size === all.length, indeterminate: chosen.size > 0 && chosen.size < all.length,
      onchange: () => {
        for (const one of items()) chosen[whole.checked ? "add" : "delete"](one.id);
        draw();
        bar.querySelector("input").focus();
      },
    });
    const action = (name, act) => h("button", { class: name === "delete" ? "button compact danger" : "button compact", type: "button", data: { bulk: name }, onclick: () => run(act) }, icon(name), t(name === "archive" && status() === "archived" ? "unarchive" : name));
    fill(bar, h("label", { class: "check" }, whole, t("select_all", { n: all.length })),
      h("span", { class: "small soft numbers", role: "status" }, chosen.size ? t("review_selected", { n: chosen.size }) : ""),
      chosen.size ? [action("tag", tag), action("archive", archive), session.may("delete") && action("delete", remove)] : null);
  }

  async function run(act) {
    const memories = list();
    try {
      await act(memories);
    } catch (error) {
      noteProblem(error);
    }
    tell("memory");
  }

  return {
    bar,
    draw,
    row(memory) {
      if (!session.may("write")) return row(memory);
      const box = h("input", {
        type: "checkbox", checked: chosen.has(memory.id), data: { select: memory.id }, "aria-label": t("select_one", { text: plain(shownText(memory)).slice(0, 80) }),
        onchange: () => {
          chosen[box.checked ? "add" : "delete"](memory.id);
          draw();
        },
      });
      const item = row(memory);
      item.classList.add("selectable");
      item.addEventListener("keydown", (event) => {
        if (event.key === "x" && !event.ctrlKey && !event.metaKey && !event.altKey) box.click();
      });
      item.prepend(h("label", { class: "select-box" }, box));
      return item;
    },
  };
}

/** Makes the same change to all of them; the undo puts back what `before` returns. */
async function change(memories, after, before, told) {
  const changed = await api.updateMany(memories.map((one) => ({ memory_id: one.id, expected_version: one.version, ...after(one) })));
  const former = new Map(memories.map((one) => [one.id, one]));
  note(t(told, { n: memories.length }), {
    label: t("undo"),
    action: async () => {
      try {
        await api.updateMany(changed.map((one) => ({ memory_id: one.id, expected_version: one.version, ...before(former.get(one.id)) })));
        note(t("review_undone", { n: changed.length }));
      } catch (error) {
        noteProblem(error);
      }
      tell("memory");
    },
  });
}

async function archive(memories) {
  const to = memories[0].status === "archived" ? "active" : "archived";
  await change(memories, () => ({ status: to }), (one) => ({ status: one.status }), to === "archived" ? "select_archived" : "select_restored");
}

async function tag(memories) {
  const input = h("input", { class: "input", autofocus: true, maxlength: 256, autocomplete: "off" });
  const wanted = await dialog((close) => form(() => (input.value.trim() ? close(input.value.trim()) : input.focus()),
    h("h2", null, t("select_tag_title", { n: memories.length })), field(t("filter_tag"), input),
    h("div", { class: "ends" },
      h("button", { class: "button", type: "button", onclick: () => close(null) }, t("cancel")),
      h("button", { class: "button first", type: "submit" }, t("tag")))), { label: t("tag") });
  if (!wanted) return;
  const without = memories.filter((one) => !one.tags.includes(wanted));
  if (without.length) await change(without, (one) => ({ tags: [...one.tags, wanted] }), (one) => ({ tags: one.tags }), "select_tagged");
}

/** Deletes them for good when the time for undo has passed, or when the page is left. */
async function remove(memories) {
  const waiting = { user: kept.user, ids: new Set(memories.map((one) => one.id)) };
  const send = async () => {
    if (!deleting.has(waiting)) return;
    clearTimeout(deleting.get(waiting));
    try {
      await api.removeMany([...waiting.ids], waiting.user);
    } catch (error) {
      noteProblem(error);
    }
    deleting.delete(waiting);
    tell("memory");
  };
  waiting.send = send;
  deleting.set(waiting, setTimeout(send, ACTION_MS));
  note(t("select_deleting", { n: memories.length }), {
    label: t("undo"),
    action: () => {
      clearTimeout(deleting.get(waiting));
      deleting.delete(waiting);
      tell("memory");
    },
  });
}

addEventListener("pagehide", () => {
  for (const { send } of deleting.keys()) send();
});
