/** mem0's own npm client, unmodified, against Jiyi's server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryClient } from "mem0ai";

const host = process.env.JIYI_URL ?? "";
const client = new MemoryClient({ apiKey: process.env.JIYI_KEY ?? "", host });
const filters = { user_id: "mem0-npm" };

test("mem0's client works unmodified", async () => {
  await client.ping();
  const added = await client.add([{ role: "user", content: "My favorite color is blue." }], {
    userId: "mem0-npm",
    metadata: { source: "npm" },
  });
  assert.equal((added as unknown as { status: string }).status, "SUCCEEDED");
  const listed = await client.getAll({ filters, page: 1, pageSize: 10 });
  assert.equal(listed.count, 1);
  const [one] = listed.results;
  assert.ok(one);
  assert.equal(one.memory, "My favorite color is blue.");
  assert.deepEqual(one.metadata, { source: "npm" });
  const { results } = await client.search("which color?", { filters, topK: 3 });
  assert.match(results[0]?.memory ?? "", /blue/);
  assert.ok((results[0]?.score ?? 0) > 0);
  await client.update(one.id, { text: "My favorite color is green." });
  assert.equal((await client.get(one.id)).memory, "My favorite color is green.");
  assert.deepEqual((await client.history(one.id)).map((event) => event.event), ["ADD", "UPDATE"]);
  await client.batchUpdate([{ memoryId: one.id, text: "My favorite color is red." }]);
  await client.delete(one.id);
  await assert.rejects(client.get(one.id), { name: "MemoryNotFoundError" });
  await client.add([{ role: "user", content: "I play chess." }], { userId: "mem0-npm" });
  assert.ok((await client.users()).results.some((entity) => entity.name === "mem0-npm"));
  await client.deleteAll({ userId: "mem0-npm" });
  assert.equal((await client.getAll({ filters })).count, 0);
  await client.deleteUsers({ userId: "mem0-npm" });
});

test("mem0's client gets its own errors", async () => {
  await assert.rejects(client.get("nonsense"), { name: "ValidationError" });
  await assert.rejects(client.getAll({}), { name: "ValidationError" });
  await assert.rejects(new MemoryClient({ apiKey: "wrong", host }).ping(), { name: "AuthenticationError" });
});
