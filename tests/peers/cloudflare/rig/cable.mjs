// A cable between two programs: it carries WebSocket messages and HTTP exchanges and changes none.
// It can be cut (a real loss of the connection), go deaf towards the client, be slow, count frames by
// type and write down what passes. The one thing it may hold back is a list that `withhold` names.
import fs from "node:fs";
import http from "node:http";
import { requireTool } from "./tools.mjs";

const { WebSocket, WebSocketServer } = requireTool("ws");
const NORMAL_CLOSES = new Set([1000, 1001, 1008, 1009, 1011, 1012, 1013]);

export class Cable {
  /** `legs` names the two directions in captures: [towards the server, towards the client]. */
  constructor({ to, legs, latency = 0 }) {
    Object.assign(this, { to, legs, latency, wires: new Set() });
    this.server = http.createServer((request, response) => this.exchange(request, response));
    new WebSocketServer({ server: this.server, perMessageDeflate: false })
      .on("connection", (client, request) => this.connect(client, request));
    this.reset();
  }

  async open() {
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.port = this.server.address().port;
    this.host = `127.0.0.1:${this.port}`;
    return this;
  }

  /** Before each cell: counts from zero, a new capture, nobody listening, nothing withheld. */
  reset({ capture = null, withhold = () => false, onFrame = () => {}, pages = {} } = {}) {
    Object.assign(this, {
      capture, withhold, onFrame, pages, sockets: 0,
      counts: { up: {}, down: {} }, began: Date.now(),
    });
  }

  /** Cuts socket number `n`, or all of them: no closing handshake, as when a network goes away. */
  drop(n) {
    for (const wire of this.wires) if (n === undefined || wire.n === n) wire.client.terminate();
  }

  /** From now on what is sent to the client is lost, though the connection looks alive. */
  goDeaf() {
    for (const wire of this.wires) wire.deaf = true;
  }

  close() {
    for (const wire of this.wires) {
      wire.client.terminate();
      wire.upstream.terminate();
    }
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(resolve));
  }

  connect(client, request) {
    const upstream = new WebSocket(`ws://${this.to}${request.url}`, { perMessageDeflate: false, headers: copied(request) });
    const wire = { n: ++this.sockets, path: request.url, client, upstream, opened: Date.now(), deaf: false, waiting: [] };
    this.wires.add(wire);
    this.record(wire, "up", "open");
    upstream.on("open", () => wire.waiting.splice(0).forEach((message) => upstream.send(message)));
    client.on("message", (data, binary) => this.carryUp(wire, binary ? data : data.toString()));
    upstream.on("message", (data, binary) => this.carryDown(wire, binary ? data : data.toString()));
    client.on("close", (code) => this.clientClosed(wire, code));
    upstream.on("close", (code, reason) => this.upstreamClosed(wire, code, reason.toString()));
    client.on("error", () => client.terminate());
    upstream.on("error", () => client.terminate());
  }

  carryUp(wire, data) {
    this.later(() => {
      this.count(wire, "up", data);
      this.record(wire, "up", "text", data);
      if (wire.upstream.readyState === WebSocket.OPEN) wire.upstream.send(data);
      else wire.waiting.push(data);
    });
  }

  carryDown(wire, data) {
    const frame = parsed(data);
    if (wire.deaf) return;
    if (this.withhold(frame, wire)) {
      this.record(wire, "down", "withheld", data);
      return;
    }
    this.record(wire, "down", "text", data);
    this.later(() => {
      if (wire.deaf || wire.client.readyState !== WebSocket.OPEN) return;
      this.count(wire, "down", data, frame);
      wire.client.send(data);
    });
  }

  clientClosed(wire, code) {
    this.wires.delete(wire);
    this.record(wire, "up", "close", { code });
    if (NORMAL_CLOSES.has(code)) wire.upstream.close(code);
    else wire.upstream.terminate();
  }

  upstreamClosed(wire, code, reason) {
    this.record(wire, "down", "close", { code });
    if (NORMAL_CLOSES.has(code)) wire.client.close(code, reason);
    else wire.client.terminate();
  }

  count(wire, way, data, frame = parsed(data)) {
    const type = frame?.type || "other";
    this.counts[way][type] = (this.counts[way][type] || 0) + 1;
    this.onFrame({ way, wire, frame });
  }

  async exchange(request, response) {
    const page = this.pages[request.url]; // the test page itself, so that it has the origin of the agent
    if (page) {
      response.writeHead(200, { "content-type": page.type }).end(page.body);
      return;
    }
    try {
      const answer = await fetch(`http://${this.to}${request.url}`, { method: request.method, signal: AbortSignal.timeout(10_000) });
      const body = await answer.text();
      this.record({ n: 0, path: request.url }, "down", "http", { status: answer.status, body });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") || "text/plain" });
      response.end(body);
    } catch {
      response.writeHead(502).end();
    }
  }

  later(act) {
    if (this.latency) setTimeout(act, this.latency);
    else act();
  }

  record(wire, way, kind, data = null) {
    if (!this.capture) return;
    const line = { t: Date.now() - this.began, leg: this.legs[way === "up" ? 0 : 1], n: wire.n, kind, path: wire.path, data };
    fs.appendFileSync(this.capture, JSON.stringify(line) + "\n");
  }
}

function copied(request) {
  return request.headers.origin ? { origin: request.headers.origin } : {};
}

function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}
