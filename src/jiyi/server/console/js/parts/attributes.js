// Names of attributes and the state of a fact.
import { language, named } from "../i18n.js";
import { shownText } from "./when.js";

const FAVOURITE = /^favou?rite /;

/** The readable name of an attribute, or null if it has none: such facts are grouped under their person. */
export function attributeName(attribute) {
  if (typeof attribute !== "string") return null;
  const [kind, ...rest] = attribute.split(":");
  const word = named("attribute", kind.trim());
  if (word !== kind.trim()) {
    const detail = rest.join(":").trim();
    return detail && !/\d-\d|^[\d-]+$/.test(detail) ? `${word} · ${detail}` : word;
  }
  if (FAVOURITE.test(attribute)) return language() === "zh" ? attribute.replace(FAVOURITE, "最喜欢的 ") : attribute.charAt(0).toUpperCase() + attribute.slice(1);
  return null;
}

/** True if the memory says that something is over, such as "I am not a vegetarian any more". */
export function saysEnd(memory) {
  return memory.data.ended === true || memory.data.kind === "end";
}

/** True if the memory holds at that time. */
export function holds(memory, at = Date.now()) {
  return Date.parse(memory.valid_from) <= at && (!memory.valid_to || Date.parse(memory.valid_to) > at);
}

/** The value of a fact, or its whole text if there is none or if it says that the value is over. */
export function valueText(memory) {
  const { value } = memory.data;
  return typeof value === "string" && value && !saysEnd(memory) ? value : shownText(memory);
}

/** The person a fact is about: "user: sister Ana" is "sister Ana", and "user" is the user. */
export function personOf(memory) {
  const subject = String(memory.data.subject || "user");
  const other = /^user:\s*(.+)$/s.exec(subject);
  if (other) return other[1];
  return subject === "user" ? memory.user_id : subject;
}
