// node rig/servers.mjs start|stop name...      the real servers, under wrangler and workerd
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { HERE, WORK, serverDir, toolsDir } from "./places.mjs";
import { listens, start, stop, until } from "./process.mjs";
import { servers } from "./trees.mjs";

const PORTS = { aichat: 8811, think: 8812, aichat24: 8821, think24: 8822, aichat32: 8831, think32: 8832 };
const START_MS = 90_000;
const STATE = process.env.PEERS_STATE || ".wrangler/state"; // below the server's tree

export const portOf = (name) => PORTS[name] + Number(process.env.PEERS_PORT_OFFSET || 0);
export const stateDir = (name) => path.resolve(serverDir(name), STATE, "v3/do");
export const address = (name) => `127.0.0.1:${portOf(name)}`;
export const agentOf = (name) => servers[name].agent;
export const conversationUrl = (name, conversation, page) =>
  `http://${address(name)}/agents/${agentOf(name)}/${conversation}/${page}`;

/** Starts the server, unless one listens already; what it returns goes to stopServer. */
export async function startServer(name, { outlives = false } = {}) {
  if (await listens(portOf(name))) return null;
  writeWorker(name);
  const running = start(process.execPath, wranglerArguments(name), {
    cwd: serverDir(name),
    outlives,
    log: path.join(WORK, "logs", `${name}.log`),
    env: {
      WRANGLER_SEND_METRICS: "false",
      CLOUDFLARE_CF_FETCH_ENABLED: "false",
      NO_UPDATE_NOTIFIER: "1",
      CI: "1",
      WRANGLER_LOG_PATH: path.join(serverDir(name), "wrangler.log"),
      XDG_CONFIG_HOME: path.join(serverDir(name), ".config"),
      MINIFLARE_WORKERD_PATH: path.join(toolsDir, "node_modules/workerd-new/bin/workerd"),
    },
  });
  try {
    await until(() => running.exited || answers(name), START_MS, `${name} to answer`);
    if (running.exited) throw new Error(`${name} ended at once: see ${running.log}`);
  } catch (error) {
    await stop(running);
    throw error;
  }
  return running;
}

export const stopServer = (running) => stop(running, { graceMs: 6000 });

async function answers(name) {
  try {
    const response = await fetch(conversationUrl(name, "warm", "get-messages"), { signal: AbortSignal.timeout(3000) });
    return response.ok;
  } catch {
    return false;
  }
}

function wranglerArguments(name) {
  return [
    path.join(toolsDir, "node_modules/wrangler/bin/wrangler.js"), "dev", "--local",
    "--ip", "127.0.0.1", "--port", String(portOf(name)), "--inspector-port", "0",
    "--persist-to", STATE, "--show-interactive-dev-session=false", "--log-level", "log",
  ];
}

/** The worker must lie beside its node_modules, so its sources are copied into the work folder. */
function writeWorker(name) {
  const { source, className } = servers[name];
  const target = path.join(serverDir(name), "src");
  fs.mkdirSync(target, { recursive: true });
  for (const file of fs.readdirSync(path.join(HERE, "servers"))) {
    fs.copyFileSync(path.join(HERE, "servers", file), path.join(target, file));
  }
  const config = {
    name: `rig-${name}`,
    main: `src/${source}`,
    compatibility_date: "2026-03-01",
    compatibility_flags: ["nodejs_compat"],
    send_metrics: false,
    durable_objects: { bindings: [{ name: className, class_name: className }] },
    migrations: [{ tag: "v1", new_sqlite_classes: [className] }],
  };
  fs.writeFileSync(path.join(serverDir(name), "wrangler.jsonc"), JSON.stringify(config, null, 2));
}

async function main([verb, ...names]) {
  const unknown = names.filter((name) => !servers[name]);
  if (!["start", "stop"].includes(verb) || unknown.length || !names.length) {
    throw new Error(`start|stop, then any of: ${Object.keys(servers).join(" ")}`);
  }
  fs.mkdirSync(path.join(WORK, "run"), { recursive: true });
  await Promise.all(names.map(verb === "start" ? startAndNote : stopNoted));
  process.exit(0);
}

const pidFile = (name) => path.join(WORK, "run", `${name}.pid`);

async function startAndNote(name) {
  const running = await startServer(name, { outlives: true });
  if (running) fs.writeFileSync(pidFile(name), String(running.pid));
  console.log(`${name} ${address(name)}${running ? "" : " (was already up)"}`);
}

async function stopNoted(name) {
  if (!fs.existsSync(pidFile(name))) return;
  await stopServer({ pid: Number(fs.readFileSync(pidFile(name), "utf8")) });
  fs.rmSync(pidFile(name));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
