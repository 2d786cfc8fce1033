// At the end of a turn a server sends the whole list again, which hides whatever went wrong before.
// Cells that judge the stream alone hold that list back, on the leg towards the client only, and only
// on sockets that were open when the turn ended: a list that greets a new socket is no closing list.
//
// The lists are recognised where the server sends them, page by page, and each is held back once:
// a list that the proxy itself sends (its own repair) always gets through, even when it reads the same.
export class ClosingLists {
  constructor() {
    this.streams = new Map(); // stream id -> still running, in order of first appearance
    this.due = new Map(); // page and list -> how often to hold it back
    this.endedAt = 0;
  }

  /** Sees every frame as the server sends it. */
  seeServer(frame, wire) {
    if (frame?.type === "cf_agent_use_chat_response") {
      if (frame.done) {
        this.streams.set(frame.id, false);
        this.endedAt = Date.now();
      } else if (!this.streams.has(frame.id) && startsTurn(frame)) this.streams.set(frame.id, true);
    }
    if (frame?.type === "cf_agent_chat_messages" && this.lastIsOver() && this.sawTheEnd(wire)) {
      this.due.set(key(frame, wire), (this.due.get(key(frame, wire)) || 0) + 1);
    }
  }

  /** Whether this frame, on its way to the page, is one to hold back. (A page's path is the same on both cables.) */
  take(frame, wire) {
    if (frame?.type !== "cf_agent_chat_messages") return false;
    const left = this.due.get(key(frame, wire)) || 0;
    if (left) this.due.set(key(frame, wire), left - 1);
    return left > 0;
  }

  sawTheEnd(wire) {
    return wire.opened <= this.endedAt;
  }

  lastIsOver() {
    return this.streams.size > 0 && [...this.streams.values()].at(-1) === false;
  }
}

const startsTurn = (frame) => frame.body?.startsWith('{"type":"start"');
const key = (frame, wire) => `${wire.path} ${JSON.stringify(frame.messages)}`;
