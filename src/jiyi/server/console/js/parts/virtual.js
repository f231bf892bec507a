// Long lists: only the rows near the visible part of the page are in the document.
import { fill, h } from "../dom.js";

const PLAIN = 200; // rows that are simply shown
const AROUND = 30; // rows kept above and below the visible ones

/** A list of `items`, each drawn by `draw` as an `li`. `onEnd` is called when its end comes near. */
export function virtualList(items, draw, signal, { onEnd = null } = {}) {
  if (items.length <= PLAIN && !onEnd) return h("ul", null, items.map(draw));
  const list = h("ul", { class: "virtual" });
  const above = h("li", { class: "spacer", "aria-hidden": "true" });
  const below = h("li", { class: "spacer", "aria-hidden": "true" });
  let shown = [0, 0];
  let high = 64; // average height of a row

  function place(force = false) {
    if (!list.isConnected && !force) return;
    const top = list.isConnected ? -list.getBoundingClientRect().top : 0;
    const rows = list.children.length - 2;
    if (rows > 0) high = Math.max((list.scrollHeight - above.offsetHeight - below.offsetHeight) / rows, 20);
    const bottom = Math.max(Math.ceil((top + innerHeight) / high), 0) + AROUND;
    const whole = items.length <= PLAIN;
    const first = whole ? 0 : Math.min(Math.max(Math.floor(top / high) - AROUND, 0), items.length - 1);
    const last = whole ? items.length : Math.min(bottom, items.length);
    if (onEnd && bottom >= items.length) onEnd();
    if (!force && first === shown[0] && last === shown[1]) return;
    const focused = document.activeElement?.closest?.("[data-row]");
    const at = focused && list.contains(focused) ? Number(focused.dataset.row) : -1;
    if (at >= 0 && (at < first || at >= last)) return; // keep the focused row until the focus moves
    shown = [first, last];
    above.style.height = `${first * high}px`;
    below.style.height = `${(items.length - last) * high}px`;
    const kept = new Map([...list.children].filter((one) => one.dataset.row).map((one) => [Number(one.dataset.row), one]));
    const fresh = Array.from({ length: last - first }, (_, add) => kept.get(first + add) ?? row(first + add));
    fill(list, above, fresh, below);
    if (at >= 0) list.querySelector(`[data-row="${at}"] a, [data-row="${at}"]`)?.focus({ preventScroll: true });
  }

  function row(at) {
    const made = draw(items[at]);
    made.dataset.row = at;
    made.setAttribute("aria-setsize", items.length);
    made.setAttribute("aria-posinset", at + 1);
    return made;
  }

  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      place();
    });
  };
  addEventListener("scroll", later, { passive: true, signal: signal ?? undefined });
  addEventListener("resize", later, { passive: true, signal: signal ?? undefined });
  list.grow = () => place(true); // after rows were added
  place(true);
  requestAnimationFrame(() => place(true));
  return list;
}
