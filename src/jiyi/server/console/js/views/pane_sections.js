// Sections of the pane that are loaded separately: sources, relations, history.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { moment, named, t } from "../i18n.js";
import { shownDiff } from "../parts/diff.js";
import { badge, opens, time } from "../parts/memory.js";
import { noteProblem } from "../parts/notes.js";
import { failure, loading } from "../parts/states.js";
import { shownText } from "../parts/when.js";
import { session } from "../shell.js";

/** A section that loads its content; a failure is shown with a retry button. */
function section(title, signal, ask, show) {
  const place = h("div", { class: "stack" });
  const load = async () => {
    fill(place, loading(2));
    try {
      const answer = await ask();
      if (!signal.aborted) fill(place, show(answer));
    } catch (error) {
      if (!signal.aborted) fill(place, failure(error, load));
    }
  };
  load();
  return h("section", null, h("h2", null, title), place);
}

export function sourcesSection(memory, signal) {
  return section(t("sources"), signal, () => api.sources(memory.id, signal), ({ items }) => items.length
    ? items.map((source) => h("div", { class: "source" },
      h("div", { class: "line" }, h("b", null, source.speaker || source.role), time(source.sent_at),
        source.session_id && said("span", { class: "push" }, source.session_id)),
      saying(source)))
    : h("p", { class: "small faint" }, t("sources_none")));
}

/** The source message with the quoted parts marked. */
function saying({ text, span }) {
  const words = said("p", null, text);
  const points = [...text]; // spans count code points, as Python does
  if (span && span[0] < span[1] && span[1] <= points.length && span[1] - span[0] < points.length) {
    fill(words, points.slice(0, span[0]).join(""), h("mark", null, points.slice(...span).join("")), points.slice(span[1]).join(""));
  }
  return words;
}

const OTHER_WAY = { supports: "supported_by", contradicts: "contradicted_by", refines: "refined_by" };

export function relationsSection(memory, signal) {
  return section(t("relations"), signal, () => api.relations(memory.id, signal), ({ items, memories }) => {
    const known = new Map(memories.map((one) => [one.id, one]));
    if (!items.length) return h("p", { class: "small faint" }, t("relations_none"));
    return items.map((relation) => {
      const out = relation.memory_id === memory.id;
      const other = known.get(out ? relation.target_id : relation.memory_id);
      return h("a", { class: "relation", href: opens(other?.id), data: { item: other?.id } },
        h("span", { class: "line" },
          h("span", { class: `kind kind-${relation.relation_type}` }, t(`relation_${out ? relation.relation_type : OTHER_WAY[relation.relation_type]}`)),
          other && badge(other), other && h("span", { class: "push tiny faint" }, time(other.valid_from))),
        other && said("span", null, shownText(other)));
    });
  });
}

const SHOWN = ["content", "summary", "memory_type", "importance", "tags", "status", "valid_to", "valid_from", "expires_at", "occurred_at", "metadata"];

export function historySection(memory, signal, restored) {
  return section(t("history"), signal, () => api.history(memory.id, signal), ({ items }) => {
    const latest = items.at(-1)?.version;
    return h("ol", { class: "changes" }, [...items].reverse().map((revision) => h("li", null,
      h("div", { class: "what" },
        h("b", null, named("action", revision.action)),
        h("span", { class: "soft small" }, t("version", { n: revision.version })),
        h("span", { class: "faint tiny" }, `${moment(revision.changed_at)} · ${t("history_by", { actor: revision.actor })}`)),
      revision.reason && said("p", { class: "small soft" }, revision.reason),
      changes(revision),
      revision.version !== latest && session.may("write") && h("button", {
        class: "button compact", type: "button", data: { restore: revision.version },
        onclick: async () => {
          try {
            restored(await api.restore(memory.id, revision.version, memory.version), revision.version);
          } catch (error) {
            noteProblem(error);
          }
        },
      }, t("history_restore")))));
  });
}

function changes({ before, after }) {
  if (!before) return null;
  const fields = SHOWN.filter((name) => name in after && text(before[name]) !== text(after[name]));
  if (fields.includes("content") && fields.includes("summary")) fields.splice(fields.indexOf("summary"), 1); // it is derived from the content
  return fields.map((name) => h("div", { class: "field-change" },
    name === "content" ? null : h("span", { class: "tiny faint" }, label(name)), shownDiff(text(before[name]), text(after[name]))));
}

function label(name) {
  const words = { memory_type: "filter_type", valid_to: "valid_until", valid_from: "valid", expires_at: "expires", occurred_at: "occurred" };
  return t(words[name] ?? name);
}

function text(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
