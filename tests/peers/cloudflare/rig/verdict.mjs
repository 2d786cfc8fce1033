// What a page shows against what the server has stored.
import { brief } from "../clients/watch.mjs";

/** The parts of all assistant messages, one after the other: bubbles do not count here. */
export const flat = (messages) =>
  messages.filter((m) => m.role === "assistant").flatMap((m) => brief([m])[0].parts);

export const text = (tab) => flat(tab.messages).join("¦");

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const withoutSteps = (parts) => parts.filter((part) => part !== "step-start");
const onlyText = (parts) =>
  parts.filter((part) => /^(text|reasoning):/.test(part)).map((part) => part.replace(/^\w+:/, "")).join("");

/** EXACT | parts= (but for step marks) | text= (but for how it is cut) | WRONG */
export function verdict(got, want) {
  if (same(got, want)) return "EXACT";
  if (same(withoutSteps(got), withoutSteps(want))) return "parts=";
  if (onlyText(got) === onlyText(want)) return "text=";
  return "WRONG";
}
