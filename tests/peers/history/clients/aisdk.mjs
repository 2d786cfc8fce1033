// node aisdk.mjs < jobs.json      one JSON line for each conversation: what this client held in the end
//
// A normal agent loop of the AI SDK: two questions, one tool. An inverting client differs in its `prepareStep` alone.
// It is copied beside the node_modules that it is to use, so that one file serves every version.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { stepCountIs, streamText, tool } from "ai";
import { text } from "node:stream/consumers";
import { z } from "zod";

const QUESTIONS = ["Read package.json, then the rest.", "Which licence is it?"];
const MAX_STEPS = 5;
const AT_ONCE = 4;
const JOB_MS = 30_000;

const jobs = JSON.parse(await text(process.stdin));
await Promise.all(Array.from({ length: AT_ONCE }, worker));

async function worker() {
  for (let job = jobs.shift(); job; job = jobs.shift()) {
    const held = { key: job.key, texts: [], paths: [], error: "" };
    try {
      await converse(job, held);
    } catch (error) {
      held.error = String(error?.message ?? error).split("\n")[0].slice(0, 300);
    }
    console.log(JSON.stringify(held));
  }
}

async function converse(job, held) {
  let messages = [];
  for (const question of QUESTIONS) {
    messages = [...messages, { role: "user", content: question }];
    const running = streamText({
      ...settings(job),
      messages,
      tools: { Read: readTool(held) },
      stopWhen: stepCountIs(MAX_STEPS),
      maxRetries: 0,
      abortSignal: AbortSignal.timeout(JOB_MS),
      onError: () => {},
      prepareStep: job.inverted ? (step) => ({ messages: inverted(step.messages) }) : undefined,
    });
    for await (const part of running.fullStream) {
      if (part.type === "error") throw part.error;
    }
    held.texts.push(...(await running.steps).map((step) => step.text));
    // ai 7 has the messages of every step in `responseMessages`, ai 6 in `response`
    messages = [...messages, ...((await running.responseMessages) ?? (await running.response).messages)];
  }
}

function settings(job) {
  const place = { apiKey: job.credential, baseURL: `${job.base}/v1`, headers: { "x-conversation": job.key } };
  if (job.api === "anthropic") {
    const model = createAnthropic(place)("claude-sonnet-4-5");
    const thinking = { type: "enabled", budgetTokens: 1024 };
    return { model, providerOptions: { anthropic: job.reasoning ? { thinking } : {} } };
  }
  const openai = createOpenAI(place);
  if (job.api === "chat") return { model: openai.chat("gpt-4.1") };
  const options = { store: job.store };
  if (job.reasoning) Object.assign(options, { reasoningEffort: "low", reasoningSummary: "auto" });
  if (!job.store) options.include = ["reasoning.encrypted_content"];
  return { model: openai.responses("gpt-5.5"), providerOptions: { openai: options } };
}

function readTool(held) {
  return tool({
    description: "Read a file.",
    inputSchema: z.object({ path: z.string() }),
    execute: ({ path }) => {
      held.paths.push(path);
      return `contents of ${path}`;
    },
  });
}

// The fault: within a turn, every text that was said before a tool call is sent behind the last result.
function inverted(messages) {
  const turns = [];
  for (const message of messages) {
    if (message.role === "user" || !turns.length) turns.push([]);
    turns.at(-1).push(message);
  }
  return turns.flatMap(invertedTurn);
}

function invertedTurn(turn) {
  const last = turn.findLastIndex((message) => message.role === "tool");
  const before = [];
  const parked = [];
  for (const message of turn.slice(0, last + 1)) {
    if (message.role !== "assistant" || typeof message.content === "string") {
      before.push(message);
      continue;
    }
    const rest = message.content.filter((part) => part.type !== "text");
    const texts = message.content.filter((part) => part.type === "text");
    if (rest.length) before.push({ ...message, content: rest });
    parked.push(...texts.map((part) => ({ role: "assistant", content: [part] })));
  }
  return [...before, ...parked, ...turn.slice(last + 1)];
}
