// One record in full: what was received, what left instead, line against line, and why.
// Everything from the wire is set as text.
"use strict";

const MAX_LINES = 4000;
const MAX_COMPARED = 1_000_000;
const KEPT_LINES = 3;

export function element(name, text = "", className = "") {
  const node = document.createElement(name);
  node.textContent = text;
  if (className) node.className = className;
  return node;
}

export function bytes(size) {
  return size < 10_000 ? `${size} B` : size < 10_000_000 ? `${Math.round(size / 1000)} kB` : `${Math.round(size / 1e6)} MB`;
}

/** Show a record in the panel. `isRaw`: as on the wire, without laying JSON out. */
export function showDetail(panel, record, isRaw) {
  const title = element("h2");
  title.append(
    element("span", `#${record.seq}`, "quiet"), element("span", record.words, "title"),
    element("span", new Date(record.wall_ms).toISOString().replace("T", " ").replace("Z", " UTC"), "quiet mono"),
  );
  panel.replaceChildren(title);
  const done = [
    ...record.rules.map(([addon, rule]) => [`${addon}: ${rule}`, "rules"]),
    ...record.skips.map(([addon, reason]) => [`${addon} left it alone: ${reason}`, "skips"]),
  ];
  for (const [text, className] of done) panel.append(element("div", text, className));
  if (record.why.length) {
    const list = element("ul");
    list.append(...record.why.map(line => element("li", line)));
    panel.append(list);
  }
  if (record.headers.length) panel.append(table(record.headers));
  const meta = Object.entries(record.meta).filter(([, value]) => value !== null && value !== "");
  if (meta.length) panel.append(table(meta.map(([key, value]) => [key, String(value)])));
  if (record.before || record.after) panel.append(sides(record, isRaw));
  panel.scrollTop = 0;
}

function table(pairs) {
  const body = element("table", "", "mono");
  for (const [name, value] of pairs) {
    const row = element("tr");
    row.append(element("td", name), element("td", value));
    body.append(row);
  }
  return body;
}

function sides(record, isRaw) {
  const { before, after } = record;
  const box = element("div", "", "sides");
  if (!before || !after) {
    box.classList.add("one");
    const frames = before ? [before] : after;
    box.append(element("b", before ? `${said(before)}, went on as it came` : left(frames, record.left)));
    const lines = frames.flatMap(frame => laidOut(frame, isRaw, frames.length > 1));
    box.append(...lines.slice(0, MAX_LINES).map(line => element("div", line)));
    return box;
  }
  box.append(element("b", `before: ${said(before)}`), element("b", `after: ${left(after, record.left)}`));
  const old = laidOut(before, isRaw, false).slice(0, MAX_LINES);
  const now = after.flatMap(frame => laidOut(frame, isRaw, after.length > 1)).slice(0, MAX_LINES);
  fold(box, compared(old, now));
  return box;
}

function said(frame) {
  return `from the ${frame.side}, ${bytes(frame.size)}${frame.cut ? ", its begin" : ""}`;
}

function left(frames, count) {
  if (!count) return "nothing left";
  return count === 1 ? said(frames[0]) : `${count} frames${count > frames.length ? `, the first ${frames.length}` : ""}`;
}

/** Return a frame as lines: fields of an event, then the payload, JSON laid out. */
function laidOut(frame, isRaw, hasTitle) {
  const lines = hasTitle ? [`--- from the ${frame.side}, ${bytes(frame.size)}: ${frame.words}`] : [];
  lines.push(...frame.fields.map(([name, value]) => `${name}: ${value}`));
  if (!isRaw && !frame.cut) {
    try {
      return [...lines, ...layOut(JSON.parse(frame.text), "")];
    } catch { /* not JSON: as it is */ }
  }
  return [...lines, ...frame.text.split("\n")];
}

