/** What a model is given through the helpers for the Vercel AI SDK; run by bench/delivery_servers.py. */

import { text } from "node:stream/consumers";
import { generateText, stepCountIs, wrapLanguageModel } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { memoryMiddleware, memoryTools } from "../src/ai.js";
import { Jiyi } from "../src/index.js";

const jiyi = new Jiyi({ url: process.env.JIYI_URL ?? "", key: process.env.JIYI_KEY ?? "" });
const { user: userId, way, requests } = JSON.parse(await text(process.stdin));
type Result = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>;
const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 };
const reply = (content: Result["content"], unified: "stop" | "tool-calls" = "stop") =>
  ({ content, finishReason: { unified, raw: unified }, usage: { inputTokens: tokens, outputTokens: tokens }, warnings: [] }) as Result;
const answer = reply([{ type: "text", text: "OK." }]);

async function throughMiddleware(prompt: string) {
  const model = new MockLanguageModelV3({ doGenerate: answer });
  const middleware = memoryMiddleware(jiyi, { userId, onError: () => {} }); // the key may not store
  await generateText({ model: wrapLanguageModel({ model, middleware }), prompt });
  return model.doGenerateCalls[0]?.prompt;
}

async function throughTool(prompt: string) {
  const input = JSON.stringify({ query: prompt });
  const call = reply([{ type: "tool-call", toolCallId: "1", toolName: "search_memories", input }], "tool-calls");
  const model = new MockLanguageModelV3({ doGenerate: [call, answer] });
  await generateText({ model, prompt, tools: memoryTools(jiyi, { userId }), stopWhen: stepCountIs(2) });
  return model.doGenerateCalls[1]?.prompt;
}

const given = [];
for (const request of requests) given.push(JSON.stringify(await (way === "tool" ? throughTool : throughMiddleware)(request)));
console.log(JSON.stringify(given));
