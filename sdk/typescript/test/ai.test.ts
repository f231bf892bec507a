/** The helpers for the Vercel AI SDK, with its own mock model. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, simulateReadableStream, stepCountIs, streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { memoryMiddleware, memoryTools } from "../src/ai.js";
import { Jiyi } from "../src/index.js";

const jiyi = new Jiyi({ url: process.env.JIYI_URL ?? "", key: process.env.JIYI_KEY ?? "" });
type Result = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>;
const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 };
const usage = { inputTokens: tokens, outputTokens: tokens };

const reply = (content: Result["content"], unified: "stop" | "tool-calls" = "stop") =>
  ({ content, finishReason: { unified, raw: unified }, usage, warnings: [] }) as Result;

const messages = async (user_id: string) => {
  const page = await jiyi.request("GET", "/v1/messages", { query: { user_id } });
  return page.items.map((one) => [one.role, one.text]).reverse();
};

test("middleware recalls before a turn and stores it afterwards", async () => {
  await jiyi.add("I live in Lisbon", { user_id: "ai" });
  const inner = new MockLanguageModelV3({ doGenerate: reply([{ type: "text", text: "Lisbon." }]) });
  const middleware = memoryMiddleware(jiyi, { userId: "ai", sessionId: "s1" });
  const model = wrapLanguageModel({ model: inner, middleware });
  const { text } = await generateText({ model, system: "Be brief.", prompt: "Which city do I live in?" });
  assert.equal(text, "Lisbon.");
  const prompt = inner.doGenerateCalls[0]?.prompt ?? [];
  assert.deepEqual(prompt.map((message) => message.role), ["system", "user"]);
  assert.equal(prompt[0]?.content, "Be brief.");
  assert.match(JSON.stringify(prompt[1]?.content), /I live in Lisbon/);
  assert.equal(await middleware.flush(), 0);
  assert.deepEqual(await messages("ai"), [
    ["user", "Which city do I live in?"],
    ["assistant", "Lisbon."],
  ]);
});

test("middleware stores what was streamed", async () => {
  const stream = simulateReadableStream({
    chunks: [
      { type: "text-start" as const, id: "1" },
      { type: "text-delta" as const, id: "1", delta: "In " },
      { type: "text-delta" as const, id: "1", delta: "Porto." },
      { type: "text-end" as const, id: "1" },
      { type: "finish" as const, finishReason: { unified: "stop" as const, raw: "stop" }, usage },
    ],
  });
  const inner = new MockLanguageModelV3({ doStream: { stream } });
  const middleware = memoryMiddleware(jiyi, { userId: "streamed" });
  const model = wrapLanguageModel({ model: inner, middleware });
  let text = "";
  for await (const piece of streamText({ model, prompt: "Where am I?" }).textStream) text += piece;
  assert.equal(text, "In Porto.");
  assert.equal(await middleware.flush(), 0);
  assert.deepEqual(await messages("streamed"), [
    ["user", "Where am I?"],
    ["assistant", "In Porto."],
  ]);
});

test("a failing memory does not break a call", async () => {
  const errors: unknown[] = [];
  const gone = new Jiyi({ url: "http://127.0.0.1:1", retries: 0 });
  const inner = new MockLanguageModelV3({ doGenerate: reply([{ type: "text", text: "Hello!" }]) });
  const middleware = memoryMiddleware(gone, { onError: (one) => errors.push(one) });
  const model = wrapLanguageModel({ model: inner, middleware });
  assert.equal((await generateText({ model, prompt: "Hello?" })).text, "Hello!");
  assert.equal(await middleware.flush(50), 1);
  assert.equal(errors.length, 2);
});

for (const state of ["hangs", "is slow"]) {
  test(`a server that ${state} is waited for once, and no turn is lost`, async () => {
    let away = true;
    const send: typeof fetch = async (url, init) => {
      if (away) {
        await new Promise((resolve, reject) => {
          if (state === "is slow") setTimeout(resolve, 5_000).unref();
          init?.signal?.addEventListener("abort", () => reject(init?.signal?.reason), { once: true });
        });
      }
      return fetch(url, init);
    };
    const userId = `away ${state}`;
    await jiyi.add("I live in Lisbon", { user_id: userId });
    const slow = new Jiyi({ url: process.env.JIYI_URL ?? "", key: process.env.JIYI_KEY ?? "", fetch: send, timeoutMs: 300 });
    const errors: unknown[] = [];
    const onError = (error: unknown) => void errors.push(error);
    const middleware = memoryMiddleware(slow, { userId, recallTimeoutMs: 1_000, onError });
    const inner = new MockLanguageModelV3({ doGenerate: reply([{ type: "text", text: "Hm." }]) });
    const model = wrapLanguageModel({ model: inner, middleware });
    const ask = async (prompt: string) => {
      const began = Date.now();
      await generateText({ model, prompt });
      return Date.now() - began;
    };
    assert.ok((await ask("Which city do I live in, 1?")) < 4_000);
    const further = (await ask("Which city do I live in, 2?")) + (await ask("Which city do I live in, 3?"));
    assert.ok(further < 1_000, `${further} ms`);
    assert.ok(errors.length >= 3);
    away = false;
    for (let attempt = 0; attempt < 50; attempt++) {
      await ask(`Which city do I live in, again?`);
      if (JSON.stringify(inner.doGenerateCalls.at(-1)?.prompt).includes("Lisbon")) break;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.match(JSON.stringify(inner.doGenerateCalls.at(-1)?.prompt), /Lisbon/);
    assert.equal(await middleware.flush(30_000), 0);
    const said = (await messages(userId)).map(([, text]) => text);
    for (const number of [1, 2, 3]) {
      assert.equal(said.filter((text) => text === `Which city do I live in, ${number}?`).length, 1);
    }
  });
}

test("a call that is aborted does not wait for the memory", async () => {
  const hanging = new Jiyi({ fetch: (_, init) => new Promise((_resolve, reject) => {
    init?.signal?.addEventListener("abort", () => reject(init?.signal?.reason), { once: true });
  }) });
  const inner = new MockLanguageModelV3({ doGenerate: reply([{ type: "text", text: "Hm." }]) });
  const middleware = memoryMiddleware(hanging, { recallTimeoutMs: 60_000, onError: () => undefined });
  const model = wrapLanguageModel({ model: inner, middleware });
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 50);
  await generateText({ model, prompt: "Hello?", abortSignal: stop.signal, maxRetries: 0 }).catch(() => undefined);
  const quick = new Jiyi({ url: "http://127.0.0.1:1" });
  await assert.rejects(quick.request("GET", "/v1/memories", { signal: AbortSignal.abort() }));
});

test("a model saves, finds, corrects and forgets through tools", async () => {
  const tools = memoryTools(jiyi, { userId: "tools" });
  const call = (toolName: string, input: object) =>
    reply([{ type: "tool-call", toolCallId: "1", toolName, input: JSON.stringify(input) }], "tool-calls");
  const ask = async (toolName: string, input: object) => {
    const doGenerate = [call(toolName, input), reply([{ type: "text", text: "done" }])];
    const model = new MockLanguageModelV3({ doGenerate });
    const { steps } = await generateText({ model, tools, stopWhen: stepCountIs(2), prompt: "go on" });
    return steps[0]?.toolResults[0]?.output as Record<string, any>;
  };
  const saved = await ask("save_memory", { text: "I like green tea" });
  assert.equal(saved.saved[0].text, "I like green tea");
  await jiyi.add("I'm allergic to peanuts", { user_id: "tools" });
  const always = await ask("search_memories", { query: "book a table for us" });
  assert.ok(always.memories.some((one: any) => /peanuts/.test(one.text) && one.applies_always));
  await jiyi.deleteAll({ user_id: "tools" });
  await ask("save_memory", { text: "I like green tea" });
  const found = await ask("search_memories", { query: "which tea?" });
  assert.equal(found.memories[0].text, "I like green tea");
  const id = found.memories[0].id as string;
  assert.deepEqual(await ask("update_memory", { id, text: "I like black tea" }), { updated: id });
  assert.deepEqual(await ask("forget_memory", { id }), { deleted: 1 });
  assert.deepEqual(await ask("search_memories", { query: "which tea?" }), { memories: [], note: "nothing matches" });
});
