// The browser's globals, for the page under Node. Import this before any client bundle.
import { requireTool } from "./tools.mjs";

const { JSDOM } = requireTool("jsdom");
const { WebSocket } = requireTool("ws");
const dom = new JSDOM("<!doctype html>", { url: "http://127.0.0.1/", pretendToBeVisual: true });

globalThis.window = dom.window;
globalThis.document = dom.window.document;
Object.defineProperty(globalThis, "navigator", { value: dom.window.navigator, configurable: true });
globalThis.IS_REACT_ACT_ENVIRONMENT = false;

globalThis.WebSocket = class extends WebSocket {
  constructor(url, protocols) {
    super(url, protocols || [], { perMessageDeflate: false });
  }
};

export function newElement() {
  return document.body.appendChild(document.createElement("div"));
}
