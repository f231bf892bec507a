/** Client of a Jiyi server. Its types come from the server's OpenAPI document; there are no dependencies. */

import type { components, paths } from "./openapi.js";

type Schemas = components["schemas"];
export type MemoryItem = Schemas["MemoryItem"];
export type Hit = Schemas["Hit"];
export type SearchResult = Schemas["SearchResult"];
export type Receipt = Schemas["Receipt"];
export type Revision = Schemas["Revision"];
export type Deletion = Schemas["Deletion"];
export type Recalled = Schemas["RecallReport"];
export type Problem = Schemas["Problem"];

export interface Message {
  role: string;
  content: string;
  name?: string;
  sent_at?: string;
  id?: string;
}

type Without<T, K extends PropertyKey> = { [P in keyof T as P extends K ? never : P]?: T[P] };
/** Whose memories a call is about; by default those of the client's user. */
export interface ForUser {
  user_id?: string;
}
export type AddOptions = Without<Schemas["AddBody"], "text" | "messages" | "candidates"> &
  ForUser & { idempotency_key?: string };
export type SearchOptions = Without<Schemas["SearchBody"], "query"> & ForUser;
export type ContextOptions = Without<Schemas["ContextBody"], "query"> & ForUser;
export type RecallOptions = Without<Schemas["RecallBody"], "said"> & ForUser & { signal?: AbortSignal | undefined };
export type UpdateOptions = Without<Schemas["UpdateBody"], never> &
  ForUser & { expected_version?: number; /** @deprecated use expected_version */ version?: number };
export type ListOptions = Without<NonNullable<paths["/v1/memories"]["get"]["parameters"]["query"]>, "user_id"> & ForUser;
export type MemoryPage = Schemas["MemoryPage"];

export interface JiyiOptions {
  /** Address of `jiyi serve`. */
  url?: string;
  /** A key, made with `jiyi keys create`. */
  key?: string;
  /** The user of all calls; may be left out with a key for one user. */
  userId?: string;
  timeoutMs?: number;
  /** How often a request that may be repeated is sent again while the server is busy or unreachable. */
  retries?: number;
  fetch?: typeof fetch;
}

/** A refusal or a failure of the server; `code` is stable, `message` is for people. */
export class JiyiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly problem: Partial<Problem>;

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? `the server answered ${status}`);
    this.name = "JiyiError";
    this.status = status;
    this.code = problem.code ?? "unknown";
    this.problem = problem;
  }
}

type Method = "GET" | "POST" | "PATCH" | "DELETE";
type Operation<P extends keyof paths, M extends Method> = paths[P][Lowercase<M> & keyof paths[P]];
type Answer<O> = O extends { responses: infer R }
  ? { [S in keyof R & (200 | 201 | 202)]: R[S] extends { content: { "application/json": infer B } } ? B : unknown }[keyof R &
      (200 | 201 | 202)]
  : unknown;
type Query<O> = O extends { parameters: { query?: infer Q } } ? Q : never;
type Body<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : never;

export interface RequestOptions<O> {
  path?: Record<string, string>;
  query?: Query<O>;
  body?: Body<O>;
  headers?: Record<string, string>;
  /** Whether it may be sent again after a failure. */
  repeatable?: boolean;
  /** Ends the request, and its retries. */
  signal?: AbortSignal | undefined;
}

const READING: ReadonlySet<string> = new Set(["/v1/search", "/v1/context", "/v1/recall", "/v1/retrieve", "/v1/fetch"]);

export class Jiyi {
  readonly #url: string;
  readonly #options: JiyiOptions;

  constructor(options: JiyiOptions = {}) {
    this.#url = (options.url ?? "http://127.0.0.1:8766").replace(/\/+$/, "");
    this.#options = options;
  }

