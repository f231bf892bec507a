/** Helpers for the Vercel AI SDK: memory as tools that the model calls, or as middleware around a model. */

import { jsonSchema, tool, type LanguageModelMiddleware } from "ai";
import type { Jiyi } from "./index.js";
import { Deadline, TurnQueue } from "./turns.js";

export interface MemoryOptions {
  userId?: string;
  sessionId?: string;
  agentId?: string;
}

type Parameters<T extends keyof LanguageModelMiddleware> = NonNullable<LanguageModelMiddleware[T]> extends (
  options: infer O,
) => unknown
  ? O
  : never;
type Prompt = Parameters<"wrapGenerate">["params"]["prompt"];

const scope = (options: MemoryOptions) => ({
  ...(options.userId ? { user_id: options.userId } : {}),
  ...(options.sessionId ? { session_id: options.sessionId } : {}),
  ...(options.agentId ? { agent_id: options.agentId } : {}),
});

/** Tools for `generateText` and `streamText`: search, save, update and forget memories of one user. */
export function memoryTools(jiyi: Jiyi, options: MemoryOptions = {}) {
  const user = options.userId ? { user_id: options.userId } : {};
  return {
    search_memories: tool({
      description: "Search what is known about the user. Search before you ask them for something they may have told you.",
      inputSchema: jsonSchema<{ query: string }>({
        type: "object",
        properties: {
          query: { type: "string", minLength: 1, maxLength: 8000, description: "what to look for, in the user's words" },
        },
        required: ["query"],
        additionalProperties: false,
      }),
      execute: async ({ query }) => {
        // A recall also has the wishes and limits that always apply.
        const { used } = await jiyi.recall(query, user);
        const memories = used.map(({ memory, relevance_score, standing, weak }) => ({
          id: memory.id,
          text: memory.content,
          date: memory.occurred_at.slice(0, 10),
          ...(relevance_score == null ? {} : { relevance: Number(relevance_score.toFixed(2)) }),
          ...(weak ? { weak } : {}),
          ...(standing ? { applies_always: true } : {}),
        }));
        return memories.length > 0 ? { memories } : { memories, note: "nothing matches" };
      },
    }),
    save_memory: tool({
      description: "Save a lasting fact, preference or instruction that the user states. Do not save questions or small talk.",
      inputSchema: jsonSchema<{ text: string }>({
        type: "object",
        properties: { text: { type: "string", minLength: 1, maxLength: 100_000, description: "one full sentence" } },
        required: ["text"],
        additionalProperties: false,
      }),
      execute: async ({ text }) => {
        const receipt = await jiyi.add(text, scope(options));
        return { saved: receipt.memories.map((memory) => ({ id: memory.id, text: memory.content })) };
      },
    }),
    update_memory: tool({
      description: "Correct a memory that you found: its id and the new text.",
      inputSchema: jsonSchema<{ id: string; text: string }>({
        type: "object",
        properties: { id: { type: "string", minLength: 1 }, text: { type: "string", minLength: 1, maxLength: 100_000 } },
        required: ["id", "text"],
        additionalProperties: false,
      }),
      execute: async ({ id, text }) => ({ updated: (await jiyi.update(id, { content: text, ...user })).id }),
    }),
    forget_memory: tool({
      description: "Delete a memory, only when the user asks for it.",
      inputSchema: jsonSchema<{ id: string }>({
        type: "object",
        properties: { id: { type: "string", minLength: 1 } },
        required: ["id"],
        additionalProperties: false,
      }),
      execute: async ({ id }) => ({ deleted: (await jiyi.delete(id, user)).memories }),
    }),
  };
}

export interface MiddlewareOptions extends MemoryOptions {
  onError?: (error: unknown) => void;
  /** Longest wait for memories in a turn, in milliseconds. */
  recallTimeoutMs?: number;
}

export interface MemoryMiddleware extends LanguageModelMiddleware {
  /** Wait until all turns are stored, by default at most five seconds; returns how many are still waiting. */
  flush(timeoutMs?: number): Promise<number>;
}

/**
 * Middleware for `wrapLanguageModel`: recalls before each turn and stores it in the background, streamed or not.
 * A failing memory is reported to `onError` and never breaks a call; it is waited for once, until it is back.
 */
export function memoryMiddleware(jiyi: Jiyi, options: MiddlewareOptions = {}): MemoryMiddleware {
  const report = options.onError ?? ((error: unknown) => console.warn("jiyi:", error));
  const deadline = new Deadline(options.recallTimeoutMs ?? 1_500);
  const turns = new TurnQueue(report);
  const asked = new WeakMap<Prompt, string>(); // the user's own words, by the prompt with memories
  const observe = (prompt: Prompt, answer: string) => {
    const own = asked.get(prompt) ?? lastWords(prompt);
    const said = prompt.at(-1)?.role === "user" ? own : ""; // with results of tools it was stored before
    const turn = [
      ...(said ? [{ role: "user", content: said }] : []),
      ...(answer.trim() ? [{ role: "assistant", content: answer }] : []),
    ];
    const idempotency_key = crypto.randomUUID(); // it may be sent several times
    if (turn.length > 0) turns.put(() => jiyi.add(turn, { ...scope(options), idempotency_key }));
  };
  return {
    flush: (timeoutMs) => turns.flush(timeoutMs),
    specificationVersion: "v3",
    transformParams: async ({ params }) => {
      const said = lastWords(params.prompt);
      if (!said) return params;
      try {
        const recall = (signal: AbortSignal) => jiyi.recall(said.slice(0, 8000), { ...scope(options), signal });
        const { block } = await deadline.run(recall, params.abortSignal);
        if (!block) return params;
        const prompt = withBlock(params.prompt, block);
        asked.set(prompt, said);
        return { ...params, prompt };
      } catch (error) {
        report(error);
        return params;
      }
    },
    wrapGenerate: async ({ doGenerate, params }) => {
      const result = await doGenerate();
      observe(params.prompt, result.content.map((part) => (part.type === "text" ? part.text : "")).join(""));
      return result;
    },
    wrapStream: async ({ doStream, params }) => {
      const { stream, ...rest } = await doStream();
      let answer = "";
      type Part = typeof stream extends ReadableStream<infer P> ? P : never;
      const observed = new TransformStream<Part, Part>({
        transform(part, controller) {
          if (part.type === "text-delta") answer += part.delta;
          controller.enqueue(part);
        },
        flush() {
          observe(params.prompt, answer);
        },
      });
      return { stream: stream.pipeThrough(observed), ...rest };
    },
  };
}

/** The user's last message. */
function lastWords(prompt: Prompt): string {
  const last = prompt.findLast((message) => message.role === "user");
  if (last?.role !== "user") return "";
  return last.content.map((part) => (part.type === "text" ? part.text : "")).join("\n").trim();
}

/** The prompt with a block at the end of the user's last message; all before it stays as it is, for prompt caches. */
function withBlock(prompt: Prompt, block: string): Prompt {
  const at = prompt.findLastIndex((message) => message.role === "user");
  return prompt.map((message, place) =>
    place === at && message.role === "user"
      ? { ...message, content: [...message.content, { type: "text" as const, text: block }] }
      : message,
  );
}
