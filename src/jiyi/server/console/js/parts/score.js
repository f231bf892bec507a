// A score as a chart: the weighted sum that selects candidates, and the relevance model's evidence for the score.
import { h, s } from "../dom.js";
import { named, number, t } from "../i18n.js";

const SMALL = 0.0005;

export function band(score) {
  return score >= 0.8 ? "use" : score >= 0.6 ? "hint" : "weak";
}

const sum = (parts) => parts.reduce((total, part) => total + part.contribution, 0);
const named_ = (part) => named("part", part.name);
const share = (value, of) => `${(100 * value) / (of || 1)}%`;
const known = (name) => name.replace(/[^a-z_]/g, "_");

function told(value) {
  const text = number(Math.abs(value), 2);
  return value < 0 ? `−${text}` : `+${text}`;
}

/** Positive and negative parts, the largest first. */
function sides(explanation) {
  const felt = explanation.parts.filter((part) => Math.abs(part.contribution) >= SMALL);
  const adds = felt.filter((part) => part.contribution > 0).sort((a, b) => b.contribution - a.contribution);
  const takes = felt.filter((part) => part.contribution < 0).sort((a, b) => a.contribution - b.contribution);
  return { adds, takes };
}

/** The longest bar among the hits, so that their bars can be compared. */
export function scaleOf(hits) {
  return Math.max(...hits.map((hit) => (hit.explanation ? sum(sides(hit.explanation).adds) : 0)), 0.01);
}

/** All parts in one bar; negative ones are hatched at its end. */
export function scoreBar(explanation, scale) {
  const { adds, takes } = sides(explanation);
  const total = sum(adds);
  const parts = [...adds, ...takes].map((part) => `${named_(part)} ${told(part.contribution)}`).join(", ");
  const label = t("why_bar", { score: number(explanation.score, 2), parts });
  return h("span", { class: "score-bar", role: "img", "aria-label": label, title: label },
    h("span", { class: "filled", css: { width: share(total, scale) } },
      adds.map((part) => h("i", { class: `part-${known(part.name)}`, css: { width: share(part.contribution, total) } })),
      takes.length ? h("b", { class: "taken", css: { width: share(Math.min(-sum(takes), total), total) } }) : null));
}

/** The whole explanation of a score. */
export function whole(explanation) {
  return h("div", { class: "why", role: "group", "aria-label": t("why_title") },
    place(explanation),
    explanation.evidence.length ? evidence(explanation) : plain(explanation),
    explanation.matched_terms.length
      ? h("p", { class: "small soft matched" }, `${t("why_matched")}: `,
        h("span", { class: "chips" }, explanation.matched_terms.map((term) => h("code", { class: "chip" }, term))))
      : null);
}

function place(explanation) {
  const { adds, takes } = sides(explanation);
  const largest = Math.max(...[...adds, ...takes].map((part) => Math.abs(part.contribution)), SMALL);
  const row = (part) => h("tr", { class: `part-${known(part.name)}` },
    h("th", { scope: "row" }, h("i", { class: part.contribution < 0 ? "swatch taken" : "swatch" }), named_(part)),
    h("td", { class: "bar" }, h("span", {
      class: part.contribution < 0 ? "length taken" : "length",
      css: { width: share(Math.abs(part.contribution), largest) },
    })),
    h("td", { class: "faint" }, `${number(part.value, 2)} × ${number(part.weight, 2)}`),
    h("td", null, told(part.contribution)));
  return h("section", null, h("h3", null, t("why_place")),
    h("table", { class: "parts numbers" },
      h("thead", { class: "unseen" }, h("tr", null,
        h("th", null, t("why_place")), h("td"), h("th", null, `${t("why_value")} × ${t("why_weight")}`), h("th", null, t("why_adds")))),
      h("tbody", null, adds.map(row), takes.map(row),
        h("tr", { class: "total" }, h("th", { scope: "row" }, t("why_place_sum")), h("td"), h("td"),
          h("td", null, number(sum(explanation.parts), 2))))));
}

function plain(explanation) {
  const factors = explanation.factors.length ? t("why_plain_factors") : "";
  return h("section", null, h("h3", null, t("why_score")),
    h("p", { class: "small soft" }, t("why_plain", { factors })),
    explanation.factors.length
      ? h("table", { class: "parts numbers" }, explanation.factors.map((factor) => h("tr", null,
        h("th", { scope: "row" }, named_(factor)), h("td", null, `× ${number(factor.contribution, 2)}`))))
      : null,
    h("p", { class: "outcome numbers" }, number(explanation.score, 2)));
}

// Fixed terms that the server adds to the output of the relevance model.
const ADJUSTMENTS = new Set(["successor", "keywords", "assistant asked", "outdated", "small talk", "other language", "reranker"]);

/** The effect of each feature and adjustment on the logit, and the score on the logistic curve below. */
function evidence(explanation) {
  const parts = explanation.evidence.filter((part) => Math.abs(part.contribution) >= SMALL);
  const score = Math.min(Math.max(explanation.score, 1e-4), 1 - 1e-4);
  const logit = Math.log(score / (1 - score));
  const ends = [logit, ...parts.map((part) => part.contribution)];
  const low = Math.min(-4, ...ends) - 0.4;
  const high = Math.max(4, ...ends) + 0.4;
  const x = (value) => `${(100 * (value - low)) / (high - low)}%`;
  const row = ({ name, contribution: by }) => h("div", { class: "step" },
    h("span", null, named("part", name)),
    h("span", { class: "track" },
      h("i", { class: "zero", css: { left: x(0) } }),
      h("i", {
        class: by < 0 ? "length taken" : `length part-${known(name)}`,
        css: { left: x(Math.min(0, by)), width: share(Math.abs(by), high - low) },
      })),
    h("span", null, told(by)));
  const group = (title, some) => some.length ? [h("h4", { class: "small" }, t(title)), some.map(row)] : null;
  return h("section", null, h("h3", null, t("why_score")),
    h("p", { class: "small soft" }, t("why_model")),
    h("div", { class: "evidence numbers" },
      group("why_features", parts.filter((part) => !ADJUSTMENTS.has(part.name))),
      group("why_adjustments", parts.filter((part) => ADJUSTMENTS.has(part.name))),
      curve(low, high, logit, explanation.score, x)));
}

function curve(low, high, at, score, x) {
  const points = [];
  for (let place = 0; place <= 60; place += 1) {
    const value = low + ((high - low) * place) / 60;
    points.push(`${((100 * place) / 60).toFixed(2)},${(40 - 40 / (1 + Math.exp(-value))).toFixed(2)}`);
  }
  const level = (value) => h("span", { class: "level", css: { bottom: share(value, 1) } }, number(value, 1));
  return h("div", { class: "step curve" },
    h("span", null),
    h("span", { class: "track" },
      s("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", "aria-hidden": "true" },
        s("rect", { class: "zone-use", x: 0, y: 0, width: 100, height: 8 }),
        s("rect", { class: "zone-hint", x: 0, y: 8, width: 100, height: 8 }),
        s("polyline", { class: "s-curve", points: points.join(" ") })),
      h("i", { class: "drop", css: { left: x(at), bottom: share(score, 1) } }),
      h("i", { class: `dot band-${band(score)}`, css: { left: x(at), bottom: share(score, 1) } }),
      level(0.8), level(0.6)),
    h("span", { class: "outcome" }, number(score, 2)));
}
