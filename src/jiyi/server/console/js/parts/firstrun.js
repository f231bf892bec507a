// The first run: an empty store offers a sample conversation, a first memory, an import, and settings for agents.
import { api } from "../api.js";
import { fill, h } from "../dom.js";
import { tell } from "../events.js";
import { language, t } from "../i18n.js";
import { icon } from "../icons.js";
import { address, go } from "../router.js";
import { session } from "../shell.js";
import { kept } from "../store.js";
import { segments } from "./dialogs.js";
import { note as say, noteProblem } from "./notes.js";

const SAMPLES = {
  en: ["My name is Mei. I live in Shanghai and work at Anker.", "I am a vegetarian, and I am allergic to peanuts.",
    "My manager is Tom Baker.", "I moved to Shenzhen last week, and I now work at DJI.", "Please keep your answers short."],
  zh: ["我叫小梅，住在上海，在安克工作。", "我吃素，对花生过敏。", "我的经理是王强。", "我上周搬到了深圳，现在在大疆工作。", "回答请尽量简短。"],
};
const QUESTION = { en: "What should I cook for dinner?", zh: "晚饭做什么好？" };

export function firstRun(copy) {
  const first = h("textarea", { class: "textarea short", maxlength: 100_000, placeholder: t("first_placeholder"), "aria-label": t("add_text"), dir: "auto" });
  const may = session.may("write");
  return h("div", { class: "stack first-run" },
    h("div", { class: "state slim" }, icon("memories"), h("h2", null, t("search_nothing_stored")), h("p", null, t("first_text"))),
    may && h("form", { class: "card padded stack", onsubmit: (event) => { event.preventDefault(); remember(first); } },
      h("h3", null, t("first_remember")), first,
      h("div", { class: "line" }, h("button", { class: "button first", type: "submit", data: { action: "remember" } }, t("first_remember_button")))),
    may && h("div", { class: "cards" },
      h("section", { class: "card padded stack" }, h("h3", null, t("first_sample")), h("p", { class: "small soft" }, t("first_sample_text")),
        h("div", null, h("button", { class: "button", type: "button", data: { action: "sample" }, onclick: sample }, t("first_sample_button")))),
      h("section", { class: "card padded stack" }, h("h3", null, t("first_import")), h("p", { class: "small soft" }, t("first_import_text")),
        h("div", null, h("a", { class: "button", href: address("import") }, icon("import"), t("nav_import"))))),
    connections(copy));
}

async function remember(input) {
  const text = input.value.trim();
  if (!text) return input.focus();
  try {
    const receipt = await api.add({ messages: [{ role: "user", content: text }], session_id: "console" });
    const facts = receipt.memories.filter((one) => one.memory_type !== "message");
    say(facts.length ? t("add_done") : t("first_kept"));
    tell("memory");
    go("memories", facts.length > 1 ? {} : { open: (facts[0] ?? receipt.memories[0])?.id });
  } catch (error) {
    noteProblem(error);
  }
  return undefined;
}

async function sample(event) {
  event.currentTarget.disabled = true;
  const now = Date.now();
  const lines = SAMPLES[language()];
  try {
    for (const [at, content] of lines.entries()) {
      const timestamp = new Date(now - (lines.length - at) * 30 * 86_400_000).toISOString();
      await api.add({ messages: [{ role: "user", content, timestamp }], session_id: `sample ${at + 1}` });
    }
    say(t("first_sample_done"));
    tell("memory");
    go("ask", { q: QUESTION[language()] });
  } catch (error) {
    noteProblem(error);
  }
}

/** Settings of popular agents, ready to copy. */
function connections(copy) {
  const user = kept.user;
  const mcp = JSON.stringify({ mcpServers: { jiyi: { command: "jiyi", args: ["mcp", "--user", user] } } }, null, 2);
  const texts = {
    "Claude Code": `claude mcp add jiyi -- jiyi mcp --user ${user}`,
    "Claude Desktop": mcp,
    Cursor: mcp,
    "VS Code": JSON.stringify({ servers: { jiyi: { type: "stdio", command: "jiyi", args: ["mcp", "--user", user] } } }, null, 2),
    Codex: `[mcp_servers.jiyi]\ncommand = "jiyi"\nargs = ["mcp", "--user", "${user}"]`,
    Python: `from jiyi.sync import Memory\n\nwith Memory.open("${location.origin}") as memory:\n    memory.add("I like tea", user_id="${user}")\n    print(memory.context("What do I like?", user_id="${user}"))`,
  };
  const files = { "Claude Desktop": "claude_desktop_config.json", Cursor: ".cursor/mcp.json", "VS Code": ".vscode/mcp.json", Codex: "~/.codex/config.toml" };
  const shown = h("div", { class: "stack" });
  const draw = (name) => fill(shown, files[name] ? h("p", { class: "small soft" }, t("first_file"), " ", h("code", null, files[name])) : null,
    h("pre", { class: "block", tabindex: "0", "aria-label": name }, texts[name]),
    h("div", null, h("button", { class: "button compact", type: "button", onclick: () => copy(texts[name]) }, icon("copy"), t("copy"))));
  draw("Claude Code");
  return h("section", { class: "card padded stack" }, h("h3", null, t("first_connect")), h("p", { class: "small soft" }, t("first_connect_text")),
    h("div", { class: "scrolls", tabindex: "0" }, segments(t("first_connect"), "agent", Object.keys(texts).map((name) => [name, name]), "Claude Code", draw)), shown);
}
