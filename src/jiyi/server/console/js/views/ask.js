// A question, its answer with sources, and what an agent receives for it: the block, the memories in it and left out.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { hear, tell } from "../events.js";
import { t } from "../i18n.js";
import { icon } from "../icons.js";
import { field } from "../parts/dialogs.js";
import { badge, markOpen, opens, plain, row, time } from "../parts/memory.js";
import { relevance, scored } from "../parts/score.js";
import { empty, failure, loading } from "../parts/states.js";
import { shownText } from "../parts/when.js";
import { here, note } from "../router.js";
import { session } from "../shell.js";
import { copy } from "./pane.js";

const BUDGETS = [200, 400, 1000, 1500, 4000];

export function showAsk(place, params, signal) {
  const input = h("textarea", { class: "textarea short", value: params.get("q") ?? "", maxlength: 4000, placeholder: t("ask_placeholder"), dir: "auto" });
  const budget = h("select", { class: "select" }, BUDGETS.map((size) => h("option", { value: size, selected: String(size) === (params.get("tokens") ?? "1000") }, t("ask_tokens", { n: size }))));
  const reply = h("section", { class: "card padded stack reply", "aria-live": "polite", hidden: true });
  const result = h("div", { class: "stack", "aria-live": "polite" });
  let answered = null; // the question whose answer is shown

  async function ask() {
    const words = input.value.trim();
    note({ q: words, tokens: budget.value === "1000" ? null : budget.value });
    tell("moved");
    answer(words);
    if (!words) {
      fill(result, empty("ask", t("ask_start"), t("ask_start_text")));
      return;
    }
    if (!result.querySelector(".block")) fill(result, loading());
    try {
      const report = await api.recall({ said: words, max_tokens: Number(budget.value), explain: true }, signal);
      fill(result, shown(report));
      markOpen(result, here().params.get("open"));
    } catch (error) {
      if (!signal.aborted) fill(result, failure(error, ask));
    }
  }

  /** Asks the language model once for each question; without one, says so. */
  async function answer(question) {
    if (question === answered) return;
    answered = question;
    reply.hidden = !question;
    if (!question) return;
    const heading = h("h2", null, t("ask_answer"));
    if (!session.who.answers) {
      fill(reply, heading, h("p", { class: "soft" }, t("ask_no_model")));
      return;
    }
    fill(reply, heading, loading(2));
    try {
      const { text, memory_ids: ids, degraded } = await api.answer(question, signal);
      const sources = await Promise.all(ids.map((id) => api.get(id, signal)));
      if (question !== answered) return;
      fill(reply, heading,
        degraded.length ? h("div", { class: "hint-box", role: "alert" }, degraded.join("; ")) : null,
        text === null ? h("p", { class: "soft" }, t("ask_unknown")) : said("p", { class: "reply-text" }, text),
        sources.length ? [h("h3", null, t("ask_sources", { n: sources.length })), h("ul", { class: "card rows" }, sources.map(row))] : null);
      markOpen(reply, here().params.get("open"));
    } catch (error) {
      if (signal.aborted || question !== answered) return;
      answered = null;
      fill(reply, heading, failure(error, () => answer(question)));
    }
  }

  fill(place,
    h("div", { class: "head" }, h("h1", null, t("ask_title")), h("p", null, t("ask_text"))),
    h("form", { class: "stack card padded", onsubmit: (event) => { event.preventDefault(); ask(); } },
      field(t("ask_label"), input),
      h("div", { class: "line" }, h("div", { class: "narrow" }, field(t("ask_budget"), budget)),
        h("button", { class: "button first push", type: "submit" }, t("ask_button")))),
    reply, result);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      ask();
    }
  });
  budget.addEventListener("change", ask);
  hear("memory", signal, () => input.value.trim() && ask());
  hear("shown", signal, (id) => markOpen(place, id));
  return ask();
}

function shown(report) {
  return [
    report.problems.length ? h("div", { class: "hint-box", role: "alert" }, report.problems.join("; ")) : null,
    h("section", { class: "card padded stack" },
      h("div", { class: "line" }, h("h2", null, t("ask_block")),
        h("span", { class: "small soft numbers" }, t("ask_size", { n: report.tokens, of: report.max_tokens })),
        report.block ? h("button", { class: "button compact push", type: "button", onclick: () => copy(report.block) }, icon("copy"), t("copy")) : null),
      report.block ? h("pre", { class: "block", tabindex: "0", "aria-label": t("ask_block"), dir: "auto" }, report.block) : h("p", { class: "soft" }, t("ask_nothing"))),
    h("section", { class: "stack" }, h("h2", null, t("ask_used", { n: report.used.length })),
      report.used.length ? h("div", { class: "card rows" }, h("ul", null, report.used.map((one) => entry(one.memory, one.relevance_score,
        one.standing ? t("ask_standing") : relevance(!one.weak), one.weak ? "mid" : "on")))) : h("p", { class: "soft" }, t("ask_used_none"))),
    report.left_out.length
      ? h("section", { class: "stack" }, h("h2", null, t("ask_left_out", { n: report.left_out.length })),
        h("div", { class: "card rows" }, h("ul", null, report.left_out.map((one) => entry(one.hit, one.hit.relevance_score, t(`ask_reason_${one.reason}`), "")))))
      : null];
}

function entry(memory, score, why, kind) {
  return h("li", null, h("a", { class: "row", href: opens(memory.id), data: { item: memory.id } },
    h("span", { class: "row-head" }, score === null ? null : h("b", { class: "numbers" }, scored(score)), h("span", { class: `chip ${kind}` }, why), badge(memory),
      h("span", { class: "push faint tiny numbers" }, time(memory.occurred_at))),
    said("span", { class: "row-text" }, plain(shownText(memory)))));
}
