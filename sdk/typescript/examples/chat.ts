/**
 * A chat with memory on the command line.
 *
 *   jiyi serve &
 *   OPENAI_BASE_URL=http://127.0.0.1:8089/v1 OPENAI_API_KEY=local OPENAI_MODEL=local node out/examples/chat.js mei
 */

import { createInterface } from "node:readline/promises";
import { Jiyi } from "../src/index.js";

const env = process.env;
const jiyi = new Jiyi({
  userId: process.argv[2] ?? "default",
  ...(env.JIYI_URL ? { url: env.JIYI_URL } : {}),
  ...(env.JIYI_KEY ? { key: env.JIYI_KEY } : {}),
});
const session_id = crypto.randomUUID();
const messages: { role: string; content: string }[] = [];

async function complete(memory: string): Promise<string> {
  const system = { role: "system", content: `You are a helpful assistant.\n\n${memory}`.trim() };
  const answer = await fetch(`${env.OPENAI_BASE_URL ?? "https://api.openai.com/v1"}/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${env.OPENAI_API_KEY ?? ""}` },
    body: JSON.stringify({ model: env.OPENAI_MODEL ?? "gpt-4.1-mini", messages: [system, ...messages] }),
  });
  if (!answer.ok) throw new Error(`the model answered ${answer.status}: ${await answer.text()}`);
  const reply = (await answer.json()) as { choices: { message: { content: string } }[] };
  return reply.choices[0]?.message.content ?? "";
}

const terminal = createInterface({ input: process.stdin, output: process.stdout });
terminal.setPrompt("> ");
terminal.prompt();
for await (const said of terminal) {
  if (said.trim()) {
    const { block } = await jiyi.recall(said, { session_id });
    messages.push({ role: "user", content: said });
    const answer = await complete(block);
    messages.push({ role: "assistant", content: answer });
    console.log(answer);
    await jiyi.observe(said, answer, { session_id });
  }
  terminal.prompt();
}
