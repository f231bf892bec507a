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
  const model = wrapLanguageModel({ model: inner, middleware: memoryMiddleware(jiyi, { userId: "ai", sessionId: "s1" }) });
  const { text } = await generateText({ model, system: "Be brief.", prompt: "Which city do I live in?" });
  assert.equal(text, "Lisbon.");
  const prompt = inner.doGenerateCalls[0]?.prompt ?? [];
  assert.deepEqual(prompt.map((message) => message.role), ["system", "system", "user"]);
  assert.equal(prompt[0]?.content, "Be brief.");
  assert.match(String(prompt[1]?.content), /I live in Lisbon/);
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
  const model = wrapLanguageModel({ model: inner, middleware: memoryMiddleware(jiyi, { userId: "streamed" }) });
  let text = "";
  for await (const piece of streamText({ model, prompt: "Where am I?" }).textStream) text += piece;
  assert.equal(text, "In Porto.");
  assert.deepEqual(await messages("streamed"), [
    ["user", "Where am I?"],
    ["assistant", "In Porto."],
  ]);
});

test("a failing memory does not break a call", async () => {
  const errors: unknown[] = [];
  const gone = new Jiyi({ url: "http://127.0.0.1:1", retries: 0 });
  const inner = new MockLanguageModelV3({ doGenerate: reply([{ type: "text", text: "Hello!" }]) });
  const model = wrapLanguageModel({ model: inner, middleware: memoryMiddleware(gone, { onError: (one) => errors.push(one) }) });
  assert.equal((await generateText({ model, prompt: "Hello?" })).text, "Hello!");
  assert.equal(errors.length, 2);
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
