// Texts, numbers and times in the chosen language.
import en from "./words/en.js";
import names from "./words/names.js";
import pagesEn from "./words/pages_en.js";
import pagesZh from "./words/pages_zh.js";
import zh from "./words/zh.js";
import { kept } from "./store.js";

const TABLES = { en: { ...en, ...pagesEn }, zh: { ...zh, ...pagesZh } };

export function language() {
  return kept.language in TABLES ? kept.language : "en";
}

function locale() {
  return language() === "zh" ? "zh-CN" : "en-GB";
}

/** The text of that name; `n` = 1 uses the singular if there is one. */
export function t(name, values = {}) {
  const table = TABLES[language()];
  const words = (values.n === 1 && table[`${name}_one`]) || table[name];
  if (words === undefined) throw new Error(`no words for ${name}`);
  return words.replace(/\{(\w+)\}/g, (whole, key) => {
    const value = values[key];
    if (value === undefined) return whole;
    return typeof value === "number" ? number(value) : value;
  });
}

/** The name of a value, or the value itself. */
export function named(kind, value) {
  const name = `${kind}_${value}`;
  if (Object.hasOwn(names, name)) return names[name][language() === "zh" ? 1 : 0];
  return Object.hasOwn(TABLES[language()], name) ? TABLES[language()][name] : value;
}

export function number(value, digits = 0) {
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: digits, minimumFractionDigits: digits }).format(value);
}

export function percent(value, digits = 0) {
  const format = { style: "percent", maximumFractionDigits: digits };
  return new Intl.NumberFormat(locale(), format).format(value);
}

export function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${number(value, value < 10 && at > 0 ? 1 : 0)} ${units[at]}`;
}

export function day(at) {
  return new Intl.DateTimeFormat(locale(), { year: "numeric", month: "short", day: "numeric" }).format(new Date(at));
}

export function moment(at) {
  const format = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(locale(), format).format(new Date(at));
}

/** A day with its weekday, for headings. */
export function weekday(at) {
  return new Intl.DateTimeFormat(locale(), { weekday: "long", year: "numeric", month: "long", day: "numeric" }).format(new Date(at));
}

export function clock(at) {
  return new Intl.DateTimeFormat(locale(), { hour: "2-digit", minute: "2-digit" }).format(new Date(at));
}

const STEPS = [["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3_600], ["minute", 60]];

/** "3 days ago", with the exact time in the title. */
export function ago(at, now = Date.now()) {
  const seconds = (new Date(at).getTime() - now) / 1000;
  const [unit, size] = STEPS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return new Intl.RelativeTimeFormat(locale(), { numeric: "auto", style: "short" }).format(Math.trunc(seconds / size), unit);
}
