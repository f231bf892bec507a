// Values kept in the browser: key, user, language, theme, saved filters. If storage is disabled, nothing is kept.

function read(where, name) {
  try {
    return where().getItem(`jiyi.${name}`);
  } catch {
    return null;
  }
}

function write(where, name, value) {
  try {
    if (value === null) where().removeItem(`jiyi.${name}`);
    else where().setItem(`jiyi.${name}`, value);
  } catch {
    // kept until the page is closed
  }
}

const lasting = () => localStorage;
const passing = () => sessionStorage;

const values = {
  key: read(passing, "key") ?? read(lasting, "key"),
  user: read(lasting, "user"),
  language: read(lasting, "language"),
  theme: read(lasting, "theme"),
  filters: read(lasting, "filters"),
};

export const kept = {
  get key() {
    return values.key;
  },
  keepKey(key, onDevice) {
    values.key = key;
    write(passing, "key", key);
    write(lasting, "key", onDevice ? key : null);
  },
  get user() {
    return values.user;
  },
  set user(user) {
    values.user = user;
    write(lasting, "user", user);
  },
  get language() {
    return values.language ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");
  },
  set language(language) {
    values.language = language;
    write(lasting, "language", language);
  },
  /** Saved filters: name and query. */
  get filters() {
    try {
      const saved = JSON.parse(values.filters ?? "[]");
      return Array.isArray(saved) ? saved.filter((one) => typeof one?.name === "string" && typeof one.query === "string") : [];
    } catch {
      return []; // not written by this page
    }
  },
  set filters(filters) {
    values.filters = JSON.stringify(filters);
    write(lasting, "filters", values.filters);
  },
  get theme() {
    return values.theme ?? "auto";
  },
  set theme(theme) {
    values.theme = theme === "auto" ? null : theme;
    write(lasting, "theme", values.theme);
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  },
};
