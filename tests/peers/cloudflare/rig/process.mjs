// Child processes in a group of their own, so that ending one ends exactly what it started.
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function until(test, ms, what) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await test();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${ms} ms for ${what}`);
    await sleep(5);
  }
}

const groups = new Set(); // process groups that end with this process at the latest
process.on("exit", () => groups.forEach((pid) => signalGroup(pid, "SIGKILL")));
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit(1));

/** `outlives`: the child goes on when this process ends; whoever reads its pid ends it. */
export function start(command, args, { cwd, env, log, outlives = false }) {
  fs.mkdirSync(path.dirname(log), { recursive: true });
  const out = fs.openSync(log, "w");
  const child = spawn(command, args, {
    cwd, env: { ...process.env, ...env }, detached: true, stdio: ["ignore", out, out],
  });
  fs.closeSync(out);
  if (outlives) child.unref();
  else groups.add(child.pid);
  const running = { pid: child.pid, log, exited: false };
  child.on("error", (error) => Object.assign(running, { exited: true, error }));
  child.on("exit", (code) => Object.assign(running, { exited: true, code }));
  return running;
}

/** Makes a child that was spawned elsewhere (detached) end with this process too. */
export function own(pid) {
  groups.add(pid);
  return { pid };
}

/** Ends a process group: politely first, by force after `graceMs`. */
export async function stop(running, { graceMs = 4000, signal = "SIGTERM" } = {}) {
  if (!running || running.stopped) return;
  running.stopped = true;
  signalGroup(running.pid, signal);
  const end = Date.now() + graceMs;
  while (groupLives(running.pid) && Date.now() < end) await sleep(20);
  signalGroup(running.pid, "SIGKILL");
  groups.delete(running.pid);
}

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // already gone
  }
}

function groupLives(pid) {
  try {
    process.kill(-pid, 0);
    return true;
  } catch {
    return false;
  }
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

export function listens(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    socket.on("connect", () => resolve(true) || socket.destroy());
    socket.on("error", () => resolve(false));
  });
}
