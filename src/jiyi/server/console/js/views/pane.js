// The pane with one memory: content, sources, history, relations and actions.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { tell } from "../events.js";
import { day, number, t } from "../i18n.js";
import { icon } from "../icons.js";
import { confirmed } from "../parts/dialogs.js";
import { markdown } from "../parts/markdown.js";
import { badge, opens, time } from "../parts/memory.js";
import { note, noteProblem } from "../parts/notes.js";
import { empty, failure, loading } from "../parts/states.js";
import { shownText, withDates } from "../parts/when.js";
import { changed } from "../router.js";
import { session } from "../shell.js";
import { editForm } from "./edit.js";
import { historySection, relationsSection, sourcesSection } from "./pane_sections.js";

let current = null; // { id, memory, shell, element, leaving }

export function showPane(shell, id) {
  if (current && current.id === id && current.shell === shell) return;
  const hadFocus = current?.element?.contains(document.activeElement);
  const left = current?.id;
  current?.leaving.abort();
  shell.element.querySelector(".pane")?.remove();
  shell.element.classList.toggle("opened", Boolean(id));
  current = null;
  tell("shown", id);
  if (!id) {
    if (hadFocus) document.querySelector(`.main [data-item="${CSS.escape(left)}"]`)?.focus();
    return;
  }
  const element = h("aside", { class: "pane", "aria-label": t("memory"), tabindex: "-1" });
  current = { id, memory: null, shell, element, leaving: new AbortController() };
  shell.element.append(element);
  if (matchMedia("(max-width: 1180px)").matches) element.focus(); // here it covers the list
  load();
}

export function closePane() {
  location.hash = changed({ open: null });
}

async function load() {
  const own = current;
  const { id, element, leaving } = own;
  if (!own.memory) fill(element, head(null), h("div", { class: "pane-body" }, loading(8)));
  try {
    own.memory = await api.get(id, leaving.signal);
  } catch (error) {
    if (leaving.signal.aborted) return;
    fill(element, head(null), h("div", { class: "pane-body" }, error.status === 404
      ? empty("memories", t("memory_gone"), t("memory_gone_text")) : failure(error, load)));
    return;
  }
  if (current === own) show(own);
}

function show({ memory, element, leaving }) {
  const body = h("div", { class: "pane-body" });
  fill(element, head(memory), body);
  fill(body,
    h("section", null,
      memory.status === "archived" && h("span", { class: "chip mid put-aside-note" }, t("status_archived")),
      h("div", { class: "pane-text" }, markdown(withDates(memory.content, memory.data))),
      memory.tags.length ? h("div", { class: "chips" }, memory.tags.map((tag) => said("span", { class: "chip tag" }, tag))) : null),
    h("section", null, h("h2", null, t("details")), details(memory)),
    sourcesSection(memory, leaving.signal),
    relationsSection(memory, leaving.signal),
    historySection(memory, leaving.signal, restored));
}

function head(memory) {
  const button = (name, label, shown = true) => shown && h("button", {
    class: "icon-button", type: "button", title: label, "aria-label": label, data: { action: name }, onclick: () => paneAction(name),
  }, icon(name));
  const may = (scope) => memory && session.may(scope);
  return h("div", { class: "pane-head" },
    memory ? badge(memory) : h("span", { class: "badge" }),
    button("edit", t("edit"), may("write")),
    button("archive", memory?.status === "archived" ? t("unarchive") : t("archive"), may("write")),
    button("undo", t("undo"), may("write") && memory.version > 1),
    button("delete", t("delete"), may("delete")),
    button("close", t("close")));
}

