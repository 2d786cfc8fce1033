// node install.mjs [name...]    installs tools, servers and clients (all of them, or those named)
//
// Everything goes into PEERS_DIR (default: .work beside this file), never into the source tree.
// Idempotent: a tree whose package.json is unchanged since its last good install is left alone.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { buildClients } from "./rig/build.mjs";
import { WORK, clientDir, serverDir, toolsDir } from "./rig/places.mjs";
import { clients, servers, tools } from "./rig/trees.mjs";

const BEFORE = "2026-11-30"; // transitive packages as of this day; the direct ones are pinned
const PARALLEL = 2;
const LIMIT_MS = 15 * 60_000;

const wanted = process.argv.slice(2);
const started = Date.now();

const jobs = [{ name: "tools", dir: toolsDir, tree: tools, scripts: true }];
for (const [name, tree] of Object.entries(servers)) {
  if (isWanted(name)) jobs.push({ name, dir: serverDir(name), tree });
}
for (const [name, tree] of Object.entries(clients)) {
  if (!tree.server && isWanted(name)) jobs.push({ name, dir: clientDir(name), tree });
}

const queue = [...jobs];
await Promise.all(Array.from({ length: PARALLEL }, worker));
await buildClients(Object.keys(clients).filter((name) => fs.existsSync(clientDir(name))));
const seconds = Math.round((Date.now() - started) / 1000);
fs.writeFileSync(path.join(WORK, "installed.json"), JSON.stringify({ seconds, jobs: jobs.length }));
console.log(`installed in ${seconds} s into ${WORK}`);

function isWanted(name) {
  if (!wanted.length || wanted.includes(name)) return true;
  return Object.entries(clients).some(([c, t]) => t.server === name && wanted.includes(c));
}

async function worker() {
  for (let job = queue.shift(); job; job = queue.shift()) await install(job);
}

async function install({ name, dir, tree, scripts }) {
  const manifest = JSON.stringify(
    { name: `rig-${name}`, private: true, type: "module", dependencies: tree.dependencies, overrides: tree.overrides },
    null, 1,
  );
  const done = path.join(dir, ".installed");
  if (fs.existsSync(done) && fs.readFileSync(done, "utf8") === manifest) return;
  fs.mkdirSync(dir, { recursive: true });
  fs.writeFileSync(path.join(dir, "package.json"), manifest);
  const began = Date.now();
  await npm(name, dir, scripts);
  fs.writeFileSync(done, manifest);
  console.log(`${name}: ${Math.round((Date.now() - began) / 1000)} s`);
}

function npm(name, dir, scripts) {
  // The peer ranges of these packages contradict each other, hence legacy-peer-deps;
  // nothing but the tools (esbuild) needs an install script.
  const flags = ["--no-audit", "--no-fund", "--no-package-lock", "--prefer-offline", `--before=${BEFORE}`];
  if (!scripts) flags.push("--legacy-peer-deps", "--ignore-scripts");
  const log = fs.openSync(path.join(dir, "install.log"), "w");
  const child = spawn("nice", ["-n", "10", "npm", "install", ...flags], {
    cwd: dir, stdio: ["ignore", log, log], timeout: LIMIT_MS,
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => {
      fs.closeSync(log);
      if (code === 0) return resolve();
      const tail = fs.readFileSync(path.join(dir, "install.log"), "utf8").slice(-1500);
      reject(new Error(`npm install of ${name} failed (${code})\n${tail}`));
    });
  });
}