/** Lay JSON out in lines, and JSON in its strings, too: chat envelopes carry their chunks so. */
function layOut(value, indent) {
  if (value === null || typeof value !== "object") {
    const inner = typeof value === "string" && /^\s*[[{]/.test(value) && parsed(value);
    if (!inner) return [indent + JSON.stringify(value)];
    const lines = layOut(inner, indent);
    return [`${indent}(text) ${lines[0].trimStart()}`, ...lines.slice(1)];
  }
  const isList = Array.isArray(value), [open, close] = isList ? "[]" : "{}";
  const entries = Object.entries(value);
  if (!entries.length) return [indent + open + close];
  const lines = [indent + open];
  entries.forEach(([key, item], i) => {
    const inner = layOut(item, indent + "  ");
    if (!isList) inner[0] = `${indent}  ${JSON.stringify(key)}: ${inner[0].trimStart()}`;
    if (i < entries.length - 1) inner[inner.length - 1] += ",";
    for (const line of inner) lines.push(line);
  });
  lines.push(indent + close);
  return lines;
}

function parsed(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/** Return pairs of lines, [before, after]; null where one side has none. */
export function compared(old, now) {
  let head = 0, tail = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const pairs = old.slice(0, head).map(line => [line, line]);
  pairs.push(...changed(old.slice(head, old.length - tail), now.slice(head, now.length - tail)));
  pairs.push(...old.slice(old.length - tail).map(line => [line, line]));
  return pairs;
}

/** Compare by the longest common subsequence of lines, where that is affordable. */
function changed(old, now) {
  const n = old.length, m = now.length;
  if (n * m > MAX_COMPARED) return beside(old, now);
  const longest = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      longest[i][j] = old[i] === now[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const pairs = [];
  let i = 0, j = 0, outs = [], ins = [];
  while (i < n || j < m) {
    if (i < n && j < m && old[i] === now[j]) {
      pairs.push(...beside(outs, ins), [old[i], now[j]]);
      outs = []; ins = []; i++; j++;
    } else if (j >= m || (i < n && longest[i + 1][j] >= longest[i][j + 1])) outs.push(old[i++]);
    else ins.push(now[j++]);
  }
  return [...pairs, ...beside(outs, ins)];
}

function beside(outs, ins) {
  return Array.from({ length: Math.max(outs.length, ins.length) }, (_, i) => [outs[i] ?? null, ins[i] ?? null]);
}

/** Write pairs of lines, and fold long runs of equal ones into a line that opens them. */
function fold(box, pairs) {
  for (let at = 0; at < pairs.length;) {
    let end = at;
    while (end < pairs.length && pairs[end][0] === pairs[end][1]) end++;
    const from = at === 0 ? at : at + KEPT_LINES, to = end === pairs.length ? end : end - KEPT_LINES;
    const folds = to - from > 2 && end - at < pairs.length;
    for (let i = at; i < end; i++) {
      if (!folds || i < from || i >= to) box.append(...line(pairs[i]));
      else if (i === from) {
        const hidden = pairs.slice(from, to);
        const more = element("div", `\u2026 ${hidden.length} equal lines`, "wide");
        more.addEventListener("click", () => more.replaceWith(...hidden.flatMap(line)));
        box.append(more);
      }
    }
    for (at = end; at < pairs.length && pairs[at][0] !== pairs[at][1]; at++) box.append(...line(pairs[at]));
  }
}

function line([old, now]) {
  if (old === now) return [element("div", "  " + old, "equal"), element("div", "  " + now, "same")];
  if (old === null) return [element("div", "", "empty"), element("div", "+ " + now, "in")];
  if (now === null) return [element("div", "\u2212 " + old, "out"), element("div", "", "empty")];
  let head = 0, tail = 0;
  const most = Math.min(old.length, now.length);
  while (head < most && old[head] === now[head]) head++;
  while (tail < most - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++;
  return [marked(old, head, tail, "out", "\u2212 "), marked(now, head, tail, "in", "+ ")];
}

function marked(text, head, tail, className, sign) {
  const node = element("div", sign, className);
  node.append(text.slice(0, head), element("mark", text.slice(head, text.length - tail)), text.slice(text.length - tail));
  return node;
}
