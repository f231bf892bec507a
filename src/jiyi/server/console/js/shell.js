// The frame of the page: menu, user, language, theme, key.
import { api, asking } from "./api.js";
import { fill, h } from "./dom.js";
import { tell } from "./events.js";
import { icon } from "./icons.js";
import { language, t } from "./i18n.js";
import { dialog, field, form, select } from "./parts/dialogs.js";
import { paletteButton } from "./parts/palette.js";
import { address } from "./router.js";
import { kept } from "./store.js";
import { showHelp } from "./keyboard.js";

/** The permissions of the key, from the server. */
export const session = {
  ready: false,
  who: null,
  users: [],
  may(scope) {
    return this.who?.scopes.includes(scope) ?? false;
  },
  async begin() {
    this.ready = false;
    this.who = await api.whoami();
    this.users = this.may("read") ? (await api.users()).users : [];
    const possible = this.who.all_users ? null : this.who.user_ids;
    const fits = kept.user !== null && (possible === null || possible.includes(kept.user));
    if (!fits) kept.user = this.who.default_user ?? possible?.[0] ?? this.users[0] ?? "default";
    if (!fits && possible === null && this.users.length && !this.users.includes(kept.user)) kept.user = this.users[0];
    this.ready = true;
  },
};

const THEMES = ["auto", "light", "dark"];
const THEME_ICONS = { auto: "auto", light: "sun", dark: "moon" };

