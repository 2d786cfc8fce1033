// Evidence taken at every render: text shown twice, holes, shrinking, extra bubbles, doubled ids.

// The first word of each scripted segment: seen twice, the segment is on the screen twice.
const FIRST_WORDS = ["c0 ", "b0 ", "r0 ", "s0 ", "before "];

export const doubled = (shown) => FIRST_WORDS.some((word) => shown.split(word).length > 2);

export class RenderWatch {
  constructor() {
    this.reset();
  }

  reset() {
    Object.assign(this, {
      renders: 0, dup: 0, dupExample: null, gap: 0, gapExample: null, dupIds: 0,
      toolFires: 0, shrinks: 0, flickerMs: 0, minLength: null, maxBubbles: 0, paths: [],
    });
    this.shrunkAt = null;
  }

  see(chat) {
    this.renders++;
    const bubbles = chat.messages.filter((m) => m.role === "assistant");
    const texts = bubbles
      .flatMap((m) => m.parts)
      .filter((p) => p.type === "text" || p.type === "reasoning")
      .map((p) => p.text);
    const shown = texts.join("|");
    this.maxBubbles = Math.max(this.maxBubbles, bubbles.length);
    this.seeDuplicates(shown);
    this.seeLength(shown.replace(/\|/g, "").length);
    this.seeIds(chat.messages);
    this.seePath(chat);
  }

  seeDuplicates(shown) {
    if (doubled(shown)) {
      this.dup++;
      this.dupExample = shown;
      return;
    }
    const numbers = [...shown.matchAll(/\b[cs](\d+) /g)].map((m) => Number(m[1]));
    if (numbers.length && new Set(numbers).size !== Math.max(...numbers) + 1) {
      this.gap++;
      this.gapExample = shown;
    }
  }

  seeLength(length) {
    const now = performance.now();
    if (this.length !== undefined && length < this.length) {
      this.shrinks++;
      if (this.shrunkAt === null) {
        this.shrunkAt = now;
        this.shrunkFrom = this.length;
      }
    }
    if (this.shrunkAt !== null) {
      this.minLength = Math.min(this.minLength ?? Infinity, length);
      if (length >= this.shrunkFrom) {
        this.flickerMs = Math.max(this.flickerMs, Math.round(now - this.shrunkAt));
        this.shrunkAt = null;
      }
    }
    this.length = length;
  }

  seeIds(messages) {
    const ids = messages.map((m) => m.id);
    if (new Set(ids).size !== ids.length) this.dupIds++;
  }

  /** Which of the hook's two ways of taking a stream is at work. */
  seePath(chat) {
    let path = chat.status;
    if (chat.status === "streaming") path = "transport";
    else if (chat.isServerStreaming) path = "observer";
    if (this.paths.at(-1) !== path) this.paths.push(path);
  }
}

/** A transcript one can compare: every part as one short string. */
export const brief = (messages) =>
  messages.map((m) => ({ id: m.id, role: m.role, parts: m.parts.map(briefPart) }));

function briefPart(part) {
  if (part.type === "text" || part.type === "reasoning") return `${part.type}:${part.text}`;
  if (part.type.startsWith("tool-")) return `${part.type}:${part.state}`;
  return part.type;
}
