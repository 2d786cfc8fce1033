// Result files: one per set-up, rows of cells that were not run again are kept.
import fs from "node:fs";
import path from "node:path";
import { WORK } from "./places.mjs";

/** `out`: another file besides, of this run alone. */
export function writeResults(label, rows, out) {
  if (out) fs.writeFileSync(out, JSON.stringify(rows, null, 1));
  const file = path.join(WORK, "results", `${label}.json`);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const again = new Set(rows.map((row) => row.cell));
  const kept = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")).filter((row) => !again.has(row.cell)) : [];
  fs.writeFileSync(file, JSON.stringify([...kept, ...rows], null, 1));
}
