// The page is away while things end, or comes back and does not take the stream up again.
import { sleep, until } from "../rig/process.mjs";
import { flat } from "../rig/verdict.mjs";
import { SENT, WITHHELD, say, shows } from "./steps.mjs";

const endsAway = (question, at) => async ({ cables, openTab }) => {
  const tab = await openTab({ socket: { minReconnectionDelay: 1200 } });
  say(tab, question);
  await shows(tab, at);
  await tab.watch.reset();
  cables.client.drop();
  await sleep(2600);
};

export default {
  "6": { ...SENT, what: "a continuation ends while the page is away", run: endsAway("#tool n=12 ms=45", "c3 ") },
  "6b": { ...SENT, what: "a first turn ends while the page is away", run: endsAway("#slow n=12 ms=45", "s3 ") },
  "10": {
    ...SENT, what: "a page that never resumes (resume: false) keeps what it shows",
    async run({ cables, openTab }) {
      const tab = await openTab({ chat: { resume: false } });
      say(tab, "#tool n=40 ms=45");
      await shows(tab, "c6 ");
      await tab.watch.reset();
      const had = flat(tab.messages);
      cables.client.drop();
      await sleep(1100);
      const now = flat(tab.messages);
      const lost = had.some((part) => !now.some((other) => other.startsWith(part.slice(0, -3))));
      return { note: { during: lost ? "LOST" : "kept", last: (now.at(-1) || "").slice(-8) }, settleMs: 1600 };
    },
  },
  "10b": {
    ...SENT, what: "a second drop right after the reset, then the turn ends away",
    async run({ cables, openTab }) {
      const tab = await openTab({ socket: { minReconnectionDelay: 500 } });
      say(tab, "#tool n=26 ms=45");
      await shows(tab, "c7 ");
      await tab.watch.reset();
      const second = dropAfterOffer(cables.client);
      cables.client.drop();
      await until(() => second.done, 2500, "the offer").catch(() => {});
      await sleep(3600);
      return { note: { droppedTwice: second.done } };
    },
  },
};

/** Once a later socket has got its offer it receives nothing more, and soon it is cut. */
function dropAfterOffer(cable) {
  const state = { done: false };
  const seen = cable.onFrame;
  cable.onFrame = (event) => {
    seen(event);
    const offered = event.way === "down" && event.frame?.type === "cf_agent_stream_resuming";
    if (!offered || state.done || event.wire.n === 1) return;
    state.done = true;
    // the offer itself, and what stands before it, still arrives
    setImmediate(() => { event.wire.deaf = true; });
    setTimeout(() => event.wire.client.terminate(), 40);
  };
  return state;
}
