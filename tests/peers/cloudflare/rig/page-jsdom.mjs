// Pages in this very process: React in jsdom, WebSockets from `ws`.
import { newElement } from "./dom.mjs";
import { bundle } from "./places.mjs";

const errors = []; // what React and the SDK complain about
console.error = (...words) => errors.push(words.map(String).join(" ").slice(0, 200));
console.warn = () => {};
process.on("unhandledRejection", (error) => errors.push(`UNHANDLED ${String(error).slice(0, 200)}`));
process.on("uncaughtException", (error) => errors.push(`UNCAUGHT ${String(error).slice(0, 200)}`));

export class JsdomPages {
  async open(client) {
    this.client = await import(bundle(client, "node"));
    return this;
  }

  async mount(options) {
    return this.client.mount({ element: newElement(), ...options });
  }

  /** The complaints since the last call. */
  takeErrors() {
    return errors.splice(0);
  }

  async close() {}
}
