// node table.mjs [--after 2026-01-31T12:00Z]     results.md, from the rows in the results folder
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { HERE, REPOSITORY, WORK } from "./rig/places.mjs";
import { KINDS, kindOf, toolsAgain } from "./rig/kinds.mjs";
import { clients, servers } from "./rig/trees.mjs";

const { values: options } = parseArgs({ options: { after: { type: "string", default: "2000-01-01" } } });

const SITUATIONS = [
  ["lost in the middle of an answer that goes on after a tool", ["1a", "1b", "1c", "1d"]],
  ["lost in the middle of a first or second answer", ["2", "2b"]],
  ["lost three times in one answer", ["5"]],
  ["the page refreshes its token: a new socket under a new query", ["3"]],
  ["two tabs, one of them loses its connection", ["4", "4b"]],
  ["the answer ends while the page is away", ["6", "6b", "10b"]],
  ["the page is reloaded", ["8"]],
  ["reloaded, and the page asks for no history", ["8b"]],
  ["the stop button after a loss", ["9"]],
  ["a page that never resumes (`resume: false`)", ["10"]],
  ["lost just when the answer goes on after a tool", ["14", "14b"]],
  ["a replay of 280 deltas", ["16"]],
  ["a replay of 80 parts", ["17"]],
  ["a page that renders only every 300 ms", ["13"]],
  ["a tool answered while its own step still streams, then lost", ["12"]],
  ["the person sends on while the answer streams, then lost", ["15"]],
  ["the proxy itself is killed and a new one takes over", ["restart"]],
  ["nothing is lost: a tool call and what follows", ["7"]],
];
const FAMILIES = [
  ["ai < 6.0.90", /-r1$/],
  ["ai 6.0.90 - 6.0.249", /-r2$/],
  ["ai >= 6.0.250, ai 7", /-(r[34]|v7)$/],
];
const NONE = "-"; // not played
const WAYS = [["direct", "without midstream"], ["gateway", "gateway"], ["mitm", "mitmproxy"]];

const files = fs.readdirSync(path.join(WORK, "results")).map((name) => path.join(WORK, "results", name));
const rows = files.flatMap((file) => JSON.parse(fs.readFileSync(file, "utf8")))
  .filter((row) => row.at >= options.after && !row.note?.gaveUpBefore);
const chats = rows.filter((row) => !row.problems);
const times = rows.map((row) => row.at).sort();

const undeclared = (row) => row.declare === null && row.page === "jsdom";
const out = [
  "# Real peers: what was seen",
  "",
  ...intro(),
  "## Pages in jsdom, no client profile declared", "", ...table(chats.filter(undeclared)),
  "## Pages in Chromium", "", ...table(chats.filter((row) => row.page === "chromium")),
  "## With the client profile declared", "", ...declared(),
  "## Stored summaries (Think)", "", ...compactions(),
  ...fs.readFileSync(path.join(HERE, "results-notes.md"), "utf8").trimEnd().split("\n"),
  "",
  "## Versions", "", ...versions(),
];
fs.writeFileSync(path.join(HERE, "results.md"), out.join("\n") + "\n");

function intro() {
  const again = chats.filter((row) => row.earlier?.length).length;
  const day = (time) => time.slice(0, 16).replace("T", " ");
  return [
    `${rows.length} rows, each a real page, a real server and one situation, played from ${day(times[0])} to`,
    `${day(times.at(-1))} UTC; ${again} of them were worse than \`expected.txt\` or \`control.txt\` allow at first and were played`,
    "again, as pytest does it; what stands here is the last try. Written by `node table.mjs`.",
    "",
    "Each field: how many rows, and what became of them. *Dup* is the highest number of renders in one row in",
    `which something stood twice. ${KINDS.map(([name, what]) => `*${name}*: ${what}`).join("; ")}.`,
    "",
  ];
}

