// Names of attributes: `home` is Home, `habit:swim` is Habit · swim. Unknown ones stay as they are.
import { named } from "../i18n.js";

export function attributeName(attribute) {
  const [kind, ...rest] = attribute.split(":");
  const detail = rest.join(":");
  const word = named("attribute", kind);
  const shown = word === kind ? kind.charAt(0).toUpperCase() + kind.slice(1) : word;
  return detail ? `${shown} · ${detail}` : shown;
}
