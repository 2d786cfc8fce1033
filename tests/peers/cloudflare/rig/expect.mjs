// Reads expected.txt and control.txt, and says in which ways a row is worse than they allow.
import fs from "node:fs";
import path from "node:path";
import { HERE } from "./places.mjs";

const RANK = { EXACT: 0, "parts=": 0, "text=": 1, WRONG: 2, FAIL: 3 };
const NOISE = { dup: 15, factor: 1.3 }; // how many duplicate renders there are depends on timing

const lines = (file) =>
  (fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "")
    .split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("#"))
    .map((line) => line.split(/\s+/));

const rules = lines(path.join(HERE, "expected.txt"));
const control = new Map(
  lines(path.join(HERE, "control.txt")).map(([server, client, latency, cell, ...facts]) => [
    [server, client, latency, cell].join(" "), Object.fromEntries(facts.map((fact) => fact.split("="))),
  ]),
);

export const summary = (row) => ({
  final: Object.keys(RANK).find((word) => RANK[word] === worst(row)),
  dup: Math.max(0, ...row.tabs.map((tab) => tab.dup)),
  gap: Math.max(0, ...row.tabs.map((tab) => tab.gap)),
  tools: row.laterFires,
  bubbles: Math.max(0, ...row.tabs.map((tab) => tab.bubbles)),
});

/** A list of complaints, empty if all is well. */
export function failures(row) {
  const rule = rules.find(([cell, where]) => fits(cell, row.cell) && whereFits(where, row));
  if (!rule) return [`expected.txt has no line for ${row.cell}`];
  if (row.note?.gaveUpBefore) return []; // the page broke before anything was cut: this row says nothing
  const words = rule[row.via === "direct" ? 2 : 3].split("+");
  const found = words.flatMap((word) => CHECKS[word](row));
  if (row.via !== "direct" && !words.includes("harm")) found.push(...worseThanControl(row));
  return found;
}

const CHECKS = {
  any: () => [],
  harm: () => [],
  noworse: () => [], // applied to every proxied row
  faulty: (row) => (isFaulty(row) ? [] : ["the fault did not show: is this still the faulty server and client?"]),
  final: (row) => (worst(row) === 0 ? [] : [`final state ${finals(row)}${row.fail ? `: ${row.fail}` : ""}`]),
  exact(row) {
    const found = CHECKS.final(row);
    for (const [i, tab] of row.tabs.entries()) {
      if (tab.dup) found.push(`tab ${i}: ${tab.dup} renders showed text twice: ${tab.dupExample}`);
      if (tab.gap) found.push(`tab ${i}: ${tab.gap} renders had a hole: ${tab.gapExample}`);
      if (tab.dupIds) found.push(`tab ${i}: ${tab.dupIds} renders had one id twice`);
      if (tab.error) found.push(`tab ${i}: ${tab.error}`);
    }
    return found;
  },
  one: (row) => row.tabs.filter((tab) => tab.bubbles !== 1).map((tab) => `${tab.bubbles} assistant bubbles`),
  kept: (row) => (row.note?.during === "kept" ? [] : ["what was on the screen went away"]),
  stopped: (row) => {
    const { cancels, stopped } = row.note || {};
    return cancels === 1 && stopped ? [] : [`cancels ${cancels}, server stopped: ${stopped}`];
  },
  once: (row) => (row.laterFires === 0 ? [] : ["the page ran its tool again"]),
};

function worseThanControl(row) {
  const was = control.get([row.server, row.client, row.latency, row.cell].join(" "));
  if (!was) return [];
  const is = summary(row);
  const found = [];
  if (worst(row) > RANK[was.final]) found.push(`final ${is.final}, unproxied ${was.final}`);
  // a page that never got the text back without the proxy could not show it twice either
  const comparable = was.final !== "FAIL";
  if (comparable && is.dup > Number(was.dup) * NOISE.factor + NOISE.dup) found.push(`${is.dup} duplicate renders, unproxied ${was.dup}`);
  if (is.tools > Number(was.tools)) found.push(`${is.tools} tool runs after the drop, unproxied ${was.tools}`);
  return found;
}

const worst = (row) => (row.fail ? RANK.FAIL : Math.max(...row.tabs.map((tab) => RANK[tab.verdict])));
const finals = (row) => row.tabs.map((tab) => tab.verdict).join(",");
const isFaulty = (row) => worst(row) > 0 || row.tabs.some((tab) => tab.dup > 0);

function whereFits(where, row) {
  if (where === "*") return true;
  return where.split(",").every((term) => {
    const [key, glob] = term.split("=");
    return fits(glob, String(row[key] ?? ""));
  });
}

function fits(glob, text) {
  const pattern = glob.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
  return new RegExp(`^${pattern}$`).test(text);
}
