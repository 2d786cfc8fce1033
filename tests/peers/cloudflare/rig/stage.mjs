// page -> cable -> midstream (or nothing) -> cable -> real server: set up once, used by many cells.
import fs from "node:fs";
import path from "node:path";
import { Cable } from "./cable.mjs";
import { ClosingLists } from "./closing-list.mjs";
import { Midstream } from "./midstream.mjs";
import { WORK } from "./places.mjs";
import { sleep, until } from "./process.mjs";
import { address, agentOf, conversationUrl } from "./servers.mjs";
import { flat, verdict } from "./verdict.mjs";

const CELL_MS = 40_000;

export class Stage {
  constructor({ server, client, via, latency = 0, declare = null, page = "jsdom" }) {
    Object.assign(this, { server, client, via, declare, page });
    this.latency = { client: latency, server: Math.round(latency * 0.75) };
    this.label = [server, client, via, latency, declare, page === "jsdom" ? null : page].filter((x) => x !== null).join("-");
  }

  async open() {
    this.pages = await (await pagesOf(this.page)).open(this.client);
    const serverCable = await new Cable({
      to: address(this.server), legs: ["p2u", "u2p"], latency: this.latency.server,
    }).open();
    this.midstream = this.via === "direct" ? null : await this.newMidstream(serverCable, this.label);
    const clientCable = await new Cable({
      to: this.midstream?.address ?? serverCable.host, legs: ["c2p", "p2c"], latency: this.latency.client,
    }).open();
    this.cables = { client: clientCable, server: serverCable };
    return this;
  }

  async newMidstream(serverCable, label) {
    const midstream = new Midstream({ host: this.via, upstream: serverCable.host, declare: this.declare, label });
    await midstream.start();
    return midstream;
  }

  /**
   * Makes ready a proxy that knows nothing; calling the result kills the present one, as a crash does,
   * and lets new connections reach the other. (Its start takes seconds, so it is done beforehand.)
   */
  async spareProxy() {
    if (!this.midstream) return () => {};
    const spare = await this.newMidstream(this.cables.server, `${this.label}-spare`);
    return async () => {
      await this.midstream.stop("SIGKILL");
      this.midstream = spare;
      this.cables.client.to = spare.address;
    };
  }

  async close() {
    await this.pages?.close();
    await this.cables?.client.close();
    await this.midstream?.stop();
    await this.cables?.server.close();
  }

  async play(cell) {
    const conversation = `${cell.key}-${process.pid}-${Date.now().toString(36)}`;
    const { capture, scene } = this.prepare(cell, conversation);
    const row = {
      at: new Date().toISOString(), server: this.server, client: this.client, via: this.via,
      latency: this.latency.client, declare: this.declare, page: this.page, cell: cell.key, capture,
    };
    try {
      const { settleMs = 500, ...more } = (await within(cell.run(scene), CELL_MS)) || {};
      await sleep(settleMs);
      Object.assign(row, more);
    } catch (error) {
      row.fail = error.message;
    }
    const history = await scene.history().catch(() => null);
    row.fail ??= history ? undefined : "the server does not tell its history";
    row.want = history && flat(history);
    row.wantBubbles = history && assistants(history).length;
    row.tabs = scene.tabs.filter((tab) => !tab.gone).map((tab) => judged(tab, row.want));
    row.toolFires = scene.tabs.flatMap((tab) => tab.toolFires).length;
    row.laterFires = scene.tabs.reduce((sum, tab) => sum + (tab.watch.toolFires || 0), 0); // since the drop
    row.consoleErrors = [...new Set(this.pages.takeErrors())];
    for (const tab of scene.tabs) if (!tab.gone) await tab.close();
    await sleep(60);
    this.cables.client.drop();
    return row;
  }

  prepare(cell, conversation) {
    this.pages.takeErrors();
    const capture = path.join(WORK, "captures-of-cells", `${this.label}-${cell.key}.jsonl`);
    fs.mkdirSync(path.dirname(capture), { recursive: true });
    fs.writeFileSync(capture, "");
    const closing = new ClosingLists();
    const withhold = cell.closingList === "withheld" ? (frame, wire) => closing.take(frame, wire) : undefined;
    this.cables.server.reset({
      capture, onFrame: ({ way, frame, wire }) => way === "down" && closing.seeServer(frame, wire),
    });
    this.cables.client.reset({ capture, withhold, pages: this.pages.files });
    const scene = {
      cables: this.cables, latency: this.latency, spareProxy: () => this.spareProxy(),
      server: this.server, conversation, tabs: [],
      history: async () => (await fetch(conversationUrl(this.server, conversation, "get-messages"))).json(),
      openTab: (options) => this.openTab(scene, options),
      openTabDirect: (options) => this.openTab(scene, options, address(this.server)),
    };
    return { capture, scene };
  }

  async openTab(scene, options = {}, host = this.cables.client.host) {
    const tab = await this.pages.mount({
      host, agent: agentOf(this.server), name: scene.conversation, ...options,
    });
    scene.tabs.push(tab);
    await until(() => tab.connected(), 8000, "the page to connect");
    await sleep(200);
    return tab;
  }
}

async function pagesOf(kind) {
  if (kind === "chromium") return new (await import("./page-chromium.mjs")).ChromiumPages();
  return new (await import("./page-jsdom.mjs")).JsdomPages();
}

const assistants = (messages) => messages.filter((m) => m.role === "assistant");

function judged(tab, want) {
  const got = flat(tab.messages);
  // a page in Chromium that never got so far as to render has told nothing
  const { dup = 0, dupExample, gap = 0, gapExample, dupIds, shrinks, flickerMs, minLength, maxBubbles, paths = [] } = tab.watch;
  return {
    verdict: want ? verdict(got, want) : "FAIL",
    dup, gap, dupIds, shrinks, flickerMs, minLength, maxBubbles,
    bubbles: assistants(tab.messages).length, users: tab.messages.filter((m) => m.role === "user").length,
    path: paths.join(">"), status: tab.status, error: tab.error, got, dupExample, gapExample,
  };
}

function within(promise, ms) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not over after ${ms} ms`)), ms).unref();
  });
  return Promise.race([promise, late]);
}