  /** The same server for another user. */
  forUser(userId: string): Jiyi {
    return new Jiyi({ ...this.#options, userId });
  }

  /** Add a statement, a message or a conversation. It is stored when the promise resolves; repeating is safe. */
  async add(what: string | Message | Message[], options: AddOptions = {}): Promise<Receipt> {
    const { user_id, idempotency_key, ...fields } = options;
    const content = typeof what === "string" ? { text: what } : { messages: Array.isArray(what) ? what : [what] };
    return this.request("POST", "/v1/memories", {
      query: this.#user(user_id),
      body: { ...content, ...fields } as Schemas["AddBody"],
      headers: { "Idempotency-Key": idempotency_key ?? crypto.randomUUID() },
    });
  }

  /** Store a turn of a chat. */
  async observe(
    userText: string,
    assistantText?: string,
    options: Without<Schemas["TurnBody"], "user_text" | "assistant_text"> & ForUser = {},
  ): Promise<Receipt> {
    const { user_id, ...fields } = options;
    const said = { user_text: userText, ...(assistantText ? { assistant_text: assistantText } : {}) };
    return this.request("POST", "/v1/turns", {
      query: this.#user(user_id),
      body: { ...said, ...fields } as Schemas["TurnBody"],
      headers: { "Idempotency-Key": crypto.randomUUID() },
    });
  }

  async search(query: string, options: SearchOptions = {}): Promise<SearchResult> {
    const { user_id, ...fields } = options;
    const body = { query, ...fields } as Schemas["SearchBody"];
    return this.request("POST", "/v1/search", { query: this.#user(user_id), body });
  }

  /** The best memories for a query as one block for a prompt; "" if there are none. */
  async context(query: string, options: ContextOptions = {}): Promise<string> {
    const { user_id, ...fields } = options;
    const body = { query, ...fields } as Schemas["ContextBody"];
    return (await this.request("POST", "/v1/context", { query: this.#user(user_id), body })).context;
  }

  /** What an agent should know before it answers: the best memories and the user's standing wishes, as one block. */
  async recall(said: string, options: RecallOptions = {}): Promise<Recalled> {
    const { user_id, signal, ...fields } = options;
    const body = { said, ...fields } as Schemas["RecallBody"];
    return this.request("POST", "/v1/recall", { query: this.#user(user_id), body, signal });
  }

  async get(memoryId: string, options: ForUser = {}): Promise<MemoryItem> {
    return this.request("GET", "/v1/memories/{memory_id}", {
      path: { memory_id: memoryId },
      query: this.#user(options.user_id),
    });
  }

  /** One page of memories, newest first. */
  async list(options: ListOptions = {}): Promise<MemoryPage> {
    const { user_id, ...filters } = options;
    return this.request("GET", "/v1/memories", { query: { ...filters, ...this.#user(user_id) } });
  }

  /** All memories, newest first, page by page. */
  async *all(options: ListOptions = {}): AsyncGenerator<MemoryItem, void, undefined> {
    let cursor: string | null | undefined;
    do {
      const page = await this.list({ ...options, ...(cursor ? { cursor } : {}) });
      yield* page.items;
      cursor = page.next_cursor;
    } while (cursor);
  }

  /** Change some fields; with `expected_version`, only if it is the current one. */
  async update(memoryId: string, changes: UpdateOptions): Promise<MemoryItem> {
    const { user_id, version, expected_version: expected = version, ...fields } = changes;
    return this.request("PATCH", "/v1/memories/{memory_id}", {
      path: { memory_id: memoryId },
      query: this.#user(user_id),
      body: fields as Schemas["UpdateBody"],
      ...(expected === undefined ? {} : { headers: { "If-Match": `"${expected}"` } }),
    });
  }

  async history(memoryId: string, options: ForUser = {}): Promise<Revision[]> {
    const found = await this.request("GET", "/v1/memories/{memory_id}/history", {
      path: { memory_id: memoryId },
      query: this.#user(options.user_id),
    });
    return found.items;
  }

  /** Delete a memory with its history. This cannot be undone. */
  async delete(memoryId: string, options: ForUser & { with_sources?: boolean } = {}): Promise<Deletion> {
    const { user_id, ...more } = options;
    return this.request("DELETE", "/v1/memories/{memory_id}", {
      path: { memory_id: memoryId },
      query: { ...more, ...this.#user(user_id) },
    });
  }

  /** Delete everything of the user. This cannot be undone. */
  async deleteAll(options: ForUser = {}): Promise<Deletion> {
    return this.request("DELETE", "/v1/memories", { query: { all: true, ...this.#user(options.user_id) } });
  }

  /** Any route of the server, typed by its OpenAPI document. */
  async request<P extends keyof paths, M extends Method>(
    method: M,
    route: P,
    options: RequestOptions<Operation<P, M>> = {},
  ): Promise<Answer<Operation<P, M>>> {
    const path = String(route).replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(options.path?.[name] ?? ""));
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries((options.query ?? {}) as Record<string, unknown>)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined && one !== null) query.append(name, String(one));
      }
    }
    const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
    if (this.#options.key) headers.Authorization = `Bearer ${this.#options.key}`;
    if (options.body !== undefined) headers["Content-Type"] = "application/json";
    const repeatable =
      options.repeatable ?? (method === "GET" || READING.has(String(route)) || "Idempotency-Key" in headers);
    const text = query.toString();
    return this.#send(
      `${this.#url}${path}${text ? `?${text}` : ""}`,
      { method, headers, ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }) },
      repeatable ? (this.#options.retries ?? 2) : 0,
      options.signal,
    ) as Promise<Answer<Operation<P, M>>>;
  }

  async #send(url: string, init: RequestInit, retries: number, signal?: AbortSignal): Promise<unknown> {
    const send = this.#options.fetch ?? fetch;
    for (let attempt = 0; ; attempt++) {
      let wait = 200 * 2 ** attempt;
      try {
        const timeout = AbortSignal.timeout(this.#options.timeoutMs ?? 60_000);
        const answer = await send(url, { ...init, signal: signal ? AbortSignal.any([signal, timeout]) : timeout });
        if (answer.ok) return answer.status === 204 ? undefined : await answer.json();
        const problem = (await answer.json().catch(() => ({}))) as Partial<Problem>;
        if (attempt >= retries || ![429, 503].includes(answer.status)) throw new JiyiError(answer.status, problem);
        wait = Number(answer.headers.get("retry-after") ?? 0) * 1000 || wait;
      } catch (error) {
        if (error instanceof JiyiError || attempt >= retries || signal?.aborted) throw error;
      }
      await pause(Math.min(wait, 5_000), signal);
    }
  }

  #user(userId: string | undefined): { user_id?: string } {
    const named = userId ?? this.#options.userId;
    return named === undefined ? {} : { user_id: named };
  }
}

/** Wait; reject if the signal ends it. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}
