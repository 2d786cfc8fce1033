// The connection is lost in the middle of an answer and the page comes back while it still runs.
import { sleep, until } from "../rig/process.mjs";
import {
  RICH_FIRST, RICH_TOOL, SENT, TOOL, WITHHELD, dropAt, say, shows,
} from "./steps.mjs";

const oneDrop = (question, at, end, options) => async ({ cables, openTab }) =>
  dropAt(cables, await openTab(options?.tab), question, at, end, options);

export default {
  "1a": { ...WITHHELD, what: "continuation, plain", run: oneDrop(TOOL, "c6 ", "c17 ") },
  "1b": { ...WITHHELD, what: "continuation, rich", run: oneDrop(RICH_TOOL, "c5 ", "c13 ") },
  "1c": {
    ...WITHHELD, what: "continuation, frames lost on the way",
    run: oneDrop(TOOL, "c6 ", "c17 ", { deafMs: 150 }),
  },
  "1d": {
    ...WITHHELD, what: "continuation, frames lost while it reasons",
    run: oneDrop(RICH_TOOL, "r3 ", "c13 ", { deafMs: 150 }),
  },
  "2": { ...WITHHELD, what: "first turn with reasoning", run: oneDrop(RICH_FIRST, "c6 ", "c15 ") },
  "2b": {
    ...WITHHELD, what: "second turn with reasoning",
    async run({ cables, openTab }) {
      const tab = await openTab();
      say(tab, "hi");
      await until(() => tab.messages.length === 2 && tab.status === "ready", 6000, "the first answer");
      await sleep(250);
      await dropAt(cables, tab, RICH_FIRST, "c6 ", "c15 ");
    },
  },
  "3": {
    ...WITHHELD, what: "the query is refreshed: a new socket under a new key, several times",
    async run({ openTab }) {
      const tab = await openTab({ rotatingToken: true, cacheTtl: 900 });
      say(tab, "#tool n=40 ms=45");
      await shows(tab, "c1 ");
      await tab.watch.reset();
      await shows(tab, "c39 ", 9000);
      return { note: { keys: new Set(tab.keys).size } };
    },
  },
  "5": {
    ...WITHHELD, what: "three drops in one rich continuation",
    async run({ cables, openTab }) {
      const tab = await openTab();
      say(tab, "#tool #rich n=30 ms=45");
      for (const [i, words] of ["b3 ", "c5 ", "c16 "].entries()) {
        await shows(tab, words, 9000);
        if (i === 0) await tab.watch.reset();
        cables.client.drop();
      }
      await shows(tab, "c29 ", 6000);
    },
  },
  "12": {
    ...WITHHELD, what: "a client tool answered early in a step that still streams",
    run: oneDrop("#midtool n=18 ms=45", "c6 ", "c17 "),
  },
  "13": {
    ...WITHHELD, what: "a page that renders every 300 ms",
    run: oneDrop("#tool n=24 ms=50", "c6 ", "c23 ", { tab: { throttle: 300 } }),
  },
  "14": {
    ...WITHHELD, what: "dropped before the continuation is offered",
    async run({ cables, openTab, latency }) {
      const tab = await openTab({ socket: { minReconnectionDelay: 150 } });
      say(tab, TOOL);
      await until(() => cables.client.counts.up.cf_agent_tool_result, 8000, "the tool result");
      await sleep(8 + latency.server);
      await tab.watch.reset();
      cables.client.drop();
      await shows(tab, "c17 ", 6500);
    },
  },
  "14b": {
    ...WITHHELD, what: "dropped right after the continuation was offered",
    async run({ cables, openTab }) {
      const tab = await openTab({ socket: { minReconnectionDelay: 400 } });
      say(tab, TOOL);
      await until(() => cables.client.counts.up.cf_agent_stream_resume_ack, 8000, "the page's ACK");
      await sleep(3);
      await tab.watch.reset();
      cables.client.drop();
      await shows(tab, "c17 ", 6500);
    },
  },
  "16": {
    ...WITHHELD, what: "a replay of 280 deltas",
    run: oneDrop("#tool n=330 ms=8", "c280 ", "c329 "),
  },
  "17": {
    ...WITHHELD, what: "a replay of 80 parts",
    run: oneDrop("#tool #many n=18 ms=45", "c4 ", "c17 "),
  },
  restart: {
    ...WITHHELD, what: "the proxy is killed; the page comes back to a new one, which knows nothing",
    run: killProxy,
  },
  restart2: {
    ...SENT, what: "the same, and the list that closes the turn arrives",
    run: killProxy,
  },
};

async function killProxy({ cables, openTab, spareProxy }) {
  const replaceProxy = await spareProxy();
  const tab = await openTab({ socket: { minReconnectionDelay: 300 } });
  return dropAt(cables, tab, "#tool n=60 ms=60", "c8 ", "c59 ", { whileAway: replaceProxy });
}
