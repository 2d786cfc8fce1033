// node show.mjs CAPTURE [--from MS] [--leg p2c]     a cell's capture, readable: one line a frame
import fs from "node:fs";
import { parseArgs } from "node:util";

const { values: options, positionals } = parseArgs({
  options: { from: { type: "string", default: "0" }, leg: { type: "string" }, width: { type: "string", default: "150" } },
  allowPositionals: true,
});

for (const line of fs.readFileSync(positionals[0], "utf8").trim().split("\n")) {
  const { t, leg, n, kind, data } = JSON.parse(line);
  if (t < Number(options.from) || (options.leg && leg !== options.leg)) continue;
  const shown = `${String(t).padStart(6)} ${leg} #${n} ${kind === "text" ? "" : `[${kind}] `}${brief(data)}`;
  console.log(shown.slice(0, Number(options.width)));
}

function brief(data) {
  if (typeof data !== "string") return JSON.stringify(data);
  let frame;
  try {
    frame = JSON.parse(data);
  } catch {
    return data;
  }
  const { type = "", body, message, messages, ...rest } = frame;
  const name = type.replace("cf_agent_", "");
  if (messages) return `${name} ${messages.map(outline).join(" | ")}`;
  if (message) return `${name} ${outline(message)}`;
  const flags = Object.entries(rest).filter(([, v]) => v !== false).map(([k, v]) => (v === true ? k : `${k}=${JSON.stringify(v)}`));
  return `${name} ${body ?? ""} ${flags.join(" ")}`;
}

function outline({ id, role, parts = [] }) {
  const part = (p) => p.text ?? p.state ?? p.type;
  return `${role}(${id.slice(0, 14)}): ${parts.map(part).join("¦").slice(-70)}`;
}
