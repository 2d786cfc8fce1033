// Server-made summaries ("compaction_...") come back in uploads: what the server then stores.
// Each of these judges itself: `problems` must be empty with the proxy, and `faulty` true without it.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { HERE, serverDir } from "../rig/places.mjs";
import { sleep, until } from "../rig/process.mjs";
import { conversationUrl } from "../rig/servers.mjs";

const SUMMARY = /^compaction_/;
const summaries = (ids) => ids.filter((id) => SUMMARY.test(id));
const repeated = (list) => list.filter((item, i) => list.indexOf(item) !== i);

/** What a test may do at the server's own doors, behind the proxy's back. */
export function backDoor(server, conversation) {
  const get = async (page) => (await fetch(conversationUrl(server, conversation, page), { signal: AbortSignal.timeout(8000) })).text();
  const json = async (page) => JSON.parse(await get(page));
  const state = path.join(serverDir(server), ".wrangler/state/v3/do");
  return {
    json,
    compact: async () => { const made = await json("rig-compact"); await get("rig-broadcast"); await sleep(300); return made; },
    summarise: async (query) => { await json(`rig-addcomp?${query}`); await get("rig-broadcast"); await sleep(300); },
    history: async () => json("rig-history"),
    lastPrompt: async () => (await json("rig-prompts")).at(-1).filter((m) => m.role !== "system")
      .map((m) => m.content.map((part) => part.text).join("")),
    rows: () => JSON.parse(execFileSync("python3", [path.join(HERE, "rig/rows.py"), state, conversation], { encoding: "utf8" })),
  };
}

const polluted = (door) => summaries(door.rows().assistant_messages.map((row) => row.id)).length;

async function turn(tab, words) {
  tab.say(words);
  const answered = () => tab.messages.at(-1)?.role === "assistant" && tab.messages.at(-2)?.parts[0]?.text === words;
  await until(answered, 10_000, `the answer to ${words}`);
  await idle(tab);
}

async function idle(tab) {
  await sleep(300);
  await until(() => tab.status === "ready" && !tab.isServerStreaming && !tab.isStreaming, 15_000, "the page to be idle");
  await sleep(400);
}

export async function turns(tab, from, to) {
  for (let i = from; i <= to; i++) await turn(tab, `turn ${i}`);
}

async function regenerate(tab) {
  await tab.regenerate();
  await sleep(600);
  await idle(tab);
}

const shownIds = (tab) => tab.messages.map((m) => m.id);

async function control({ openTab, server, conversation }) {
  const door = backDoor(server, conversation);
  const tab = await openTab();
  await turns(tab, 1, 3);
  await door.compact();
  await turns(tab, 4, 5);
  const found = polluted(door);
  const prompt = await door.lastPrompt();
  const problems = [];
  if (found) problems.push(`${found} polluted rows`);
  if (repeated(summaries(shownIds(tab))).length) problems.push("the page shows a summary twice");
  if (repeated(prompt.filter((text) => /^SUMMARY/.test(text))).length) problems.push("the model reads a summary twice");
  return { problems, faulty: found > 0, note: { polluted: found, prompt } };
}

async function sevenTurns({ openTab, server, conversation }) {
  const door = backDoor(server, conversation);
  const a = await openTab();
  const b = await openTab();
  await turns(a, 1, 3);
  await door.compact();
  await turns(a, 4, 5);
  await door.compact();
  await turns(a, 6, 6);
  await turn(b, "turn 7");
  const found = polluted(door);
  const prompt = await door.lastPrompt();
  const problems = [];
  if (found) problems.push(`${found} polluted rows`);
  for (const [name, tab] of Object.entries({ a, b })) {
    if (repeated(shownIds(tab)).length) problems.push(`tab ${name} shows an id twice`);
    if (!summaries(shownIds(tab)).length) problems.push(`tab ${name} shows no summary`);
    if (tab.error) problems.push(`tab ${name}: ${tab.error}`);
  }
  if (repeated(prompt.filter((text) => /^(SUMMARY|turn)/.test(text))).length) problems.push("the model reads something twice");
  return { problems, faulty: found > 0, note: { polluted: found, prompt } };
}

