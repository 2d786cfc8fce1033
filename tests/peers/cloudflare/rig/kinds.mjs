// One word for what became of a row, the worst of its tabs; the order is from good to bad.
import { doubled } from "../clients/watch.mjs";

export const KINDS = [
  ["exact", "every tab ends as the server's own history, and never showed anything else on the way"],
  ["extra bubble", "the right parts, spread over more bubbles than the server has messages"],
  ["hole on the way", "right in the end, but some render lacked words in the middle"],
  ["twice on the way", "right in the end, but some render showed text twice"],
  ["twice", "in the end text stands twice"],
  ["lost", "in the end text is missing"],
  ["other", "the page gives up, or ends otherwise"],
];
const ORDER = KINDS.map(([name]) => name);

export function kindOf(row) {
  const kinds = row.tabs.map((tab) => kindOfTab(tab, row));
  if (row.fail && !kinds.some((kind) => ["twice", "lost"].includes(kind))) kinds.push("other");
  return ORDER[Math.max(...kinds.map((kind) => ORDER.indexOf(kind)))];
}

function kindOfTab(tab, row) {
  const shown = tab.got.join("|");
  if (!["EXACT", "parts="].includes(tab.verdict)) {
    if (doubled(shown)) return "twice";
    return row.want && words(tab.got) < words(row.want) ? "lost" : "other";
  }
  if (tab.error) return "other";
  if (tab.dup || tab.dupIds) return "twice on the way";
  if (tab.gap) return "hole on the way";
  return row.wantBubbles !== undefined && tab.bubbles > row.wantBubbles ? "extra bubble" : "exact";
}

const words = (parts) => parts.join(" ").split(/\s+/).length;

const TOOL_IS_DUE = ["1d", "5", "7", "8", "8b"]; // a tool runs for the first time while the row is watched

export const toolsAgain = (row) => row.laterFires > (TOOL_IS_DUE.includes(row.cell) ? 1 : 0);
