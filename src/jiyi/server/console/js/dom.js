// Builds elements. Text always becomes a text node, so stored text can never become markup, a script or a style.

const SVG = "http://www.w3.org/2000/svg";
const NEVER = new Set(["style", "innerHTML", "outerHTML", "srcdoc"]);

export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

export function s(tag, props, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

function build(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (NEVER.has(name) || (name.startsWith("on") && typeof value !== "function")) {
    throw new Error(`${name} is not set from here`);
  }
  if (typeof value === "function") element.addEventListener(name.slice(2), value);
  else if (name === "data") Object.assign(element.dataset, value);
  else if (name === "css") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
  else if (name === "value" || name === "checked" || name === "selected" || name === "indeterminate") element[name] = value;
  else element.setAttribute(name, value === true ? "" : value);
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function fill(element, ...children) {
  const fresh = document.createDocumentFragment();
  append(fresh, children);
  element.replaceChildren(fresh);
  return element;
}

const HAN = /[\u3400-\u9fff\uf900-\ufaff]/;

/** Text of a user, with its language set for fonts and screen readers. */
export function said(tag, props, text) {
  return h(tag, { ...props, lang: HAN.test(text) ? "zh" : "en", dir: "auto" }, text);
}

/** The text with the given words marked. */
export function marked(text, words) {
  const wanted = [...new Set(words)].filter((word) => word.length > (HAN.test(word) ? 0 : 1)).sort((a, b) => b.length - a.length);
  if (!wanted.length) return [text];
  const parts = wanted.map((word) => {
    const plain = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return HAN.test(word) ? plain : `(?<![\\p{L}\\p{N}])${plain}[\\p{L}]{0,4}`;
  });
  const found = [];
  let at = 0;
  for (const match of text.matchAll(new RegExp(parts.join("|"), "giu"))) {
    found.push(text.slice(at, match.index), h("mark", null, match[0]));
    at = match.index + match[0].length;
  }
  return [...found, text.slice(at)];
}
