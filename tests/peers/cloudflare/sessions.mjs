// node sessions.mjs [--server think|think24|think32]
//
// Databases that a real server has filled with its own summaries (only `think` still does that),
// repaired with `midstream sessions` and put back: the server must list the same messages, once,
// and go on from there. A later server is given the files of `think` first, and moves them to tables of its own.
// Runs a server of its own: PEERS_STATE and PEERS_PORT_OFFSET keep it apart from the others.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { backDoor, turns } from "./cells/compaction.mjs";
import { REPOSITORY, WORK } from "./rig/places.mjs";
import { sleep } from "./rig/process.mjs";
import { writeResults } from "./rig/results.mjs";
import { conversationUrl, startServer, stateDir, stopServer } from "./rig/servers.mjs";
import { Stage } from "./rig/stage.mjs";

const { values: options } = parseArgs({
  options: { server: { type: "string", default: "think" }, out: { type: "string" } },
});
const { server } = options;
const FAULTY = "think";
const CLIENTS = { think: "c19-r2", think24: "c24-r4", think32: "c32-r4" };
const COMMAND = (process.env.MIDSTREAM || "uv run midstream").split(" ");
const MIDSTREAM_MS = 60_000;
const QUIET_MS = 1500;
const SIDES = ["", "-wal", "-shm"];

const folder = path.join(WORK, "sessions", `${server}-${process.pid}`);
const failures = [];
const note = {};
const expect = (holds, what) => holds || failures.push(what);

/** How each conversation is summarised: the second has a record whose range ends at a filed row. */
const conversations = [
  { key: "plain", pointed: false },
  { key: "pointed", pointed: true },
].map((kind) => ({ ...kind, name: `sessions-${kind.key}-${process.pid}`, file: null, before: null }));

try {
  await play();
} catch (error) {
  failures.push(error.stack); // jsdom's pages swallow what nobody catches
}
const row = { cell: server, server, failures, note };
writeResults(`sessions-${server}`, [row], options.out);
console.log(`${server.padEnd(8)} ${failures.length ? "BAD" : "ok "} ${JSON.stringify(note)}`);
for (const failure of failures) console.log(`    ${failure}`);
fs.rmSync(folder, { recursive: true, force: true });
process.exit(failures.length ? 1 : 0);

async function play() {
  await withServer(FAULTY, "direct", async (stage) => {
    for (const one of conversations) await pollute(stage, one);
    if (server === FAULTY) for (const one of conversations) await checkWhileLive(one);
    else for (const one of conversations) copyAway(one);
  });
  if (server !== FAULTY) await moveOn();
  for (const one of conversations) repairCopy(one);
  await withServer(server, "gateway", async (stage) => {
    for (const one of conversations) await goOn(stage, one);
  });
}

/** The files are put where the later server keeps its own, which then finds them to be old. */
async function moveOn() {
  const list = (one) => fetch(conversationUrl(server, one.name, "get-messages")).then((answer) => answer.json());
  await withServer(server, "direct", async () => {
    for (const one of conversations) {
      await list(one);
      one.file = fileOf(server, one.name);
    }
  });
  for (const one of conversations) putBack(one);
  await withServer(server, "direct", async () => {
    for (const one of conversations) {
      await list(one); // what it lists now is not the measure: 0.32 hides a filed row, and loses the range that ends there
      await checkWhileLive(one);
    }
  });
}

async function withServer(name, via, act) {
  const running = await startServer(name);
  if (!running) throw new Error(`another ${name} listens already`);
  const stage = new Stage({ server: name, client: CLIENTS[name], via });
  try {
    await stage.open();
    await act(stage);
  } finally {
    await stage.close();
    await stopServer(running);
  }
}

async function openTab(stage, name) {
  const { scene } = stage.prepare({ key: `sessions-${name}` }, name);
  return scene.openTab();
}

/** The page uploads what it is shown, the server stores it: the fault, without the proxy. */
async function pollute(stage, one) {
  const door = backDoor(FAULTY, one.name);
  const tab = await openTab(stage, one.name);
  await turns(tab, 1, 3);
  await door.summarise("from=1&to=2&s=FIRST");
  await turns(tab, 4, 5);
  const ids = (await door.history()).map((m) => m.id);
  const filed = ids.find((id, at) => ids.indexOf(id) < at);
  expect(filed?.startsWith("compaction_"), `${one.key}: no summary was filed: ${ids}`);
  if (one.pointed) await door.summarise(`fromId=${ids[0]}&toId=${filed}&s=SECOND`);
  one.before = (await door.history()).map((m) => m.id);
  await tab.close();
  one.file = fileOf(FAULTY, one.name);
}

