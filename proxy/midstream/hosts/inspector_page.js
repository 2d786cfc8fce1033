// The inspector page: exchanges on the left, the frames of one on the right, one frame below.
// The server sends rows as events; a frame in full is fetched when it is opened.
"use strict";

import { List, cell, put } from "./list.js";
import { bytes, element, showDetail } from "./detail.js";

const MAX_EXCHANGES = 500;
const MAX_RECORDS = 50_000;
const FIND_MS = 250;
const LISTEN_MS = 80;
const WIRE = { sse: "event", ws_text: "text", ws_binary: "binary", body: "body" };

const $ = id => document.getElementById(id);
const exchanges = new Map();
let chosen = 0;          // the number of the exchange shown
let records = [];        // its rows, oldest first
let lastSeq = 0;         // up to where they go
let held = [];           // news that came while paused
let heldRows = 0;
let isPaused = false;
let isRaw = false;
let open = null;         // the record that is open, in full
let source = null;       // the stream of events
let run = "";            // which run of the process the numbers are of
let found = new Set();   // records whose whole payload holds the text searched
let pane = "exchanges";  // which list the keys move in

// --- the two lists --------------------------------------------------------------------------------

const exchangeList = new List($("exchange-list"), 46, {
  name: "exchange",
  make: row => ["number", "path", "outcome", "facts", "badge"].forEach(name => cell(row, name)),
  fill(row, item) {
    put(row.number, `#${item.exchange}`);
    put(row.path, item.transport === "ws" ? item.path : `${item.method} ${item.path}`);
    row.path.title = item.path;
    put(row.outcome, outcome(item));
    row.outcome.className = `outcome ${item.outcome || "open"}`;
    const [clientIn, serverIn] = item.in, [clientOut, serverOut] = item.out;
    put(row.facts, [
      `\u2191${flow(clientIn, clientOut)} \u2193${flow(serverIn, serverOut)}`,
      age(item), item.transport, item.route, item.dialect,
    ].filter(Boolean).join(" \u00b7 "));
    row.facts.title = "frames from the client and from the server (what left, where it is another number)";
    put(row.badge, item.mended ? `${item.mended} mended` : "");
  },
  onPick(at) { pane = "exchanges"; pickExchange(at); },
});

const recordList = new List($("record-list"), 25, {
  name: "record",
  make(row) {
    ["at", "side", "kind", "size"].forEach(name => cell(row, name));
    const what = cell(row, "what");
    cell(row, "words", what);
    cell(row, "text", what);
    cell(row, "done");
  },
  fill(row, item) {
    put(row.at, `+${(item.at_ms / 1000).toFixed(3)}`);
    put(row.side, item.side === "client" ? "client \u2192" : item.side === "server" ? "\u2190 server" : "");
    put(row.kind, WIRE[item.kind] ?? item.record);
    put(row.size, item.kind ? bytes(item.size) : "");
    put(row.words, item.words);
    put(row.text, item.text);
    put(row.done, done(item));
    row.className = `row record ${item.rules.length ? "mended" : item.skips.length ? "alone" : item.kind ? "" : "head"}`;
  },
  onPick(at) { pane = "records"; pickRecord(at); openRecord(); },
});
recordList.follow = true;
recordList.onFollow = isAtEnd => setFollow(isAtEnd);

function done(item) {
  const rules = item.rules.map(([addon, rule]) => `${addon}: ${rule}`);
  if (rules.length) return `${item.became || "mended"} \u00b7 ${[...new Set(rules)].join(", ")}`;
  if (item.skips.length) return `left alone \u00b7 ${[...new Set(item.skips.map(([, reason]) => reason))].join(", ")}`;
  return item.became;
}

function outcome(item) {
  if (!item.outcome) return "open";
  const status = item.status && item.status !== 101 ? `${item.status} ` : "";
  return status + item.outcome;
}

function flow(came, left) {
  return came === left ? `${came}` : `${came}\u2192${left}`;
}

