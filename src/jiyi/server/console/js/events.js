// News that several parts of the page want to hear of: "memory" (one was changed or deleted), "user", "shown".
const heard = new EventTarget();

export function tell(name, detail) {
  heard.dispatchEvent(new CustomEvent(name, { detail }));
}

export function hear(name, signal, listener) {
  heard.addEventListener(name, (event) => listener(event.detail), { signal });
}