async function checkWhileLive(one) {
  await sleep(QUIET_MS); // what the server itself still writes
  const before = momentsOf(one.file);
  const found = midstream("check", one.file, "--json");
  expect(found.code === 1, `${one.key}: check of the live file: ${found.code} ${found.err}`);
  expect(found.code === 1 && JSON.parse(found.out).rows === 1, `${one.key}: check found ${found.out}`);
  const refused = midstream("repair", one.file, "--write");
  expect(refused.code === 2 && /in use/.test(refused.err), `${one.key}: a live file: ${refused.code} ${refused.out}${refused.err}`);
  expect(momentsOf(one.file) === before, `${one.key}: the live file was touched`);
  copyAway(one);
  note[one.key] = { copied: SIDES.filter((side) => fs.existsSync(copyOf(one) + side)) };
}

function repairCopy(one) {
  const copy = copyOf(one);
  const dry = midstream("repair", copy, "--json");
  expect(dry.code === 1, `${one.key}: dry run: ${dry.code} ${dry.err}`);
  const done = midstream("repair", copy, "--write", "--json");
  expect(done.code === 0, `${one.key}: repair: ${done.code} ${done.err}`);
  const again = midstream("repair", copy, "--write");
  expect(again.code === 0 && again.out.endsWith(": clean\n"), `${one.key}: again: ${again.code} ${again.out}`);
  const backups = fs.readdirSync(path.dirname(copy)).filter((name) => name.startsWith(`${path.basename(copy)}.backup-`));
  expect(backups.length === 1, `${one.key}: ${backups.length} backups`);
  if (done.code === 0) Object.assign(note[one.key], JSON.parse(done.out).sessions[0], { session: undefined });
  putBack(one);
}

function copyAway(one) {
  for (const side of SIDES) {
    fs.rmSync(copyOf(one) + side, { force: true });
    if (fs.existsSync(one.file + side)) fs.copyFileSync(one.file + side, copyOf(one) + side);
  }
}

function putBack(one) {
  for (const side of SIDES) {
    fs.rmSync(one.file + side, { force: true });
    if (side !== "-shm" && fs.existsSync(copyOf(one) + side)) fs.copyFileSync(copyOf(one) + side, one.file + side);
  }
}

/** The server has the repaired file; the proxy keeps it from being filled again. */
async function goOn(stage, one) {
  const door = backDoor(server, one.name);
  const wanted = one.before.filter((id, at) => one.before.indexOf(id) === at);
  const listed = (await door.json("get-messages")).map((m) => m.id);
  expect(String(listed) === String(wanted), `${one.key}: lists ${listed}, expected ${wanted}`);
  const tab = await openTab(stage, one.name);
  await turns(tab, 6, 7);
  const grown = (await door.history()).map((m) => m.id);
  expect(String(grown.slice(0, wanted.length)) === String(wanted), `${one.key}: after two turns ${grown}`);
  expect(grown.length === wanted.length + 4, `${one.key}: two turns made ${grown.length - wanted.length} messages`);
  await compactAgain(door, one, grown);
  await turns(tab, 8, 8);
  await tab.close();
  await sleep(300);
  const found = midstream("check", one.file);
  expect(found.code === 0, `${one.key}: afterwards: ${found.code} ${found.out}${found.err}`);
}

async function compactAgain(door, one, grown) {
  const from = grown.findIndex((id) => !id.startsWith("compaction_"));
  await door.summarise(`fromId=${grown[grown.length - 4]}&toId=${grown.at(-1)}&s=NEXT`);
  const ids = (await door.history()).map((m) => m.id);
  expect(from >= 0 && ids.length === grown.length - 3, `${one.key}: the next compaction: ${ids}`);
  expect(ids.at(-1).startsWith("compaction_"), `${one.key}: the next compaction is not shown: ${ids}`);
  expect(new Set(ids).size === ids.length, `${one.key}: an id twice: ${ids}`);
}

function midstream(verb, ...rest) {
  const [program, ...first] = COMMAND;
  const done = spawnSync(program, [...first, "sessions", verb, ...rest], {
    cwd: REPOSITORY, encoding: "utf8", timeout: MIDSTREAM_MS,
  });
  return { code: done.status, out: done.stdout, err: done.stderr };
}

function copyOf(one) {
  fs.mkdirSync(folder, { recursive: true });
  return path.join(folder, `${one.key}.sqlite`);
}

function momentsOf(file) {
  const beside = fs.readdirSync(path.dirname(file)).filter((name) => name.startsWith(path.basename(file)));
  return beside.map((name) => `${name} ${fs.statSync(path.join(path.dirname(file), name)).mtimeMs}`).join();
}

/** An object's file is named by a hash, and holds the conversation's name in clear. */
function fileOf(server, conversation) {
  for (const kind of fs.readdirSync(stateDir(server))) {
    const place = path.join(stateDir(server), kind);
    for (const name of fs.readdirSync(place).filter((file) => file.endsWith(".sqlite"))) {
      if (name.startsWith("metadata")) continue;
      const sides = SIDES.map((side) => path.join(place, name + side)).filter((file) => fs.existsSync(file));
      if (sides.some((file) => fs.readFileSync(file).includes(conversation))) return path.join(place, name);
    }
  }
  throw new Error(`no stored conversation ${conversation}`);
}
