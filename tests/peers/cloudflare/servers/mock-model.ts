// A scripted language model: no network, no randomness. The newest user message says what to play:
//
//   #tool [#rich|#many]  a client tool, then a slow continuation "c0 c1 ..."
//                        #rich: reasoning, text and a server tool come before it
//                        #many: 80 small parts come before it, in the same step
//   #midtool             a client tool early in a step whose text goes on streaming
//   #slow [#rich]        a slow first turn
//   n=30 ms=60           how many words, how far apart
type Prompt = { role: string; content: any }[];

type Step =
  | { kind: "text" | "reasoning"; id: string; words: string[]; ms: number }
  | { kind: "tool"; id: string; name: string; input: unknown }
  | { kind: "end"; reason: "stop" | "tool-calls" };

const MANY = 80;
const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

export function mockModel(onPrompt?: (prompt: Prompt) => void): any {
  return {
    specificationVersion: "v3",
    provider: "rig",
    modelId: "scripted",
    supportedUrls: {},
    async doGenerate({ prompt }: any) {
      onPrompt?.(prompt);
      return {
        content: [{ type: "text", text: "SUMMARY" }],
        finishReason: { unified: "stop", raw: "stop" },
        usage,
        warnings: [],
      };
    },
    async doStream({ prompt, abortSignal }: any) {
      onPrompt?.(prompt);
      return { stream: play(script(prompt), abortSignal) };
    },
  };
}

function script(prompt: Prompt): Step[] {
  const asked = lastUserText(prompt);
  const number = (key: string, otherwise: number) => {
    const found = asked.match(new RegExp(`${key}=(\\d+)`));
    return found ? Number(found[1]) : otherwise;
  };
  const n = number("n", 30);
  const ms = number("ms", 60);
  const answered = toolResultsSinceUser(prompt);
  const stop: Step = { kind: "end", reason: "stop" };
  const callTools: Step = { kind: "end", reason: "tool-calls" };
  const clientTool: Step = { kind: "tool", id: "call_client_1", name: "getLocation", input: { why: "rig" } };
  const say = (id: string, count = n): Step => ({ kind: "text", id, words: words(id, count), ms });
  const think = (): Step => ({ kind: "reasoning", id: "r", words: words("r", 6), ms });
  const opening: Step = { kind: "text", id: "a", words: ["before ", "continuation "], ms: 10 };

  if (asked.includes("#midtool")) {
    if (answered === 0) return [opening, clientTool, say("c"), callTools];
    return [{ kind: "text", id: "d", words: ["after ", "midtool."], ms: 10 }, stop];
  }
  if (asked.includes("#tool")) {
    if (answered === 0) return [opening, clientTool, callTools];
    if (asked.includes("#many")) return [...manyParts(ms), say("c"), stop];
    if (asked.includes("#rich") && answered === 1) {
      const serverTool: Step = { kind: "tool", id: "call_server_1", name: "serverClock", input: { z: "UTC" } };
      return [think(), say("b", 8), serverTool, callTools];
    }
    return [say("c"), stop];
  }
  if (asked.includes("#slow #rich")) return [think(), say("c"), stop];
  if (asked.includes("#slow")) return [say("s"), stop];
  return [{ kind: "text", id: "h", words: ["Hello ", "from ", "the ", "mock."], ms: 10 }, stop];
}

function manyParts(ms: number): Step[] {
  return Array.from({ length: MANY }, (_, i) => ({
    kind: i % 2 ? "text" : "reasoning",
    id: `m${i}`,
    words: [`m${i} `],
    ms,
  }));
}

function words(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i} `);
}

function lastUserText(prompt: Prompt): string {
  const user = prompt.findLast((message) => message.role === "user");
  if (!user) return "";
  return user.content.map((part: any) => (part.type === "text" ? part.text : "")).join("");
}

function toolResultsSinceUser(prompt: Prompt): number {
  const since = prompt.slice(prompt.findLastIndex((message) => message.role === "user") + 1);
  return since
    .filter((message) => message.role === "tool")
    .flatMap((message) => message.content)
    .filter((part: any) => part.type === "tool-result").length;
}

function play(steps: Step[], abort?: AbortSignal): ReadableStream {
  return new ReadableStream({
    async start(out) {
      try {
        out.enqueue({ type: "stream-start", warnings: [] });
        for (const step of steps) {
          if (abort?.aborted) break;
          await playStep(step, out, abort);
        }
        out.close();
      } catch (error) {
        try {
          out.error(error);
        } catch {
          // the reader has gone; nobody is left to tell
        }
      }
    },
  });
}

async function playStep(step: Step, out: ReadableStreamDefaultController, abort?: AbortSignal) {
  if (step.kind === "end") {
    out.enqueue({ type: "finish", finishReason: { unified: step.reason, raw: step.reason }, usage });
  } else if (step.kind === "tool") {
    const input = JSON.stringify(step.input);
    out.enqueue({ type: "tool-input-start", id: step.id, toolName: step.name });
    out.enqueue({ type: "tool-input-delta", id: step.id, delta: input });
    out.enqueue({ type: "tool-input-end", id: step.id });
    out.enqueue({ type: "tool-call", toolCallId: step.id, toolName: step.name, input });
  } else {
    out.enqueue({ type: `${step.kind}-start`, id: step.id });
    for (const word of step.words) {
      if (abort?.aborted) break;
      await new Promise((resolve) => setTimeout(resolve, step.ms));
      out.enqueue({ type: `${step.kind}-delta`, id: step.id, delta: word });
    }
    out.enqueue({ type: `${step.kind}-end`, id: step.id });
  }
}