/** The uploaded list ends in a user message: the new answer must hang at the old one's parent. */
async function regenerateLast({ openTab, server, conversation }) {
  const door = backDoor(server, conversation);
  const tab = await openTab();
  await turns(tab, 1, 3);
  await door.compact();
  const before = (await door.history()).map((m) => m.id);
  await regenerate(tab);
  const after = (await door.history()).map((m) => m.id);
  const found = polluted(door);
  const rows = door.rows().assistant_messages;
  const parent = (id) => rows.find((row) => row.id === id)?.parent_id;
  const problems = [];
  if (found) problems.push(`${found} polluted rows`);
  if (parent(after.at(-1)) !== parent(before.at(-1))) problems.push("the new answer hangs elsewhere than the old one");
  if (after.length !== before.length) problems.push(`history had ${before.length} messages, has ${after.length}`);
  return { problems, faulty: found > 0, note: { polluted: found, before, after } };
}

/** The uploaded list ends in the summary itself: stripping alone would lose the range. */
async function regenerateAfterSummary({ openTab, server, conversation }) {
  const door = backDoor(server, conversation);
  const tab = await openTab();
  await turns(tab, 1, 3);
  await door.summarise("from=1&to=4&s=SUMX");
  await regenerate(tab);
  const history = await door.history();
  const found = polluted(door);
  const kinds = history.map((m) => (SUMMARY.test(m.id) ? "summary" : m.role));
  const problems = [];
  if (found) problems.push(`${found} polluted rows`);
  if (kinds.join() !== "user,summary,assistant") problems.push(`history is ${kinds}`);
  return { problems, faulty: found > 0, note: { polluted: found, kinds } };
}

/** A session that was polluted before the proxy came: nothing new may be added to it. */
async function alreadyPolluted({ openTab, openTabDirect, server, conversation }) {
  const door = backDoor(server, conversation);
  const direct = await openTabDirect();
  await turns(direct, 1, 3);
  await door.compact();
  await turns(direct, 4, 4);
  await direct.close();
  direct.gone = true;
  const before = polluted(door);
  const tab = await openTab();
  await turns(tab, 5, 6);
  await door.compact();
  await turns(tab, 7, 7);
  const after = polluted(door);
  const problems = after > before ? [`${after - before} more polluted rows`] : [];
  const twice = repeated(summaries(shownIds(tab)));
  return { problems, faulty: after > before, note: { before, after, shownTwice: twice.length } };
}

/** A filed row which a later compaction does not cover stays in the history as a stale summary. */
async function stale({ openTab, server, conversation }) {
  const door = backDoor(server, conversation);
  const tab = await openTab();
  await turns(tab, 1, 3);
  const first = await door.compact();
  await turns(tab, 4, 4);
  const lastOfRange = (await door.history())[3].id;
  await sleep(1100); // so that creation times differ
  await door.summarise(`fromId=${first.fromMessageId}&toId=${lastOfRange}&s=SUMMARY-2`);
  const ids = summaries((await door.history()).map((m) => m.id));
  const problems = ids.length === 1 ? [] : [`${ids.length} summaries in the history`];
  return { problems, faulty: ids.length > 1, note: { summaries: ids.length } };
}

/** AIChatAgent makes no summaries: there an id like that is the application's own message. */
async function notOurs({ openTab, server, conversation }) {
  const door = backDoor(server, conversation);
  const mine = { id: "compaction_mine", role: "assistant", parts: [{ type: "text", text: "written by the page" }] };
  const stored = () => door.rows().cf_ai_chat_agent_messages.map((row) => row.id).includes(mine.id);
  const problems = [];
  const tab = await openTab();
  await turns(tab, 1, 2);
  await tab.replaceMessages([...tab.messages, mine]);
  await sleep(400);
  if (!stored()) problems.push("lost when the page set it");
  await turns(tab, 3, 3);
  if (!stored()) problems.push("lost with the next turn");
  await tab.close();
  tab.gone = true;
  const again = await openTab(); // now the id has come from the server, in its history
  await turns(again, 4, 4);
  if (!stored()) problems.push("lost after a reload");
  if (!shownIds(again).includes(mine.id)) problems.push("not shown after a reload");
  return { problems, faulty: false };
}

const think = { server: "think", client: "c19-r2" };
const aichat = { server: "aichat", client: "c17-r2" };

export const compactions = [
  { key: "E0", ...think, what: "five turns, one compaction", run: control },
  { key: "E1", ...think, what: "seven turns, two tabs, two compactions", run: sevenTurns },
  { key: "E2", ...think, what: "regenerate, the upload ends in a user message", run: regenerateLast },
  { key: "E4", ...think, what: "a session polluted before", run: alreadyPolluted },
  { key: "E5", ...think, what: "regenerate, the upload ends in the summary", run: regenerateAfterSummary },
  { key: "E6", ...think, what: "a second compaction that stops before a filed row", run: stale },
  { key: "aichat", ...aichat, what: "an application's own compaction_ id on AIChatAgent", run: notOurs },
];
