// node cells.mjs --client c17-r2 --server aichat --via direct|gateway|mitm [--cell 1a,7] [--latency 40] [--declare r3] [--page chromium]
// node cells.mjs --set ci|full [--parallel 2]      many set-ups, from matrix.txt
//
// Exit code 1 if a row is worse than expected.txt says.
import { parseArgs } from "node:util";
import { chosen } from "./cells/index.mjs";
import { failures } from "./rig/expect.mjs";
import { line } from "./rig/print.mjs";
import { writeResults } from "./rig/results.mjs";
import { startServer, stopServer } from "./rig/servers.mjs";

const { values: options } = parseArgs({
  options: {
    client: { type: "string", default: "c17-r2" },
    server: { type: "string", default: "aichat" },
    via: { type: "string", default: "gateway" },
    cell: { type: "string", default: "all" },
    latency: { type: "string", default: "0" },
    declare: { type: "string" },
    page: { type: "string", default: "jsdom" },
    times: { type: "string", default: "1" }, // play every cell so often
    retries: { type: "string", default: "0" }, // play a cell again that was worse than expected
    out: { type: "string" },
    set: { type: "string" },
    all: { type: "boolean", default: false }, // the same as --set full
    parallel: { type: "string", default: "2" },
  },
});

const EMPTY_TRIES = 3;

if (options.all || options.set) {
  const { runMatrix } = await import("./rig/matrix.mjs");
  process.exit(await runMatrix(options.set || "full", Number(options.parallel)));
}
process.exit(await runOne());

/** A row that says nothing, for the page broke before anything was cut, does not count as a try. */
async function playUntilGood(stage, cell, retries) {
  const earlier = []; // what was worse than expected in the tries before
  for (let empty = 0; ;) {
    const row = await stage.play(cell);
    row.failures = failures(row);
    row.earlier = earlier;
    show(row);
    if (row.note?.gaveUpBefore && ++empty <= EMPTY_TRIES) continue;
    if (!row.failures.length || earlier.length >= retries) return row;
    earlier.push({ failures: row.failures, fail: row.fail });
  }
}

function show(row) {
  console.log(line(row));
  for (const failure of row.failures) console.log(`    WORSE THAN EXPECTED: ${failure}`);
  if (!row.failures.length) return;
  for (const tab of row.tabs) console.log(`    got  ${JSON.stringify(tab.got).slice(0, 420)}`);
  console.log(`    want ${JSON.stringify(row.want)?.slice(0, 420)}`);
}

async function runOne() {
  const { Stage } = await import("./rig/stage.mjs");
  const server = await startServer(options.server);
  const stage = new Stage({ ...options, latency: Number(options.latency), declare: options.declare ?? null });
  const rows = [];
  let bad = 0;
  try {
    await stage.open();
    for (const cell of chosen(options.cell)) {
      for (let i = 0; i < Number(options.times); i++) {
        const row = await playUntilGood(stage, cell, Number(options.retries));
        bad += row.failures.length ? 1 : 0;
        rows.push(row);
      }
    }
  } finally {
    await stage.close();
    await stopServer(server);
    if (rows.length) writeResults(stage.label, rows, options.out);
  }
  return bad ? 1 : 0;
}
