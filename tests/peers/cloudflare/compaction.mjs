// node compaction.mjs --via direct|gateway|mitm [--cell E1,E5]
//
// With the proxy no row may be polluted; without it the fault must show. Exit code 1 otherwise.
import { parseArgs } from "node:util";
import { compactions } from "./cells/compaction.mjs";
import { startServer, stopServer } from "./rig/servers.mjs";
import { Stage } from "./rig/stage.mjs";
import { writeResults } from "./rig/results.mjs";

const { values: options } = parseArgs({
  options: {
    via: { type: "string", default: "gateway" },
    cell: { type: "string", default: "all" },
    retries: { type: "string", default: "0" }, // play a cell again that was worse than expected
    out: { type: "string" },
  },
});
const faultsShown = ["E0", "E1", "E2", "E4", "E5", "E6"]; // without the proxy

let bad = 0;
const rows = [];
for (const server of ["think", "aichat"]) {
  const cells = compactions.filter((cell) => cell.server === server && (options.cell === "all" || options.cell.split(",").includes(cell.key)));
  if (cells.length) await play(server, cells);
}
writeResults(`compaction-${options.via}`, rows, options.out);
process.exit(bad ? 1 : 0);

async function play(server, cells) {
  const started = await startServer(server);
  const stage = new Stage({ server, client: cells[0].client, via: options.via });
  try {
    await stage.open();
    for (const cell of cells) {
      let row = await playOnce(stage, cell);
      for (let left = Number(options.retries); row.failures.length && left > 0; left--) row = await playOnce(stage, cell);
      bad += row.failures.length ? 1 : 0;
      rows.push(row);
    }
  } finally {
    await stage.close();
    await stopServer(started);
  }
}

async function playOnce(stage, cell) {
  const row = await stage.play({ closingList: "sent", ...cell });
  row.what = cell.what;
  row.failures = judge(row);
  row.problems ??= [row.fail];
  const result = row.failures.length ? "BAD" : "ok ";
  console.log(`${cell.key.padEnd(7)} ${options.via.padEnd(8)} ${result} ${cell.what}: ${JSON.stringify(row.problems)} ${JSON.stringify(row.note ?? {})}`);
  for (const failure of row.failures) console.log(`    ${failure}`);
  return row;
}

function judge(row) {
  if (row.fail) return [row.fail];
  if (options.via !== "direct") return row.problems;
  if (faultsShown.includes(row.cell) && !row.faulty) return ["the fault did not show without the proxy"];
  return [];
}
