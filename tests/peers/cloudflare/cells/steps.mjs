// What the situations have in common.
import { until } from "../rig/process.mjs";
import { text } from "../rig/verdict.mjs";

export const WITHHELD = { closingList: "withheld" };
export const SENT = { closingList: "sent" };

export const TOOL = "#tool n=18 ms=45";
export const RICH_TOOL = "#tool #rich n=14 ms=40";
export const RICH_FIRST = "#slow #rich n=16 ms=45";
export const LONGER_TOOL = "#tool n=24 ms=45";

export const shows = (tab, words, ms = 8000) => until(() => text(tab).includes(words), ms, JSON.stringify(words));
/** Not awaited: it ends with the turn. The AI SDK itself may refuse it. */
export const say = (tab, words) => {
  Promise.resolve(tab.say(words)).catch(() => {});
};

/** Ask, wait for `at` on the screen, cut the connection, wait for `end`. */
export async function dropAt(cables, tab, question, at, end, { deafMs = 0, whileAway, endMs = 5000 } = {}) {
  say(tab, question);
  await shows(tab, at);
  if (deafMs) {
    cables.client.goDeaf();
    await new Promise((resolve) => setTimeout(resolve, deafMs));
  }
  if (tab.error) return { note: { gaveUpBefore: true } }; // React, not the connection
  await tab.watch.reset();
  cables.client.drop();
  await whileAway?.();
  await shows(tab, end, endMs);
  return {};
}
