/** The client against a running server, whose address and keys are in the environment. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Jiyi, JiyiError } from "../src/index.js";

const url = process.env.JIYI_URL ?? "";
const key = process.env.JIYI_KEY ?? "";
const jiyi = new Jiyi({ url, key, userId: "ts" });

test("a memory lives its whole life", async () => {
  const receipt = await jiyi.add("I am allergic to peanuts", { tags: ["food"] });
  const made = receipt.memories[0];
  assert.ok(made);
  const found = await jiyi.search("allergic to what?", { limit: 3, explain: true });
  assert.equal(found.hits[0]?.content, "I am allergic to peanuts");
  assert.match(await jiyi.context("allergic to what?"), /peanuts/);

  const changed = await jiyi.update(made.id, { content: "I am allergic to walnuts", expected_version: made.version });
  assert.equal(changed.version, made.version + 1);
  await assert.rejects(jiyi.update(made.id, { content: "no", expected_version: made.version }), { status: 412 });
  assert.deepEqual((await jiyi.history(made.id)).map((one) => one.action), ["add", "update"]);
  assert.equal((await jiyi.get(made.id)).content, "I am allergic to walnuts");
  assert.equal((await jiyi.delete(made.id)).memories, 1);
  await assert.rejects(jiyi.get(made.id), (error: unknown) => {
    assert.ok(error instanceof JiyiError);
    assert.deepEqual([error.status, error.code], [404, "not_found"]);
    return true;
  });
});

test("pages, turns and recall", async () => {
  const user = jiyi.forUser("小明");
  for (let at = 0; at < 5; at++) await user.add(`第${at}把钥匙在${at}号抽屉里`);
  const texts: string[] = [];
  for await (const memory of user.all({ limit: 2 })) texts.push(memory.content);
  assert.equal(texts.length, 5);
  await user.observe("我住在里斯本", "好的", { session_id: "s1" });
  const recalled = await user.recall("我住在哪个城市？", { session_id: "s2" });
  assert.match(recalled.block, /里斯本/);
  assert.ok(recalled.used.length > 0);
  assert.match(await user.context("我住在哪个城市？", { depth: "wide" }), /里斯本/);
  assert.equal(await user.context("钥匙在哪里？", { min_relevance_score: 1 }), "");
  const page = await user.request("GET", "/v1/messages", { query: { user_id: "小明", limit: 10 } });
  assert.ok(page.items.some((message) => message.text === "我住在里斯本"));
  assert.ok((await user.deleteAll()).memories > 0);
});

test("a request that may be repeated is sent again while the server is busy, and others are not", async () => {
  let calls = 0;
  const busy: typeof fetch = async (address, init) => {
    calls += 1;
    if (calls === 1) return new Response('{"detail":"later"}', { status: 503, headers: { "retry-after": "0" } });
    return fetch(address, init);
  };
  const patient = new Jiyi({ url, key, userId: "ts", fetch: busy });
  assert.equal((await patient.search("anything")).query, "anything");
  assert.equal(calls, 2);
  calls = 0;
  await assert.rejects(patient.delete("some-id"), { status: 503 });
  assert.equal(calls, 1);
});

test("a wrong key and a server that is not there are errors", async () => {
  await assert.rejects(new Jiyi({ url, key: "wrong" }).search("tea"), { status: 401 });
  await assert.rejects(new Jiyi({ url: "http://127.0.0.1:1", retries: 0 }).search("tea"), TypeError);
});