/** `begin` starts with another key, `anew` redraws the page in another language. */
export function buildShell(views, begin, anew) {
  const main = h("main", { class: "main", id: "main", tabindex: "-1" });
  const whose = h("div", { class: "whose" });
  const keyPlace = h("div", { class: "switches" });
  const links = new Map();
  const flag = h("span", { class: "flag", hidden: true });
  flag.append(h("span", { class: "unseen" }, t("not_ready")));
  for (const { name, key } of views) {
    links.set(name, h("a", { href: address(name), title: `g ${key}`, data: { view: name } }, icon(name), h("span", null, t(`nav_${name}`)), name === "jobs" && flag));
  }
  const side = h("aside", { class: "side", id: "side" },
    brand(), paletteButton(views),
    h("nav", { class: "nav", "aria-label": t("menu") }, views.map(({ name, apart }) => [apart && h("div", { class: "rule" }), links.get(name)])),
    h("div", { class: "foot" }, whose, keyPlace, switches(anew)));
  const content = h("div", { class: "main-place" });
  const element = h("div", { class: "shell" },
    h("a", { class: "skip button", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, t("skip")),
    side, main);
  const menu = (shown) => {
    element.classList.toggle("menu", shown);
    element.querySelector(".veil")?.remove();
    if (shown) element.append(h("button", { class: "veil", type: "button", "aria-label": t("close"), onclick: () => menu(false) }));
  };
  main.append(h("div", { class: "topbar" }, brand(),
    h("button", { class: "icon-button", type: "button", "aria-label": t("menu"), onclick: () => menu(true) }, icon("menu"))), content);
  side.addEventListener("click", (event) => {
    if (event.target.closest("a")) menu(false);
  });
  return {
    element,
    main: content,
    mark(view) {
      for (const [name, link] of links) {
        if (name === view) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      }
    },
    refresh() {
      fill(whose, userSwitch());
      fill(keyPlace, keyButton(begin));
      keyPlace.hidden = !keyPlace.childNodes.length;
      api.health(session.who.all_users).then((health) => { flag.hidden = health.ready; }, () => { flag.hidden = false; });
    },
  };
}

function brand() {
  return h("a", { class: "brand", href: address("search") },
    h("img", { src: "icon.svg", alt: "", width: 26, height: 26 }), h("b", null, "Jiyi"), h("span", { lang: "zh" }, "记忆"));
}

function switches(anew) {
  const theme = kept.theme;
  return h("div", { class: "switches" },
    h("button", {
      class: "icon-button lined", type: "button", data: { action: "language" }, "aria-label": t("language_label"), lang: language() === "zh" ? "en" : "zh",
      onclick: () => {
        kept.language = language() === "zh" ? "en" : "zh";
        anew();
      },
    }, t("language")),
    h("button", {
      class: "icon-button lined", type: "button", data: { action: "theme" }, title: t(`theme_${theme}`),
      "aria-label": t("theme_label", { theme: t(`theme_${theme}`) }),
      onclick: (event) => {
        kept.theme = THEMES[(THEMES.indexOf(kept.theme) + 1) % THEMES.length];
        event.currentTarget.closest(".switches").replaceWith(switches(anew));
        document.querySelector('[data-action="theme"]').focus();
      },
    }, icon(THEME_ICONS[theme])),
    h("button", { class: "icon-button lined", type: "button", "aria-label": t("keyboard"), title: t("keyboard"), onclick: showHelp }, icon("keyboard")));
}

const OTHER = "\u0000other";
const MAX_KEY_USERS = 100; // in the list

function userSwitch() {
  const { who, users } = session;
  const known = (who.all_users ? users : who.user_ids).slice(0, MAX_KEY_USERS); // beyond that, by name
  const names = [...new Set([kept.user, ...known])].sort();
  const choices = names.map((name) => [name, name]);
  if (who.all_users || known.length === MAX_KEY_USERS) choices.push([OTHER, t("user_other")]);
  const list = select(choices, kept.user, async (chosen) => {
    const user = chosen === OTHER ? await askUser() : chosen;
    if (user) tell("user", user);
    else list.value = kept.user;
  });
  list.id = "whose";
  list.disabled = choices.length < 2;
  return [h("label", { for: "whose" }, t("user_label")), list];
}

function askUser() {
  const input = h("input", { class: "input", autofocus: true, maxlength: 256, autocomplete: "off", list: "users-known" });
  return dialog((close) => form(() => input.value && close(input.value),
    h("h2", null, t("user_ask")), field(t("user_id"), input),
    h("datalist", { id: "users-known" }, session.users.slice(0, 2000).map((value) => h("option", { value }))),
    h("div", { class: "ends" },
      h("button", { class: "button", type: "button", onclick: () => close(null) }, t("cancel")),
      h("button", { class: "button first", type: "submit" }, t("show")))), { label: t("user_ask") });
}

function keyButton(begin) {
  const { who } = session;
  if (!who.keys_needed) return null;
  return h("button", {
    class: "icon-button lined", type: "button", title: t("key_signed_in", { name: who.key?.name ?? "" }),
    onclick: async () => {
      if (await askKey(false)) begin();
    },
  }, icon("keys"), who.key?.name ?? t("key_change"));
}

let pending = null;

/** Asks for a key until the server accepts one. */
function askKey(must, wrong = Boolean(kept.key) && must) {
  const input = h("input", { class: "input mono", type: "password", autofocus: true, autocomplete: "off", spellcheck: "false" });
  const keep = h("input", { type: "checkbox" });
  const problem = h("p", { class: "problem small", role: "alert", hidden: !wrong }, t("key_wrong"));
  return dialog((close) => form(async () => {
    const key = input.value.trim();
    try {
      await api.whoami({ quiet: true, key });
      kept.keepKey(key, keep.checked);
      close(true);
    } catch {
      problem.hidden = false;
      input.setAttribute("aria-invalid", "true");
      input.select();
    }
  },
  h("h2", null, t("key_title")), h("p", { class: "soft" }, t("key_text")), problem, field(t("key"), input),
  h("label", { class: "check small" }, keep, t("key_keep")),
  h("div", { class: "ends" },
    !must && h("button", {
      class: "button danger", type: "button",
      onclick: () => {
        kept.keepKey(null, false);
        close(true);
      },
    }, t("key_forget")),
    !must && h("button", { class: "button", type: "button", onclick: () => close(false) }, t("cancel")),
    h("button", { class: "button first", type: "submit" }, t("key_enter")))), { label: t("key_title"), must });
}

asking.forKey = () => {
  pending ??= askKey(true).finally(() => {
    pending = null;
  });
  return pending;
};

