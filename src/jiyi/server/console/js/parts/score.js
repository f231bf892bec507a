// A score: what it says about a memory, and what it was made of.
import { h } from "../dom.js";
import { named, number, t } from "../i18n.js";

const SMALL = 0.005; // contributions that two digits cannot show

/** The one wording for `relevant`, which the server decides. */
export function relevance(relevant) {
  return t(relevant ? "relevant" : "weak");
}

/** A score, rounded down: a weak hit never looks like a relevant one. */
export function scored(score) {
  return number(Math.floor(score * 100 + 1e-6) / 100, 2);
}

const name = (part) => named("part", part.name);

function signed(value) {
  const text = number(Math.abs(value), 2);
  return value < 0 ? `−${text}` : `+${text}`;
}

/** The whole explanation of a score. */
export function whole(explanation) {
  return h("div", { class: "why", role: "group", "aria-label": t("why_title") },
    explanation.evidence.length ? evidence(explanation) : formula(explanation),
    explanation.matched_terms.length
      ? h("p", { class: "small soft matched" }, `${t("why_matched")}: `,
        h("span", { class: "chips" }, explanation.matched_terms.map((term) => h("code", { class: "chip" }, term))))
      : null,
    explanation.evidence.length ? h("details", { class: "small" }, h("summary", null, t("why_place")), selection(explanation)) : null);
}

/** What each input means, and how much it raises or lowers the score. */
function evidence(explanation) {
  const parts = explanation.evidence.filter((part) => Math.abs(part.contribution) >= SMALL);
  const most = Math.max(...parts.map((part) => Math.abs(part.contribution)), SMALL);
  const row = (part) => h("tr", { data: { part: part.name } },
    h("th", { scope: "row" }, name(part), h("span", { class: "tiny faint" }, named("about", part.name))),
    h("td", { class: "bar" }, h("span", { class: part.contribution < 0 ? "length lowers" : "length", css: { "--share": Math.abs(part.contribution) / most } })),
    h("td", null, signed(part.contribution)));
  return h("section", null, h("h3", null, t("why_score")),
    h("p", { class: "small soft" }, t("why_model")),
    h("table", { class: "parts evidence numbers" },
      h("thead", { class: "unseen" }, h("tr", null, h("th", null, t("why_part")), h("td"), h("th", null, t("why_adds")))),
      h("tbody", null, parts.map(row),
        h("tr", { class: "total" }, h("th", { scope: "row" }, t("why_sum"), h("span", { class: "tiny faint" }, t("why_sum_text"))), h("td"),
          h("td", { class: "outcome" }, scored(explanation.score))))));
}

/** The weighted sum that selects candidates. */
function selection({ parts }) {
  const felt = parts.filter((part) => Math.abs(part.contribution) >= SMALL).sort((a, b) => b.contribution - a.contribution);
  const row = (part) => h("tr", null, h("th", { scope: "row" }, name(part)),
    h("td", { class: "faint" }, `${number(part.value, 2)} × ${number(part.weight, 2)}`), h("td", null, signed(part.contribution)));
  return h("table", { class: "parts numbers" },
    h("thead", { class: "unseen" }, h("tr", null, h("th", null, t("why_part")), h("th", null, `${t("why_value")} × ${t("why_weight")}`), h("th", null, t("why_adds")))),
    h("tbody", null, felt.map(row),
      h("tr", { class: "total" }, h("th", { scope: "row" }, t("why_place_sum")), h("td"),
        h("td", null, number(parts.reduce((sum, part) => sum + part.contribution, 0), 2)))));
}

/** A score of a plain formula: the weighted sum, times factors. */
function formula(explanation) {
  const factors = explanation.factors.length ? t("why_plain_factors") : "";
  return h("section", null, h("h3", null, t("why_score")),
    h("p", { class: "small soft" }, t("why_plain", { factors })),
    selection(explanation),
    explanation.factors.length
      ? h("table", { class: "parts numbers" }, explanation.factors.map((factor) => h("tr", null,
        h("th", { scope: "row" }, name(factor)), h("td", null, `× ${number(factor.contribution, 2)}`))))
      : null,
    h("p", { class: "outcome numbers" }, scored(explanation.score)));
}
