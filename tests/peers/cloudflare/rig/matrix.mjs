// Many set-ups, each in a process of its own (React under jsdom has one `window` a process).
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { HERE } from "./places.mjs";
import { startServer, stopServer } from "./servers.mjs";

const LIMIT_MS = 20 * 60_000;

/** The set-ups of matrix.txt, server after server, so that few servers run at once. */
export function setups(wanted) {
  const seen = new Map();
  for (const line of fs.readFileSync(path.join(HERE, "matrix.txt"), "utf8").split("\n")) {
    if (!line.trim() || line.startsWith("#")) continue;
    const [set, server, client, vias, latencies, declare, page, cells] = line.split(/\s+/);
    if (wanted !== "full" && set !== wanted) continue;
    for (const via of vias.split(",")) {
      for (const latency of latencies.split(",")) {
        const setup = { server, client, via, latency, declare, page };
        const key = Object.values(setup).join(" ");
        if (seen.get(key)?.cells !== "all") seen.set(key, { ...setup, cells });
      }
    }
  }
  return [...seen.values()].sort((a, b) => a.server.localeCompare(b.server));
}

export async function runMatrix(set, parallel) {
  const queue = setups(set);
  const servers = new Map(); // name -> { started, left }
  for (const { server } of queue) {
    servers.set(server, { left: (servers.get(server)?.left || 0) + 1 });
  }
  let bad = 0;
  const worker = async () => {
    for (let setup = queue.shift(); setup; setup = queue.shift()) {
      const server = servers.get(setup.server);
      server.started ??= startServer(setup.server);
      await server.started;
      bad += (await runSetup(setup)) ? 1 : 0;
      if (--server.left === 0) await stopServer(await server.started);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  console.log(bad ? `${bad} set-ups with rows worse than expected` : "every row as expected or better");
  return bad ? 1 : 0;
}

function runSetup({ server, client, via, latency, declare, page, cells }) {
  const more = declare === "-" ? [] : ["--declare", declare];
  const child = spawn(process.execPath, [
    path.join(HERE, "cells.mjs"), "--server", server, "--client", client, "--via", via,
    "--latency", latency, "--page", page, "--cell", cells, "--retries", "1", ...more,
  ], { stdio: "inherit", timeout: LIMIT_MS });
  return new Promise((resolve) => child.on("exit", (code) => resolve(code ?? 1)));
}
