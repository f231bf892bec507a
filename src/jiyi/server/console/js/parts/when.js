// The dates that a text means, in brackets before it, as jiyi/models/shown_dates.py shows them.
const MOST = 3;
const DAY_MS = 86_400_000;

/** A text with the dates of its times before it. */
export function withDates(text, data) {
  const shown = (data?.when ?? []).filter((time) => time.start && !/(19|20)\d\d/.test(time.text))
    .map((time) => [time.text, label(time)]).filter(([, date]) => date).slice(0, MOST);
  if (!shown.length) return data?.dated ?? text;
  return shown.length === 1 ? `(${shown[0][1]}) ${text}` : `(${shown.map((pair) => pair.join(" = ")).join(", ")}) ${text}`;
}

/** The summary of a memory, or its text, with its dates. */
export const shownText = (memory) => withDates(memory.summary || memory.content, memory.data);

function label({ start, end, precision }) {
  const length = Date.parse(end) - Date.parse(start);
  const first = start.slice(0, 10);
  // The last day is that of the moment before the end.
  const last = end.slice(11, 16) === "00:00" ? new Date(Date.parse(`${end.slice(0, 10)}T00:00Z`) - 1).toISOString().slice(0, 10) : end.slice(0, 10);
  if (length < DAY_MS / 12 && (precision === "minute" || precision === "hour")) return `${first} ${start.slice(11, 16)}`;
  if (length <= DAY_MS) return first;
  const months = first.endsWith("-01") && end.slice(8, 16) === "01T00:00";
  if (months && first.slice(5, 7) === "01" && last.slice(5, 7) === "12") return range(first.slice(0, 4), last.slice(0, 4));
  if (length > 370 * DAY_MS || (length > 31 * DAY_MS && !months)) return "";
  return months ? range(first.slice(0, 7), last.slice(0, 7)) : range(first, last);
}

const range = (from, to) => (from === to ? from : `${from} to ${to}`);
