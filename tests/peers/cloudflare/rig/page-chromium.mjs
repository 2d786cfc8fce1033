// Pages in headless Chromium, driven over its debugging socket. Each page mirrors its state here at
// every render, so the situations read a tab in the same way as under jsdom.
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { bundle } from "./places.mjs";
import { own, stop } from "./process.mjs";
import { requireTool } from "./tools.mjs";

const { WebSocket } = requireTool("ws");
const START_MS = 20_000;
const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--remote-debugging-port=0", "about:blank",
];

// Runs in the page. `mirror` is a binding: calling it with a string raises an event here.
const PAGE_SCRIPT = (options) => `
  const { mount } = await import("/__rig/client.mjs");
  const seen = (tab) => mirror(JSON.stringify({
    messages: tab.messages, status: tab.status, error: tab.error, keys: tab.keys,
    toolFires: tab.toolFires, watch: tab.watch,
    isServerStreaming: tab.isServerStreaming, isStreaming: tab.isStreaming,
  }));
  window.tab = mount({
    element: document.getElementById("root"), onRender: seen, ...${JSON.stringify(options)},
  });
`;

export class ChromiumPages {
  async open(client) {
    this.errors = [];
    this.sessions = new Map();
    this.files = {
      "/__rig/page": { type: "text/html", body: '<!doctype html><link rel="icon" href="data:,"><div id=root></div>' },
      "/__rig/client.mjs": { type: "text/javascript", body: fs.readFileSync(bundle(client, "browser")) },
    };
    this.profile = fs.mkdtempSync(path.join(os.tmpdir(), "peers-chromium-"));
    const child = spawn("chromium", [...FLAGS.slice(0, -1), `--user-data-dir=${this.profile}`, FLAGS.at(-1)], {
      detached: true, stdio: ["ignore", "ignore", "pipe"],
    });
    this.running = own(child.pid);
    this.socket = new WebSocket(await debuggingUrl(child));
    await new Promise((resolve) => this.socket.on("open", resolve));
    this.calls = new Map();
    this.socket.on("message", (data) => this.hear(JSON.parse(data)));
    return this;
  }

  takeErrors() {
    return this.errors.splice(0);
  }

  async close() {
    this.socket.close();
    await stop(this.running);
    fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  async mount(options) {
    const { targetId } = await this.call("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.call("Target.attachToTarget", { targetId, flatten: true });
    const tab = { messages: [], status: null, error: null, keys: [], toolFires: [], watch: { reset: () => {} } };
    this.sessions.set(sessionId, tab);
    for (const domain of ["Runtime", "Page"]) await this.call(`${domain}.enable`, {}, sessionId);
    await this.call("Runtime.addBinding", { name: "mirror" }, sessionId);
    const loaded = new Promise((resolve) => { tab.loaded = resolve; });
    await this.call("Page.navigate", { url: `http://${options.host}/__rig/page` }, sessionId);
    await loaded;
    const run = (script) => this.run(sessionId, script);
    await run(PAGE_SCRIPT(options));
    Object.assign(tab, {
      connected: () => run("return window.tab.connected()"),
      say: (text) => run(`window.tab.say(${JSON.stringify(text)})`), // not awaited in the page: it lasts the whole turn
      stopAnswer: () => run("return window.tab.stopAnswer()"),
      regenerate: () => run("window.tab.regenerate()"),
      resetWatch: () => run("window.tab.watch.reset()"),
      close: () => this.call("Target.closeTarget", { targetId }),
    });
    return tab;
  }

  async run(sessionId, script) {
    const { result, exceptionDetails } = await this.call("Runtime.evaluate", {
      expression: `(async () => { ${script} })()`, awaitPromise: true, returnByValue: true,
    }, sessionId);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  }

  call(method, params = {}, sessionId) {
    this.lastCall = (this.lastCall || 0) + 1;
    this.socket.send(JSON.stringify({ id: this.lastCall, method, params, sessionId }));
    return new Promise((resolve, reject) => this.calls.set(this.lastCall, { resolve, reject }));
  }

  hear({ id, result, error, method, params, sessionId }) {
    if (id) {
      const call = this.calls.get(id);
      this.calls.delete(id);
      if (error) call?.reject(new Error(error.message));
      else call?.resolve(result);
      return;
    }
    const tab = this.sessions.get(sessionId);
    if (method === "Page.loadEventFired") tab?.loaded();
    if (method === "Runtime.bindingCalled" && tab) mirrorInto(tab, JSON.parse(params.payload));
    if (method === "Runtime.consoleAPICalled" && params.type === "error") {
      this.errors.push(params.args.map((a) => a.value ?? a.description ?? "").join(" ").slice(0, 200));
    }
    if (method === "Runtime.exceptionThrown") {
      this.errors.push(`UNCAUGHT ${params.exceptionDetails.exception?.description?.slice(0, 200)}`);
    }
  }
}

function mirrorInto(tab, state) {
  Object.assign(tab, state, { watch: { ...state.watch, reset: () => tab.resetWatch() } });
}

function debuggingUrl(child) {
  return new Promise((resolve, reject) => {
    let heard = "";
    child.on("error", reject);
    child.stderr.on("data", (data) => {
      heard += data;
      const found = heard.match(/DevTools listening on (ws:\S+)/);
      if (found) resolve(found[1]);
    });
    setTimeout(() => reject(new Error(`Chromium did not start: ${heard.slice(-300)}`)), START_MS).unref();
  });
}
