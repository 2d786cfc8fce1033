// Every package tree of this rig with its exact pins: the one place to look for "which versions?".
// There are no lock files: these pins plus `before` in install.mjs say what is installed.

const react = { react: "19.2.0", "react-dom": "19.2.0", zod: "4.1.12" };

// chat 4.41 builds an AbortController at global scope, which workerd refuses.
const CHAT = "4.31.0";

const mcp = { "@modelcontextprotocol/client": "2.4.0", "@modelcontextprotocol/sdk": "1.32.2" };

/** What runs the servers and builds the clients. */
export const tools = {
  dependencies: {
    wrangler: "4.85.0", // the last line that runs on Node 20
    // wrangler's own workerd breaks Think ("startActiveSpan is not a function")
    "workerd-new": "npm:@cloudflare/workerd-linux-64@1.20260723.1",
    ws: "8.18.0",
    jsdom: "26.1.0",
    esbuild: "0.27.3",
  },
};

/** name -> which worker source it runs, its class, its agent name on the wire, its pins. */
export const servers = {
  aichat: chatServer({
    agents: "0.17.4", "@cloudflare/ai-chat": "0.9.3", ai: "6.0.217", "@ai-sdk/react": "3.0.219",
  }),
  think: thinkServer({
    agents: "0.19.0", "@cloudflare/think": "0.15.0", ai: "6.0.210", "@ai-sdk/react": "3.0.212",
  }, { ownCompaction: true }),
  aichat24: chatServer({
    agents: "0.24.0", "@cloudflare/ai-chat": "0.12.0", ai: "6.0.326", "@ai-sdk/react": "3.0.328", ...mcp,
  }),
  think24: thinkServer({
    agents: "0.24.0", "@cloudflare/think": "0.19.0", ai: "6.0.326", "@ai-sdk/react": "3.0.328", ...mcp,
  }),
  aichat32: chatServer({
    agents: "0.32.0", "@cloudflare/ai-chat": "0.12.2", ai: "6.0.326", "@ai-sdk/react": "3.0.328", ...mcp,
  }),
  think32: thinkServer({
    agents: "0.32.0", "@cloudflare/think": "0.23.0", ai: "7.0.173", "@ai-sdk/react": "4.0.177", ...mcp,
    "@cloudflare/computer": "0.8.0", "just-bash": "3.4.2",
  }),
};

/** name -> pins, or `server` when a server's tree already holds exactly this client. */
export const clients = {
  "c17-r2": { server: "aichat" },
  "c17-r3": client("0.17.4", "6.0.275", "3.0.278"),
  "c17-r4": client("0.17.4", "6.0.326", "3.0.328"),
  "c19-r1": client("0.19.0", "6.0.85", "3.0.87"),
  "c19-r2": { server: "think" },
  "c19-r4": client("0.19.0", "6.0.326", "3.0.328"),
  "c24-r2": client("0.24.0", "6.0.217", "3.0.219"),
  "c24-r4": { server: "aichat24" },
  "c24-v7": client("0.24.0", "7.0.173", "4.0.177"),
  "c32-r4": { server: "aichat32" },
};

function chatServer(pins) {
  return { source: "aichat.ts", className: "RigChat", agent: "rig-chat", ...tree(pins) };
}

function thinkServer(pins, { ownCompaction = false } = {}) {
  const source = ownCompaction ? "think-compacting.ts" : "think.ts";
  return { source, className: "RigThink", agent: "rig-think", ...tree(pins) };
}

function client(agents, ai, aiReact) {
  return tree({ agents, ai, "@ai-sdk/react": aiReact });
}

function tree(pins) {
  return { dependencies: { ...pins, ...react }, overrides: { ai: "$ai", chat: CHAT } };
}