/** One line a situation; one a client family where midstream does not make all of them exact. */
function table(chosen) {
  const lines = [];
  for (const [words, keys] of SITUATIONS) {
    const here = chosen.filter((row) => keys.includes(row.cell));
    const proxied = here.filter((row) => row.via !== "direct");
    const families = FAMILIES.filter(([, clients]) => proxied.some((row) => clients.test(row.client)));
    const rest = here.filter((row) => families.some(([, clients]) => clients.test(row.client)));
    if (!families.length) continue;
    const isSame = proxied.every((row) => kindOf(row) === "exact" && !toolsAgain(row));
    const groups = isSame ? [["all", /./]] : families;
    for (const [name, clients] of groups) lines.push(line([words, name], rest.filter((row) => clients.test(row.client))));
  }
  if (!lines.length) return ["Not played.", ""];
  return [head(["the connection is ...", "clients"]), ...lines, ""];
}

function line(first, here) {
  const cells = WAYS.map(([via]) => cell(here.filter((row) => row.via === via)));
  return `| ${[...first, ...cells].join(" | ")} |`;
}

function declared() {
  const chosen = chats.filter((row) => row.declare !== null);
  const lines = [];
  for (const [words, keys] of SITUATIONS) {
    for (const profile of ["r1", "r2", "r3"]) {
      const here = chosen.filter((row) => row.declare === profile && keys.includes(row.cell) && row.via !== "direct");
      const same = (row) => here.some((other) => other.client === row.client && other.server === row.server && other.latency === row.latency);
      const plain = chats.filter((row) => row.via === "direct" && row.page === "jsdom" && keys.includes(row.cell) && same(row));
      if (here.length) lines.push(line([words, profile], [...plain, ...here]));
    }
  }
  if (!lines.length) return ["Not played.", ""];
  return [head(["the connection is ...", "declared"]), ...lines, ""];
}

function cell(here) {
  if (!here.length) return NONE;
  const kinds = here.map(kindOf);
  const counted = KINDS.map(([name]) => [name, kinds.filter((kind) => kind === name).length]).filter(([, n]) => n);
  const most = Math.max(...here.flatMap((row) => row.tabs.map((tab) => tab.dup)));
  const tools = here.filter(toolsAgain).length;
  const parts = counted.map(([name, n]) => (counted.length === 1 && name === "exact" ? `exact (${n})` : `${n} ${name}`));
  if (most) parts.push(`dup ${most}`);
  if (tools) parts.push(`tool run again in ${tools}`);
  return parts.join(", ");
}

function head(first) {
  const names = [...first, ...WAYS.map(([, name]) => name)];
  return `| ${names.join(" | ")} |\n|${"---|".repeat(names.length)}`;
}

function compactions() {
  const found = rows.filter((row) => row.problems);
  const keys = [...new Set(found.map((row) => row.cell))];
  if (!keys.length) return ["Not played.", ""];
  const lines = keys.map((key) => {
    const texts = WAYS.map(([via]) => {
      const row = found.find((one) => one.cell === key && one.via === via);
      if (!row) return NONE;
      return row.problems.length ? row.problems.join("; ") : "as it should be";
    });
    return `| ${found.find((row) => row.cell === key).what} | ${texts.join(" | ")} |`;
  });
  return [head(["what happens"]), ...lines, ""];
}

function versions() {
  const pins = (tree) => Object.entries(tree.dependencies)
    .filter(([name]) => /^agents$|^ai$|ai-chat|think|@ai-sdk/.test(name)).map(([name, version]) => `${name} ${version}`).join(", ");
  const used = (key) => [...new Set(rows.map((row) => row[key]))].sort();
  const project = fs.readFileSync(path.join(REPOSITORY, "pyproject.toml"), "utf8").match(/^version = "(.*)"/m);
  return [
    ...used("server").map((name) => `- server ${name}: ${pins(servers[name])}`),
    ...used("client").map((name) => `- client ${name}: ${pins(clients[name].server ? servers[clients[name].server] : clients[name])}`),
    `- midstream ${project?.[1] ?? "of this tree"}; every other pin is in \`rig/trees.mjs\``,
  ];
}
