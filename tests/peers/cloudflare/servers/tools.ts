// The two tools of every server: one the page answers, one the server runs itself.
import { tool } from "ai";
import { z } from "zod";

export const rigTools: any = {
  getLocation: tool({
    description: "answered by the page (no execute)",
    inputSchema: z.object({ why: z.string() }),
  }),
  serverClock: tool({
    description: "run by the server",
    inputSchema: z.object({ z: z.string() }),
    execute: async () => ({ now: "12:00" }),
  }),
};