function age(item) {
  const ms = (item.outcome ? item.seen_ms : Date.now()) - item.opened_ms;
  if (ms < 10_000) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000);
  return s < 120 ? `${s} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
}

// --- filters --------------------------------------------------------------------------------------

/** Return a test for a row; what is no `word:value` is one text to search. */
function parse(input) {
  const tests = [], words = [];
  for (const token of input.trim().split(/\s+/)) {
    const at = /^(-?)(is|from|kind|route):(\S+)$/i.exec(token);
    if (at) tests.push([at[1] === "-", at[2].toLowerCase(), at[3].toLowerCase()]);
    else if (token) words.push(token);
  }
  const text = words.join(" ").toLowerCase();
  const matches = row =>
    tests.every(([not, key, value]) => not !== holds(row, key, value)) &&
    (!text || row.hay.includes(text) || found.has(row.seq));
  return { text, matches };
}

function holds(row, key, value) {
  if (key === "from") return row.side === value;
  if (key === "kind") return [row.kind, row.record, row.transport, row.dialect, WIRE[row.kind]].includes(value);
  if (key === "route") return row.route === value;
  if (value === "mended") return Boolean(row.mended || row.rules?.length);
  if (value === "alone") return Boolean(row.declined || row.skips?.length);
  if (value === "open") return row.outcome === "";
  return false;
}

let exchangeFilter = parse(""), recordFilter = parse("");

function filterExchanges() {
  exchangeFilter = parse($("exchange-filter").value);
  drawExchanges();
}

function drawExchanges() {
  exchangeList.items = [...exchanges.values()].filter(exchangeFilter.matches).sort((a, b) => b.exchange - a.exchange);
  exchangeList.at = exchangeList.items.findIndex(item => item.exchange === chosen);
  exchangeList.draw();
  put($("exchange-count"), `${exchangeList.items.length} of ${exchanges.size}`);
}

function filterRecords() {
  const only = $("only-mended").getAttribute("aria-pressed") === "true" ? " is:mended" : "";
  recordFilter = parse($("record-filter").value + only);
  const seq = recordList.items[recordList.at]?.seq;
  recordList.items = records.filter(recordFilter.matches);
  recordList.choose(recordList.items.findIndex(item => item.seq === seq));
  countRecords();
}

function countRecords() {
  const shown = recordList.items.length;
  put($("record-count"), shown === records.length ? `${shown} records` : `${shown} of ${records.length}`);
}

let findTimer = 0;
function search() {
  found = new Set();
  filterRecords();
  clearTimeout(findTimer);
  const { text } = recordFilter, exchange = chosen;
  if (text.length < 2 || !exchange) return;
  findTimer = setTimeout(async () => {
    const numbers = await ask(`inspector/find?exchange=${exchange}&text=${encodeURIComponent(text)}`);
    if (!numbers || exchange !== chosen || text !== recordFilter.text) return;
    found = new Set(numbers);
    filterRecords();
  }, FIND_MS);
}

// --- what the server tells ------------------------------------------------------------------------

function listen() {
  source?.close();
  source = new EventSource(`inspector/events?exchange=${chosen}`);
  const on = (name, take) => source.addEventListener(name, event => take(JSON.parse(event.data)));
  on("hello", hello);
  on("exchanges", rows => news(() => takeExchanges(rows), 0));
  on("records", batch => news(() => takeRecords(batch), batch.rows.length));
  on("gone", number => gap(`exchange #${number} is no longer in memory`));
  on("refused", text => state("off", text));
  source.onerror = async () => {
    state("off", "not connected");
    if (source.readyState !== EventSource.CLOSED) return;  // it comes back by itself
    const current = source;
    setTimeout(async () => { if (current === source && await begin()) listen(); }, 2000);
  };
}

function hello(now) {
  if (run && run !== now.run) {  // another process: its numbers mean other exchanges
    exchanges.clear();
    choose(0);
  }
  run = now.run;
  state(isPaused ? "paused" : "live", isPaused ? "paused" : now.draining ? "draining" : "live");
}

function news(take, rows) {
  if (!isPaused) return take();
  heldRows += rows;
  held.push(take);
  if (held.length > MAX_RECORDS) held.shift();
  put($("pause"), heldRows ? `go on (${heldRows} waiting)` : "go on");
}

function takeExchanges(rows) {
  for (const row of rows) {
    row.hay = `#${row.exchange} ${row.method} ${row.path} ${row.route} ${row.transport} ${row.dialect} ${outcome(row)}`.toLowerCase();
    exchanges.set(row.exchange, row);
  }
  if (exchanges.size > MAX_EXCHANGES) {
    const oldest = [...exchanges.keys()].sort((a, b) => a - b).slice(0, exchanges.size - MAX_EXCHANGES);
    oldest.filter(number => number !== chosen).forEach(number => exchanges.delete(number));
  }
  drawExchanges();
  drawTitle();
}

