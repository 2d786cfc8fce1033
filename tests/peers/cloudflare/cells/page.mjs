// No drop, or one that the person causes: reload, stop, sending on.
import { sleep } from "../rig/process.mjs";
import { flat } from "../rig/verdict.mjs";
import { SENT, TOOL, WITHHELD, say, shows } from "./steps.mjs";

const reload = (chat) => async ({ openTab }) => {
  const before = await openTab();
  say(before, "#tool n=44 ms=45"); // a real browser needs most of a second to load
  await shows(before, "c6 ");
  await before.close();
  before.gone = true;
  await sleep(120);
  const after = await openTab({ chat });
  await shows(after, "c43 ", 6000);
};

export default {
  "7": {
    ...WITHHELD, what: "a tool continuation on one socket, no drop",
    async run({ openTab }) {
      const tab = await openTab();
      say(tab, TOOL);
      await shows(tab, "c17 ", 6000);
    },
  },
  "8": { ...WITHHELD, what: "the page is reloaded", run: reload({}) },
  "8b": {
    ...WITHHELD, what: "the page is reloaded and asks for no history",
    run: reload({ getInitialMessages: null }),
  },
  "9": {
    ...SENT, what: "the stop button after a drop",
    async run({ cables, openTab, history }) {
      const tab = await openTab();
      say(tab, "#tool n=50 ms=45");
      await shows(tab, "c5 ");
      await tab.watch.reset();
      cables.client.drop();
      await shows(tab, "c12 ", 6000);
      await tab.stopAnswer();
      await sleep(1400);
      const last = flat(await history()).at(-1) || "";
      const note = {
        cancels: cables.server.counts.up.cf_agent_chat_request_cancel || 0,
        stopped: !last.includes("c49"),
        serverLast: last.slice(-8), status: tab.status, isStreaming: tab.isStreaming,
      };
      return { note };
    },
  },
  "15": {
    ...SENT, what: "the person sends on while a continuation streams, then a drop",
    async run({ cables, openTab }) {
      const tab = await openTab();
      say(tab, "#tool n=26 ms=45");
      await shows(tab, "c4 ");
      say(tab, "queued");
      await sleep(150);
      await tab.watch.reset();
      cables.client.drop();
      await shows(tab, "mock.", 6000).catch(() => {});
      return { settleMs: 900 };
    },
  },
};
