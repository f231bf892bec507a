// The review queue: doubtful and conflicting memories, one card each, with keys and bulk actions.
import { api } from "../api.js";
import { fill, h, said } from "../dom.js";
import { hear, tell } from "../events.js";
import { number, t } from "../i18n.js";
import { confirmed } from "../parts/dialogs.js";
import { badge, markOpen, opens, plain, time } from "../parts/memory.js";
import { note as say, noteProblem } from "../parts/notes.js";
import { empty, loading } from "../parts/states.js";
import { shownText } from "../parts/when.js";
import { here, open } from "../router.js";
import { session } from "../shell.js";

const KEYS = { y: "accept", x: "reject", e: "edit", m: "merge", " ": "select" };

export async function showReview(place, params, signal) {
  const body = h("div", { class: "stack" }, loading());
  const bar = h("div", { class: "line bulk", hidden: true });
  const chosen = new Set(); // keys of selected cards
  let items = [];
  fill(place, h("div", { class: "head" }, h("h1", null, t("review_title")), h("p", null, t("review_text"))), bar, body);

  const keyOf = (item) => item.memories.map((one) => one.id).join();

  async function load() {
    ({ items } = await api.review(signal));
    const keys = new Set(items.map(keyOf));
    for (const key of chosen) if (!keys.has(key)) chosen.delete(key);
    draw();
  }

  function draw() {
    const focused = document.activeElement?.closest?.("[data-review]")?.dataset.review;
    const order = [...body.querySelectorAll("[data-review]")].map((one) => one.dataset.review);
    if (!items.length) fill(body, empty("review", t("review_empty"), t("review_empty_text")));
    else fill(body, h("ol", { class: "stack" }, items.map(card)));
    drawBar();
    markOpen(body, here().params.get("open"));
    const cards = [...body.querySelectorAll("[data-review]")];
    if (focused) (cards.find((one) => one.dataset.review === focused) ?? cards[Math.min(order.indexOf(focused), cards.length - 1)])?.focus();
  }

  function drawBar() {
    bar.hidden = !items.length || !session.may("write");
    const all = h("input", { type: "checkbox", checked: chosen.size > 0 && chosen.size === items.length, indeterminate: chosen.size > 0 && chosen.size < items.length,
      onchange: () => { for (const item of items) chosen[all.checked ? "add" : "delete"](keyOf(item)); draw(); } });
    fill(bar, h("label", { class: "check" }, all, t("review_select_all")),
      h("span", { class: "small soft numbers", role: "status" }, chosen.size ? t("review_selected", { n: chosen.size }) : t("review_count", { n: items.length })),
      ["accept", "reject"].map((name) => h("button", { class: "button compact", type: "button", disabled: !chosen.size, data: { bulk: name },
        onclick: () => act(name, items.filter((item) => chosen.has(keyOf(item)))) }, t(`review_${name}_selected`))),
      h("span", { class: "push tiny faint" }, t("review_keys")));
  }

  function card(item) {
    const key = keyOf(item);
    const box = h("input", { type: "checkbox", checked: chosen.has(key), "aria-label": t("review_select"), onchange: () => { chosen[box.checked ? "add" : "delete"](key); drawBar(); } });
    const ended = item.why === "ended";
    const buttons = ["accept", ...(ended ? [] : ["edit"]), "reject", ...(item.memories.length > 1 && !ended ? ["merge"] : []), ...(item.memories.length === 1 && session.may("delete") ? ["delete"] : [])];
    return h("li", { class: "card padded stack review-card", tabindex: "0", data: { review: key }, "aria-label": `${t(`review_why_${item.why}`)}: ${item.memories.map((one) => one.content).join("; ")}`,
      onkeydown: (event) => pressed(event, item, box) },
    h("div", { class: "line" }, session.may("write") && box, h("span", { class: item.why === "conflict" ? "chip off" : "chip mid" }, t(`review_why_${item.why}`)),
      item.why === "unsure" ? h("span", { class: "tiny faint numbers" }, t("review_confidence", { value: number(item.memories[0].confidence, 2) })) : null,
      item.why === "untrusted" ? h("span", { class: "tiny faint numbers" }, t("review_trust", { value: number(item.memories[0].trust, 2) })) : null),
    h("ul", { class: "stack" }, item.memories.map((memory) => h("li", null, h("a", { class: "row", href: opens(memory.id), data: { item: memory.id } },
      h("span", { class: "row-head" }, badge(memory), h("span", { class: "push faint tiny numbers" }, time(memory.occurred_at))), said("span", { class: "row-text" }, plain(memory.content)))))),
    session.may("write") ? h("div", { class: "line" }, buttons.map((name) => h("button", { class: name === "accept" ? "button compact first" : "button compact", type: "button", data: { review_action: name },
      onclick: () => act(name, [item]) }, t(ended ? `review_ended_${name}` : `review_${name}`)))) : null);
  }

  function pressed(event, item, box) {
    const name = KEYS[event.key];
    if (!name || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, button")) return;
    event.preventDefault();
    event.stopPropagation();
    if (name === "select") box.click();
    else if (item.why === "ended" && (name === "merge" || name === "edit")) return;
    else if (name !== "merge" || item.memories.length > 1) act(name, [item]);
  }

  async function act(name, some) {
    if (!session.may("write")) return;
    if (name === "edit") {
      open(some[0].memories[0].id);
      return;
    }
    if (name === "delete") {
      const [{ memories: [gone] }] = some;
      if (!(await confirmed({ title: t("delete_title"), text: t("delete_text"), quote: shownText(gone), action: t("delete") }))) return;
    }
    const done = [];
    try {
      for (const item of some) {
        const [first, ...rest] = item.memories;
        if (name === "delete") {
          await api.remove(first.id);
          say(t("deleted"));
          tell("memory");
          return;
        }
        if (item.why === "ended" && name === "reject") { // the older one holds again
          await api.undo(rest[0].id);
          const holds = await api.get(rest[0].id);
          const accepted = await api.update(holds.id, { metadata: { ...holds.metadata, reviewed: true }, reason: t("review_reason_accept") }, holds.version);
          done.push({ ...accepted, to: rest[0].version });
          chosen.delete(keyOf(item));
          continue;
        }
        if (name === "accept") for (const one of item.memories) done.push(await api.update(one.id, { metadata: { ...one.metadata, reviewed: true }, reason: t("review_reason_accept") }, one.version));
        else if (name === "reject") for (const one of item.memories.length > 1 ? [first] : item.memories) done.push(await api.update(one.id, { status: "archived", reason: t("review_reason_reject") }, one.version));
        else for (const one of rest) done.push(await api.update(one.id, { status: "archived", reason: t("review_reason_merge", { id: first.id }) }, one.version));
        chosen.delete(keyOf(item));
      }
      say(t(`review_done_${name}`, { n: done.length }), { label: t("undo"), action: () => back(done) });
    } catch (error) {
      noteProblem(error);
    }
    tell("memory");
  }

  async function back(done) {
    try {
      for (const one of done) await api.restore(one.id, one.to ?? null, one.version);
      say(t("review_undone", { n: done.length }));
    } catch (error) {
      noteProblem(error);
    }
    tell("memory");
  }

  hear("memory", signal, () => load().catch(noteProblem));
  hear("shown", signal, (id) => markOpen(body, id));
  await load();
}
