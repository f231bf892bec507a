// A program with mem0's npm client of any version. Takes the folder of the package, the style of its arguments, the
// address of a server, a key and a user; prints JSON, as mem0_script.py does.
import { pathToFileURL } from "node:url";

const [folder, style, host, apiKey, user] = process.argv.slice(2);
const { MemoryClient } = await import(pathToFileURL(`${folder}/dist/index.mjs`).href);
const client = new MemoryClient({ apiKey, host });
const isNew = style === "new"; // from 3.0 on options are written in camel case, and filters name the user
const owner = isNew ? { userId: user } : { user_id: user };
const results = (answer) => (Array.isArray(answer) ? answer : answer.results);
const said = [{ role: "user", content: "I'm allergic to peanuts." }, { role: "assistant", content: "Noted." }];
const call = { role: "assistant", content: null, tool_calls: [{ id: "1" }] };

await client.add([call, ...said], { ...owner, async_mode: false });
const filters = isNew ? { filters: { user_id: user } } : { api_version: "v2", filters: { AND: [{ user_id: user }] } };
const found = results(await client.search("What am I allergic to?", filters));
const listed = results(await client.getAll(filters));
const byUser = isNew ? [listed, found] : [results(await client.getAll(owner)), results(await client.search("peanuts", owner))];
const [{ id }] = listed;
const text = "我对花生和芝麻过敏。";
await client.update(id, style === "text" ? text : { text });
const updated = (await client.get(id)).memory;
const history = (await client.history(id)).length;
const users = results(await client.users()).map((user) => user.name);
const deleted = (await client.delete(id)).message;
const all = (await client.deleteAll(owner)).message;
const texts = (memories) => memories.map((one) => one.memory);
const report = { found: texts(found), listed: texts(listed), byUser: byUser.map(texts), updated, history, users, deleted, all };
console.log(JSON.stringify(report));
process.exit(0); // telemetry of earlier versions keeps the program open
