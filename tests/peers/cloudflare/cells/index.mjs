// Every situation, by its number in the tables of the documents.
import away from "./away.mjs";
import drops from "./drops.mjs";
import page from "./page.mjs";
import tabs from "./tabs.mjs";

const all = { ...drops, ...tabs, ...away, ...page };
const ORDER =
  "1a 1b 1c 1d 2 2b 3 4 4b 5 6 6b 7 8 8b 9 10 10b 12 13 14 14b 15 16 17 restart restart2".split(" ");

export const cells = ORDER.map((key) => ({ key, ...all[key] }));

/** "1a,7" | "all" */
export function chosen(list) {
  if (!list || list === "all") return cells;
  const keys = list.split(",");
  const unknown = keys.filter((key) => !ORDER.includes(key));
  if (unknown.length) throw new Error(`no cell ${unknown}; there are ${ORDER.join(" ")}`);
  return cells.filter((cell) => keys.includes(cell.key));
}
