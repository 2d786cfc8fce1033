import { Think } from "@cloudflare/think";
import { routeAgentRequest } from "agents";
import { mockModel } from "./mock-model";
import { rigTools } from "./tools";

const PROMPTS_KEPT = 20;

export class RigThink extends Think<any> {
  prompts: any[] = [];

  getModel() {
    return mockModel((prompt) => {
      this.prompts.push(prompt);
      if (this.prompts.length > PROMPTS_KEPT) this.prompts.shift();
    });
  }

  getTools(): any {
    return rigTools;
  }

  // Doors for the tests: /rig-* make compactions happen and show what the server itself sees.
  async onRequest(request: Request): Promise<Response> {
    const url = new URL(request.url);
    switch (url.pathname.split("/").at(-1)) {
      case "rig-compact":
        return Response.json(await (this as any).session.compact());
      case "rig-addcomp":
        return Response.json(await this.addCompaction(url.searchParams));
      case "rig-history":
        return Response.json(await (this as any).session.getHistory());
      case "rig-prompts":
        return Response.json(this.prompts);
      case "rig-broadcast":
        await (this as any)._syncMessages?.();
        (this as any)._broadcastMessages?.();
        return new Response("ok");
    }
    return new Response("not found", { status: 404 });
  }

  private async addCompaction(query: URLSearchParams) {
    const session = (this as any).session;
    const history = await session.getHistory();
    const from = query.get("fromId") || history[Number(query.get("from"))].id;
    const to = query.get("toId") || history[Number(query.get("to"))].id;
    return session.addCompaction(query.get("s") || "SUM", from, to);
  }
}

export default {
  async fetch(request: Request, env: any) {
    return (await routeAgentRequest(request, env)) || new Response("not found", { status: 404 });
  },
};