function details(memory) {
  const { subject, attribute, value } = memory.data;
  const text = (one) => (typeof one === "string" && one ? said("span", null, one) : null);
  const rows = [
    [t("subject"), text(subject)],
    [t("attribute"), typeof attribute === "string" && !attribute.includes(":0") ? [attribute, text(value) && " = ", text(value)] : null],
    [t("valid"), memory.valid_to
      ? t("valid_ended", { from: day(memory.valid_from), to: day(memory.valid_to) }) : t("valid_now", { from: day(memory.valid_from) })],
    [t("replaced_by"), memory.superseded_by && h("a", { href: opens(memory.superseded_by), data: { item: memory.superseded_by } }, t("memory"))],
    [t("occurred"), time(memory.occurred_at)],
    [t("importance"), meter(memory.importance)],
    [t("confidence"), memory.confidence < 1 ? meter(memory.confidence) : null],
    [t("trust"), memory.trust < 1 ? meter(memory.trust) : null],
    [t("expires"), memory.expires_at && time(memory.expires_at)],
    [t("recalled"), memory.access_count
      ? t("recalled_times", { n: memory.access_count, when: memory.last_accessed_at ? day(memory.last_accessed_at) : "" }) : t("recalled_never")],
    [t("filter_session"), text(memory.session_id)],
    [t("filter_group"), text(memory.group_id)],
    [t("filter_agent"), text(memory.agent_id)],
    [t("keywords"), memory.keywords.length ? said("span", null, memory.keywords.join(" · ")) : null],
    [t("metadata"), Object.keys(memory.metadata).length ? h("code", null, JSON.stringify(memory.metadata)) : null],
    [t("created"), time(memory.created_at)],
    ["id", h("button", { class: "button plain compact mono", type: "button", title: t("copy_id"), onclick: () => copy(memory.id) }, memory.id)],
  ];
  return h("dl", { class: "facts" }, rows.filter(([, shown]) => shown).map(([name, shown]) => [h("dt", null, name), h("dd", null, shown)]));
}

function meter(value) {
  return h("span", { class: "meter", css: { "--full": `${100 * value}%` } }, h("i", { "aria-hidden": "true" }), number(value, 2));
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    note(t("copied"));
  } catch {
    note(text); // no access to the clipboard: show the text instead
  }
}

/** Runs the action of a button or key; false if no memory is open. */
export function paneAction(name) {
  if (!current) return false;
  if (name === "close") return current.element.querySelector("form") ? show(current) : closePane(), true;
  const { memory } = current;
  const scope = name === "delete" ? "delete" : "write";
  if (!memory || !session.may(scope) || (name === "undo" && memory.version < 2)) return false;
  ({ edit, archive, undo, delete: remove })[name](current).catch(noteProblem);
  return true;
}

async function edit(own) {
  const body = h("div", { class: "pane-body" });
  fill(own.element, head(own.memory), body);
  fill(body, editForm(own.memory, {
    done(memory) {
      own.memory = memory;
      show(own);
      own.element.querySelector('[data-action="edit"]')?.focus();
      note(t("saved"), { action: () => undo(own).catch(noteProblem), label: t("undo") });
      tell("memory", memory);
    },
    cancel: () => show(own),
    newer(memory) {
      own.memory = memory;
    },
  }));
  body.querySelector("textarea").focus();
}

async function archive(own) {
  const to = own.memory.status === "archived" ? "active" : "archived";
  own.memory = await api.update(own.id, { status: to }, own.memory.version);
  show(own);
  note(to === "archived" ? t("archived") : t("unarchived"), { action: () => undo(own).catch(noteProblem), label: t("undo") });
  tell("memory", own.memory);
}

/** Undoes the last change, even after the pane was closed. */
async function undo(own) {
  own.memory = await api.restore(own.id, null, own.memory.version);
  if (current === own) show(own);
  note(t("undone", { n: own.memory.version }));
  tell("memory", own.memory);
}

function restored(memory, version) {
  current.memory = memory;
  show(current);
  note(t("history_restored", { n: version }));
  tell("memory", memory);
}

async function remove(own) {
  const sure = await confirmed({
    title: t("delete_title"), text: t("delete_text"), quote: shownText(own.memory), action: t("delete"),
  });
  if (!sure) return;
  const gone = await api.remove(own.id);
  closePane();
  note(gone.restored.length ? t("deleted_restored", { n: gone.restored.length }) : t("deleted"));
  tell("memory", null);
}