function takeRecords(batch) {
  if (batch.exchange !== chosen) return;
  if (batch.lost) gap(`${batch.lost} records were no longer in memory when this page came to them`);
  for (const row of batch.rows) {
    if (row.seq <= lastSeq) continue;
    lastSeq = row.seq;
    row.hay = `${row.words} ${row.text} ${done(row)}`.toLowerCase();
    records.push(row);
    if (recordFilter.matches(row)) recordList.items.push(row);
  }
  if (records.length > MAX_RECORDS) {
    records = records.slice(-MAX_RECORDS * 0.9);
    gap(`this page keeps the last ${MAX_RECORDS} records`);
    filterRecords();
  }
  countRecords();
  recordList.draw();
}

function gap(text) {
  put($("gap"), text);
  $("gap").hidden = !text;
}

function state(is, text) {
  $("state").dataset.is = is;
  put($("state"), text);
}

/** Fetch JSON; null, and a word in the state, where there is none. */
async function ask(url, options) {
  try {
    const answer = await fetch(url, { cache: "no-store", ...options });
    if (answer.ok) return answer.status === 204 ? true : await answer.json();
    if (answer.status === 401) showLogin();
    else gap((await answer.text()).trim());
  } catch {
    state("off", "not connected");
  }
  return null;
}

// --- choosing -------------------------------------------------------------------------------------

let listening = 0;

function pickExchange(at) {
  const item = exchangeList.items[Math.min(Math.max(at, 0), exchangeList.items.length - 1)];
  if (!item) return;
  if (item.exchange !== chosen) {
    choose(item.exchange);
    clearTimeout(listening);
    listening = setTimeout(listen, LISTEN_MS);  // keys may run through many
  }
  exchangeList.choose(exchangeList.items.indexOf(item));
  show("records");
}

function choose(number) {
  chosen = number;
  records = [];
  lastSeq = 0;
  held = [];
  found = new Set();
  recordList.items = [];
  recordList.at = -1;
  setFollow(true);
  gap("");
  closeRecord();
  countRecords();
  recordList.draw();
  drawTitle();
  history.replaceState(null, "", number ? `#${number}` : location.pathname);
}

function drawTitle() {
  const item = exchanges.get(chosen);
  put($("title"), item ? `#${chosen} ${item.method} ${item.path}` : chosen ? `#${chosen}` : "no exchange chosen");
  $("exports").hidden = !chosen;
  for (const link of $("exports").children) link.href = `inspector/${link.dataset.form}?exchange=${chosen}`;
}

function pickRecord(at) {
  const last = recordList.items.length - 1;
  const to = Math.min(Math.max(at, 0), last);
  if (to < last) setFollow(false);
  recordList.choose(to);
  if (open) openRecord();
}

let opening = null;
async function openRecord() {
  const item = recordList.items[recordList.at];
  if (!item) return;
  opening?.abort();
  opening = new AbortController();
  const record = await ask(`inspector/record?exchange=${chosen}&seq=${item.seq}`, { signal: opening.signal });
  if (!record || recordList.items[recordList.at]?.seq !== record.seq) return;
  const wasOpen = open !== null;
  open = record;
  $("detail").hidden = false;
  showDetail($("detail"), record, isRaw);
  if (!wasOpen) requestAnimationFrame(() => recordList.choose(recordList.at));
}

function closeRecord() {
  open = null;
  $("detail").hidden = true;
}

function show(view) {
  pane = view;
  $("main").dataset.view = view;
  for (const name of ["exchange", "record"]) $(`${name}-list`).classList.toggle("current", view.startsWith(name));
}

function setFollow(is) {
  if (recordList.follow !== is) { recordList.follow = is; recordList.draw(); }
  $("follow").setAttribute("aria-pressed", is);
}

function setPaused(is) {
  isPaused = is;
  $("pause").setAttribute("aria-pressed", is);
  put($("pause"), is ? "go on" : "pause");
  state(is ? "paused" : "live", is ? "paused" : "live");
  if (is) return;
  const waiting = held;
  held = [];
  heldRows = 0;
  waiting.forEach(take => take());
}

function clear() {
  records = [];
  recordList.items = [];
  recordList.at = -1;
  gap("");
  closeRecord();
  countRecords();
  recordList.draw();
}

function toNextMended(step) {
  const { items } = recordList;
  for (let at = recordList.at + step; at >= 0 && at < items.length; at += step)
    if (items[at].rules.length) { pane = "records"; return pickRecord(at); }
}

