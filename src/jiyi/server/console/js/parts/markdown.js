// A subset of Markdown as elements: headings, lists, quotes, code, emphasis, links. HTML stays text, and only http, https
// and mailto become links.
import { h } from "../dom.js";

const FENCE = /^\s*(`{3,}|~{3,})\s*([\w+-]*)\s*$/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const BULLET = /^\s{0,3}[-*+]\s+(.*)$/;
const NUMBER = /^\s{0,3}\d{1,9}[.)]\s+(.*)$/;
const QUOTE = /^\s{0,3}>\s?(.*)$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const MOST_DEPTH = 6;

export function markdown(text) {
  return h("div", { class: "markdown", dir: "auto" }, blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0));
}

function blocks(lines, depth) {
  const made = [];
  let at = 0;
  const take = (pattern) => {
    const taken = [];
    for (let match; at < lines.length && (match = pattern.exec(lines[at])); at += 1) taken.push(match[1]);
    return taken;
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    if (!line.trim()) {
      at += 1;
    } else if (fence) {
      const end = lines.findIndex((one, place) => place > at && one.trim().startsWith(fence[1]));
      const last = end < 0 ? lines.length : end;
      made.push(h("pre", null, h("code", null, lines.slice(at + 1, last).join("\n"))));
      at = last + 1;
    } else if (RULE.test(line)) {
      made.push(h("hr"));
      at += 1;
    } else if (HEADING.test(line)) {
      const [, marks, words] = HEADING.exec(line);
      made.push(h(`h${Math.min(marks.length + 2, 6)}`, null, spans(words)));
      at += 1;
    } else if (QUOTE.test(line) && depth < MOST_DEPTH) {
      made.push(h("blockquote", null, blocks(take(QUOTE), depth + 1)));
    } else if (BULLET.test(line)) {
      made.push(h("ul", null, take(BULLET).map((words) => h("li", null, spans(words)))));
    } else if (NUMBER.test(line)) {
      made.push(h("ol", null, take(NUMBER).map((words) => h("li", null, spans(words)))));
    } else {
      const paragraph = [];
      while (at < lines.length && lines[at].trim() && (!paragraph.length || !starts(lines[at]))) {
        paragraph.push(lines[at]);
        at += 1;
      }
      made.push(h("p", null, paragraph.flatMap((one, place) => [place ? h("br") : null, ...spans(one)])));
    }
  }
  return made;
}

function starts(line) {
  return [FENCE, HEADING, BULLET, NUMBER, QUOTE].some((pattern) => pattern.test(line));
}

const SPANS = /(`+)(.+?)\1|\*\*(\S(?:.*?\S)?)\*\*|~~(\S(?:.*?\S)?)~~|(?<![*\w])\*(\S(?:.*?\S)?)\*|\[([^\]\n]{1,400})\]\(([^()\s]{1,2000})\)|(https?:\/\/[^\s<>"')\]，。；、）】]{1,2000})/u;

function spans(text, depth = 0) {
  const made = [];
  let rest = text;
  for (let match; depth < MOST_DEPTH && (match = SPANS.exec(rest)); ) {
    made.push(rest.slice(0, match.index));
    const [whole, , code, strong, gone, emphasis, label, target, bare] = match;
    if (code !== undefined) made.push(h("code", null, code));
    else if (strong !== undefined) made.push(h("strong", null, spans(strong, depth + 1)));
    else if (gone !== undefined) made.push(h("s", null, spans(gone, depth + 1)));
    else if (emphasis !== undefined) made.push(h("em", null, spans(emphasis, depth + 1)));
    else made.push(link(target ?? bare, target === undefined ? [bare] : spans(label, depth + 1), whole));
    rest = rest.slice(match.index + whole.length);
  }
  return [...made, rest];
}

function link(target, words, whole) {
  let url = null;
  try {
    url = new URL(target);
  } catch {
    return whole;
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return whole;
  return h("a", { href: url.href, rel: "noopener noreferrer nofollow", target: "_blank", title: url.href }, words);
}
