// The address after # says what is shown: `#/search?q=tea&open=ID`. `open` lays a memory beside any view.

export function here() {
  const [, path, query] = /^#?\/?([^?]*)\??(.*)$/s.exec(location.hash);
  return { view: path || "search", params: new URLSearchParams(query) };
}

/** The address of a view; what is null or empty is left out. */
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

/** This view with some of its parameters changed. */
export function changed(changes) {
  const { view, params } = here();
  return address(view, { ...Object.fromEntries(params), ...changes });
}

/** Changes the address without a step in the history and without showing anew: the view has done so itself. */
export function note(changes) {
  history.replaceState(null, "", changed(changes));
}

export function open(id) {
  location.hash = changed({ open: id });
}
