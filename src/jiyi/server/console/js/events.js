// Events between parts of the page: "memory" (changed or deleted), "user", "shown".
const heard = new EventTarget();

export function tell(name, detail) {
  heard.dispatchEvent(new CustomEvent(name, { detail }));
}

export function hear(name, signal, listener) {
  heard.addEventListener(name, (event) => listener(event.detail), { signal });
}
