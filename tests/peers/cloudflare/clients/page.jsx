// The real client: useAgent + useAgentChat from the published packages, and nothing of ours between
// them and the wire. The page only watches what is rendered. Runs under Node + jsdom and in Chromium,
// so everything it is told is plain data.
import React, { Suspense } from "react";
import { createRoot } from "react-dom/client";
import { useAgent } from "agents/react";
import { useAgentChat } from "agents/chat/react";
import { RenderWatch } from "./watch.mjs";

export function mount({
  element, host, agent: agentName, name, onRender,
  answersTools = true, rotatingToken = false, socket = {}, chat = {}, cacheTtl, throttle,
}) {
  const tab = {
    watch: new RenderWatch(), keys: [], toolFires: [],
    messages: [], status: null, error: null, isServerStreaming: false, isStreaming: false,
  };

  function answerTool({ toolCall, addToolOutput }) {
    tab.toolFires.push(toolCall.toolCallId);
    tab.watch.toolFires++;
    if (toolCall.toolName !== "getLocation") return;
    addToolOutput({ toolCallId: toolCall.toolCallId, output: { city: "Oslo" } });
  }

  let tokens = 0;
  const query = async () => ({ token: `t${++tokens}` });

  function Page() {
    const agent = useAgent({
      agent: agentName, name, host,
      minReconnectionDelay: 150, maxReconnectionDelay: 1000,
      ...(rotatingToken ? { query, queryDeps: [], cacheTtl } : {}),
      ...socket,
    });
    const c = useAgentChat({
      agent, resume: true,
      onToolCall: answersTools ? answerTool : undefined,
      ...(throttle ? { experimental_throttle: throttle } : {}),
      ...chat,
    });
    if (tab.agent !== agent) tab.keys.push(agent._pk);
    Object.assign(tab, {
      agent, chat: c, messages: c.messages, status: c.status,
      error: c.error ? String(c.error) : null,
      isServerStreaming: c.isServerStreaming, isStreaming: c.isStreaming,
    });
    tab.watch.see(c);
    onRender?.(tab);
    return (
      <ul>
        {c.messages.map((m) => (
          <li key={m.id}>
            {m.parts.map((p, i) => <span key={i}>{p.type === "text" ? p.text : p.type}</span>)}
          </li>
        ))}
      </ul>
    );
  }

  const root = createRoot(element);
  root.render(<Suspense fallback="loading"><Page /></Suspense>);
  tab.connected = () => tab.agent?.readyState === 1 && Boolean(tab.chat);
  tab.say = (text) => tab.chat.sendMessage({ text });
  tab.stopAnswer = () => tab.chat.stop();
  tab.regenerate = () => tab.chat.regenerate();
  tab.replaceMessages = (messages) => tab.chat.setMessages(messages);
  tab.close = () => root.unmount();
  return tab;
}
