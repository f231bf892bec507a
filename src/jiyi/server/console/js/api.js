// All calls to the server, in one place. Nothing here leaves the page's own origin.
import { kept } from "./store.js";

/** A problem of the server (RFC 9457). */
export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.title || String(status));
    this.status = status;
    this.code = told.code ?? null;
    this.title = told.title ?? null;
    this.detail = told.detail ?? null;
    this.requestId = told.request_id ?? null;
    this.version = told.version ?? null;
    this.errors = told.errors ?? [];
  }
}

export const asking = { forKey: async () => false }; // set by the shell: asks for a missing key

function address(path, query) {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") url.searchParams.append(name, one);
    }
  }
  return url;
}

async function send(method, path, { query, body, headers, signal, file, keepalive, key = kept.key } = {}) {
  const sent = { Accept: "application/json", ...headers };
  if (key) sent.Authorization = `Bearer ${key}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let reply;
  try {
    reply = await fetch(address(path, query), {
      method, signal, keepalive, headers: sent, cache: "no-store", credentials: "omit",
      body: file ?? (body === undefined ? undefined : JSON.stringify(body)),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { code: "offline" });
  }
  if (reply.ok) return reply;
  throw new Problem(reply.status, await told(reply));
}

async function told(reply) {
  try {
    return await reply.json();
  } catch {
    return { title: `${reply.status} ${reply.statusText}`, request_id: reply.headers.get("X-Request-Id") };
  }
}

/** Repeats the request after a key was entered. */
async function call(method, path, options = {}) {
  try {
    return await send(method, path, options);
  } catch (error) {
    if (error.status !== 401 || options.quiet || !(await asking.forKey())) throw error;
    return send(method, path, options);
  }
}

async function json(method, path, options) {
  return (await call(method, path, options)).json();
}

/** The events of a stream: [name, value], until the server ends it. */
async function* events(path, query, signal) {
  const reply = await call("GET", path, { query, signal, headers: { Accept: "text/event-stream" } });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split(/\r?\n/);
      const name = lines.find((line) => line.startsWith("event:"))?.slice(6).trim();
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
      if (name && data) yield [name, JSON.parse(data)];
    }
  }
}

/** Saves the answer of the server as a file. */
export async function download(path, name, query) {
  const reply = await call("GET", path, { query, headers: { Accept: "*/*" } });
  const url = URL.createObjectURL(await reply.blob());
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const mine = (query) => ({ user_id: kept.user, ...query });
const at = (id, more = "") => `v1/memories/${encodeURIComponent(id)}${more}`;
const expecting = (version) => (version === null || version === undefined ? {} : { "If-Match": `"${version}"` });

export const api = {
  whoami: (options) => json("GET", "v1/whoami", options),
  users: (signal) => json("GET", "v1/users", { signal }),
  health: async (reasons, signal) => {
    if (reasons) return json("GET", "v1/health", { signal, quiet: true });
    return (await fetch(address("readyz"), { signal, cache: "no-store", credentials: "omit" })).json(); // a 503 has a body too
  },

  search: (wanted, signal) => json("POST", "v1/search", { query: mine(), body: wanted, signal }),
  list: (query, signal) => json("GET", "v1/memories", { query: mine(query), signal }),
  timeline: (query, signal) => json("GET", "v1/timeline", { query: mine(query), signal }),
  profile: (signal) => json("GET", "v1/profile", { query: mine(), signal }),
  groups: (signal) => json("GET", "v1/groups", { query: mine(), signal }),
  stats: (query, signal) => json("GET", "v1/stats", { query: mine(query), signal }),

  get: (id, signal) => json("GET", at(id), { query: mine(), signal }),
  history: (id, signal) => json("GET", at(id, "/history"), { query: mine(), signal }),
  relations: (id, signal) => json("GET", at(id, "/relations"), { query: mine(), signal }),
  sources: (id, signal) => json("GET", at(id, "/sources"), { query: mine(), signal }),
  add: (body) => json("POST", "v1/memories", {
    query: mine(), body: { ...body, wait: true, actor: "console" }, headers: { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) },
  }),
  update: (id, changes, version) => json("PATCH", at(id), {
    query: mine(), body: { ...changes, actor: "console" }, headers: expecting(version),
  }),
  restore: (id, toVersion, expected) => json("POST", at(id, "/restore"), {
    query: mine(), body: { to_version: toVersion, actor: "console" }, headers: expecting(expected),
  }),
  remove: (id) => json("DELETE", at(id), { query: mine() }),
  /** Changes several memories, or none of them. */
  updateMany: async (changes) => (await json("POST", "v1/memories/update", { query: mine(), body: { changes, actor: "console" } })).items,
  /** Deletes several memories, or none of them; also while the page is left. */
  removeMany: (ids, user) => json("POST", "v1/memories/delete", { query: { user_id: user }, body: { memory_ids: ids }, keepalive: true }),

  jobs: (query, signal) => json("GET", "v1/jobs", { query: mine(query), signal }),
  retryJob: (id) => json("POST", `v1/jobs/${encodeURIComponent(id)}/retry`, { query: mine() }),
  cancelJob: (id) => json("POST", `v1/jobs/${encodeURIComponent(id)}/cancel`, { query: mine() }),

  startImport: (file) => json("POST", "v1/imports", {
    query: mine({ filename: file.name }), file, headers: { "Content-Type": "application/octet-stream" },
  }),
  imports: (signal) => json("GET", "v1/imports", { query: mine(), signal }),
  importEvents: (id, signal) => events(`v1/imports/${encodeURIComponent(id)}/events`, mine(), signal),

  answer: (question, signal) => json("POST", "v1/answer", { query: mine(), body: { question }, signal }),
  recall: (body, signal) => json("POST", "v1/recall", { query: mine(), body, signal }),
  changes: (query, signal) => json("GET", "v1/changes", { query: mine(query), signal }),
  undo: (memoryId) => json("POST", "v1/undo", { query: mine(), body: { memory_id: memoryId } }),
  subjects: (signal) => json("GET", "v1/subjects", { query: mine(), signal }),
  mentions: (name, signal) => json("GET", "v1/mentions", { query: mine({ name }), signal }),
  review: (signal) => json("GET", "v1/review", { query: mine(), signal }),
  addSynonym: (keyword, synonym) => json("POST", "v1/synonyms", { query: mine(), body: { pairs: [{ keyword, synonym, similarity: 1 }] } }),
  removeSynonym: (keyword, synonym) => json("DELETE", "v1/synonyms", { query: mine({ keyword, synonym }) }),

  verify: (signal) => json("POST", "v1/verify", { query: mine(), signal }),
  compressPlan: (signal) => json("POST", "v1/compress/plan", { query: mine(), signal }),
  compress: () => json("POST", "v1/compress", { query: mine() }),
  sizes: (signal) => json("GET", "v1/sizes", { signal }),
  settings: (signal) => json("GET", "v1/settings", { signal }),

  /** Changes that each external engine may not have yet, by name. */
  engineLags: async (signal) => {
    const text = await (await call("GET", "metrics", { signal, headers: { Accept: "text/plain" } })).text();
    return [...text.matchAll(/^\w*engine_lag\{engine="([^"]*)"\} ([\d.e+]+)$/gm)].map(([, name, lag]) => [name, Number(lag)]);
  },

  metrics: (signal) => json("GET", "v1/metrics", { signal }),
  keys: (signal) => json("GET", "v1/keys", { signal }),
  makeKey: (wanted) => json("POST", "v1/keys", { body: wanted }),
  revokeKey: (id) => json("DELETE", `v1/keys/${encodeURIComponent(id)}`),
  audit: (signal) => json("GET", "v1/audit", { query: { limit: 50 }, signal }),
};
