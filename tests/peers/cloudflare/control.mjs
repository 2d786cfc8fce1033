// node control.mjs     folds the direct rows in the results folder into control.txt, keeping the worst seen
import fs from "node:fs";
import path from "node:path";
import { summary } from "./rig/expect.mjs";
import { HERE, WORK } from "./rig/places.mjs";

const RANK = ["EXACT", "text=", "WRONG", "FAIL"];
const file = path.join(HERE, "control.txt");
const table = new Map();

for (const line of fs.existsSync(file) ? fs.readFileSync(file, "utf8").split("\n") : []) {
  if (!line || line.startsWith("#")) continue;
  const [server, client, latency, cell, ...facts] = line.split(/\s+/);
  note([server, client, latency, cell].join(" "), Object.fromEntries(facts.map((fact) => fact.split("="))));
}
for (const name of fs.readdirSync(path.join(WORK, "results"))) {
  for (const row of JSON.parse(fs.readFileSync(path.join(WORK, "results", name), "utf8"))) {
    if (row.via !== "direct" || row.page === "chromium") continue;
    note([row.server, row.client, row.latency, row.cell].join(" "), summary(row));
  }
}

const rows = [...table].map(([key, facts]) => {
  const [server, client, latency, cell] = key.split(" ");
  const shown = Object.entries(facts).map(([name, value]) => `${name}=${value}`).join(" ");
  return `${server.padEnd(9)}${client.padEnd(8)}${latency.padEnd(4)}${cell.padEnd(9)}${shown}`;
});
const head = [
  "# The same rows without the proxy, the worst seen; written by control.mjs.",
  "# server  client  ms  cell     final, most duplicate renders, most renders with a hole, tool runs after the drop, bubbles",
];
fs.writeFileSync(file, [...head, ...rows.sort()].join("\n") + "\n");

function note(key, facts) {
  const old = table.get(key);
  const worse = (name) => Math.max(Number(old?.[name] ?? 0), Number(facts[name]));
  table.set(key, {
    final: RANK[Math.max(RANK.indexOf(old?.final ?? "EXACT"), RANK.indexOf(facts.final))],
    ...Object.fromEntries(["dup", "gap", "tools", "bubbles"].map((name) => [name, worse(name)])),
  });
}