function toggleMended() {
  const button = $("only-mended");
  button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
  filterRecords();
}

// --- keys -----------------------------------------------------------------------------------------

const list = () => (pane === "exchanges" ? exchangeList : recordList);
const move = to => (pane === "exchanges" ? pickExchangeStay(to) : pickRecord(to));

function pickExchangeStay(at) {
  pickExchange(at);
  show(matchMedia("(max-width: 760px)").matches ? "records" : "exchanges");
}

function toRecords() {
  show("records");
  if (recordList.at < 0 && recordList.items.length) pickRecord(recordList.follow ? recordList.items.length - 1 : 0);
}

const KEYS = {
  j: () => move(list().at + 1), ArrowDown: () => move(list().at + 1),
  k: () => move(list().at - 1), ArrowUp: () => move(list().at - 1),
  PageDown: () => move(list().at + 20), PageUp: () => move(list().at - 20),
  g: () => move(0), Home: () => move(0),
  G: () => move(list().items.length - 1), End: () => move(list().items.length - 1),
  h: () => show("exchanges"), ArrowLeft: () => show("exchanges"),
  l: toRecords, ArrowRight: toRecords,
  Enter: () => { if (pane === "exchanges") toRecords(); else openRecord(); },
  Escape: closeRecord,
  n: () => toNextMended(1), N: () => toNextMended(-1),
  m: toggleMended, c: clear,
  " ": () => setPaused(!isPaused),
  f: () => setFollow(!recordList.follow),
  r: () => { isRaw = !isRaw; if (open) showDetail($("detail"), open, isRaw); },
  d: () => { if (chosen) $("exports").firstElementChild?.click(); },
  "/": () => (pane === "exchanges" ? $("exchange-filter") : $("record-filter")).focus(),
  "?": () => $("help").showModal(),
};

document.addEventListener("keydown", event => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open || $("main").hidden) return;
  if (target.matches("input")) {
    if (key === "Escape" || key === "Enter") { target.blur(); event.preventDefault(); }
    return;
  }
  if (target.matches("button, a") && (key === " " || key === "Enter")) return;
  const act = KEYS[key];
  if (!act) return;
  event.preventDefault();
  act();
});

const clicks = {
  pause: () => setPaused(!isPaused), follow: () => setFollow(!recordList.follow), clear,
  "only-mended": toggleMended, back: () => show("exchanges"), "help-open": () => $("help").showModal(),
  logout: async () => { await ask("inspector/logout", { method: "POST" }); location.reload(); },
  write: async () => {
    const wrote = await ask("capture/write", { method: "POST" });
    if (wrote) gap(`${wrote.records} records written`);
  },
};
for (const [id, act] of Object.entries(clicks)) $(id).addEventListener("click", act);
$("exchange-filter").addEventListener("input", filterExchanges);
$("record-filter").addEventListener("input", search);
$("exchange-list").addEventListener("focus", () => { pane = "exchanges"; });
$("record-list").addEventListener("focus", () => { pane = "records"; });
setInterval(() => { if (!isPaused && !document.hidden) exchangeList.draw(); }, 1000);

// --- begin ----------------------------------------------------------------------------------------

function showLogin() {
  source?.close();
  $("main").hidden = true;
  $("login").hidden = false;
  state("off", "not signed in");
  $("token").focus();
}

$("login").addEventListener("submit", async event => {
  event.preventDefault();
  const answer = await fetch("inspector/login", { method: "POST", body: new URLSearchParams({ token: $("token").value }) });
  put($("login-says"), answer.ok ? "" : (await answer.text()).trim());
  if (!answer.ok) return $("token").select();
  $("token").value = "";
  if (await begin()) listen();
});

/** Ask what the process is, and set the page up for it; false where it does not let in. */
async function begin() {
  const now = await ask("inspector/state");
  if (!now) return $("login").hidden;  // not there: try on; not let in: wait for the token
  $("login").hidden = true;
  $("main").hidden = false;
  $("logout").hidden = !now.signed_in;
  $("write").hidden = !now.can_write;
  $("exports").replaceChildren(...now.exports.map(form => {
    const link = element("a", form === "har" ? "HAR" : form, "button");
    link.dataset.form = form;
    link.title = `download as ${form}`;
    link.setAttribute("download", "");
    return link;
  }));
  drawTitle();
  return true;
}

show("exchanges");
choose(Number(/^#(\d{1,15})$/.exec(location.hash)?.[1] ?? 0));
if (await begin()) listen();
