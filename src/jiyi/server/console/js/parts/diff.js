// The difference of two texts, by word; Chinese by character.
import { h } from "../dom.js";

const PIECES = /[\u3400-\u9fff\uf900-\ufaff]|[\p{L}\p{N}_]+|\s+|./gsu;
const MOST = 1500; // pieces; longer texts are shown one after the other

export function diff(before, after) {
  const [old, fresh] = [before, after].map((text) => text.match(PIECES) ?? []);
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end += 1;
  const middle = steps(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end));
  const all = [["same", old.slice(0, start).join("")], ...middle, ["same", end ? old.slice(-end).join("") : ""]];
  return all.filter(([, text]) => text);
}

function steps(old, fresh) {
  if (old.length > MOST || fresh.length > MOST) return [["gone", old.join("")], ["new", fresh.join("")]];
  const width = fresh.length + 1;
  const common = new Uint16Array((old.length + 1) * width);
  for (let a = old.length - 1; a >= 0; a -= 1) {
    for (let b = fresh.length - 1; b >= 0; b -= 1) {
      common[a * width + b] = old[a] === fresh[b]
        ? common[(a + 1) * width + b + 1] + 1
        : Math.max(common[(a + 1) * width + b], common[a * width + b + 1]);
    }
  }
  const made = [];
  const put = (kind, piece) => {
    if (made.at(-1)?.[0] === kind) made.at(-1)[1] += piece;
    else made.push([kind, piece]);
  };
  let [a, b] = [0, 0];
  while (a < old.length || b < fresh.length) {
    if (a < old.length && b < fresh.length && old[a] === fresh[b]) {
      put("same", old[a]);
      a += 1;
      b += 1;
    } else if (b >= fresh.length || (a < old.length && common[(a + 1) * width + b] >= common[a * width + b + 1])) {
      put("gone", old[a]);
      a += 1;
    } else {
      put("new", fresh[b]);
      b += 1;
    }
  }
  return made;
}

const AROUND = 60; // unchanged characters on each side of a change

/** Shortens unchanged text to some context. */
function near(text, first, last) {
  if (text.length <= 2 * AROUND + 20) return text;
  return `${first ? "" : text.slice(0, AROUND)} … ${last ? "" : text.slice(-AROUND)}`;
}

export function shownDiff(before, after) {
  const tags = { same: "span", gone: "del", new: "ins" };
  const found = diff(before, after);
  return h("div", { class: "diff", dir: "auto" }, found.map(([kind, text], at) =>
    h(tags[kind], null, kind === "same" ? near(text, at === 0, at === found.length - 1) : text)));
}
