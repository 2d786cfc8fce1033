import { AIChatAgent } from "@cloudflare/ai-chat";
import { routeAgentRequest } from "agents";
import { convertToModelMessages, stepCountIs, streamText } from "ai";
import { mockModel } from "./mock-model";
import { rigTools } from "./tools";

export class RigChat extends AIChatAgent<any> {
  async onChatMessage(_onFinish: any, options: any) {
    const result = streamText({
      model: mockModel(),
      messages: await convertToModelMessages(this.messages),
      abortSignal: options?.abortSignal,
      stopWhen: stepCountIs(5),
      tools: rigTools,
    });
    return result.toUIMessageStreamResponse({ sendReasoning: true });
  }
}

export default {
  async fetch(request: Request, env: any) {
    return (await routeAgentRequest(request, env)) || new Response("not found", { status: 404 });
  },
};
