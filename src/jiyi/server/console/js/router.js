// The hash names the view: `#/search?q=tea&open=ID`. `open` shows a memory in the pane beside it.

export function here() {
  const [, path, query] = /^#?\/?([^?]*)\??(.*)$/s.exec(location.hash);
  return { view: path || "search", params: new URLSearchParams(query) };
}

/** The address of a view, without null and empty parameters. */
export function address(view, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return `#/${view}${text ? `?${text}` : ""}`;
}

export function go(view, params) {
  location.hash = address(view, params);
}

/** The current view with changed parameters. */
export function changed(changes) {
  const { view, params } = here();
  return address(view, { ...Object.fromEntries(params), ...changes });
}

/** Replaces the address without redrawing the view. */
export function note(changes) {
  history.replaceState(null, "", changed(changes));
}

export function open(id) {
  location.hash = changed({ open: id });
}
