// Joins the parts: controls, the list, the detail of one frame, the keyboard.
const ROW_PX = 24;
const byId = (id) => document.getElementById(id);
const list = byId("list"), rows = byId("rows"), detail = byId("detail"), tip = byId("tip");

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

const filters = () => ({ client: byId("client").checked, server: byId("server").checked,
  marked: byId("marked").checked, search: byId("search").value.trim() });

function openTalk(index) {
  state.talk = Math.max(0, Math.min(DATA.talks.length - 1, index));
  byId("talk").value = String(state.talk);
  state.selected = -1;
  rescale();
  refilter();
  showDetail();
}

function rescale() {
  scale = makeScale(byId("squeeze").checked);
  state.from = 0;
  state.to = scale.length;
}

function refilter() {
  state.shown = filtered(filters());
  rows.style.height = state.shown.length * ROW_PX + "px";
  redraw();
  drawRows();
}

let isDue = false;
function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => { isDue = false; draw(); });
}

// --- the list: only the rows in sight exist -------------------------------------------------------

function drawRows() {
  const first = Math.max(0, Math.floor(list.scrollTop / ROW_PX) - 4);
  const count = Math.ceil(list.clientHeight / ROW_PX) + 8;
  rows.replaceChildren(...state.shown.slice(first, first + count).map((index, place) =>
    row(index, first + place)));
}

function row(index, place) {
  const frame = talk().frames[index], lane = talk().lanes[frame[LANE]];
  const mark = isMended(frame) ? " is-mended" : isFaulty(frame) ? " is-fault" : "";
  const made = element("div", undefined, "row " + SIDES[frame[SIDE]] + mark);
  made.id = "row" + index;
  made.setAttribute("role", "option");
  made.setAttribute("aria-selected", String(index === state.selected));
  made.style.top = place * ROW_PX + "px";
  const sent = frame[SENT] === null ? "" : " → " + number(frame[SENT]);
  const arrow = frame[SIDE] === 0 ? "→" : frame[SIDE] === 1 ? "←" : "•";
  const text = element("span", undefined, "d");
  const words = [...new Set([...frame[MENDED], ...frame[FAULTS]])];
  if (words.length) text.append(element("span", words.join(", "), "w"));
  text.append(frame[TEXT]);
  made.append(element("span", lane.name + ":" + frame[SEQ], "x"),
    element("span", seconds(frame[AT]), "t"), element("span", arrow, "a"),
    element("span", number(frame[SIZE]) + sent + " B", "b"), text);
  made.addEventListener("click", () => select(index, false));
  return made;
}

// --- one frame ------------------------------------------------------------------------------------

function select(index, isScrolled = true) {
  state.selected = index;
  const place = state.shown.indexOf(index);
  if (place >= 0 && isScrolled) {
    const top = place * ROW_PX;
    if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - ROW_PX)
      list.scrollTop = Math.max(0, top - list.clientHeight / 2);
  }
  if (index >= 0) reveal(talk().frames[index]);
  list.setAttribute("aria-activedescendant", index >= 0 ? "row" + index : "");
  drawRows();
  redraw();
  showDetail();
}

// Bring a frame into view without changing the zoom.
function reveal(frame) {
  const place = placeOf(scale, frame[AT]), length = state.to - state.from;
  if (place < state.from || place > state.to) move(place - length / 2, length);
  const top = lineOf(frame[LANE]) - LANE_PX / 2 - LABEL_PX, box = byId("lanes");
  if (top < box.scrollTop || top + LANE_PX > box.scrollTop + box.clientHeight)
    box.scrollTop = Math.max(0, top);
}

// A path as a shell reads it.
function quoted(path) {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : "'" + path.replaceAll("'", "'\\''") + "'";
}

function showDetail() {
  if (state.selected < 0) {
    const text = DATA.talks.length ? "Choose a frame: its sizes, what became of it, and why."
      : "There is no conversation in this capture.";
    const left = talk() && talk().left_out
      ? number(talk().left_out) + " frames of this conversation are not drawn." : "";
    detail.replaceChildren(element("p", text, "dim"), element("p", left, "warn"));
    return;
  }
  const frame = talk().frames[state.selected], lane = talk().lanes[frame[LANE]];
  const facts = element("dl");
  const fact = (name, value, kind) => facts.append(element("dt", name), element("dd", value, kind));
  fact("exchange", lane.name + ":" + frame[SEQ] + "  " + lane.transport + " " + lane.label);
  fact("at", seconds(frame[AT]));
  fact("from", (SIDES[frame[SIDE]] || "midstream") + ", " + frame[KIND]);
  fact("received", number(frame[SIZE]) + " bytes");
  fact("sent", frame[SENT] === null ? "as it came"
    : frame[SENT] === 0 ? "nothing" : number(frame[SENT]) + " bytes");
  for (const words of frame[FAULTS]) fact("faulty", words, "fault");
  for (const words of frame[MENDED]) fact("mended", words, "mended");
  for (const words of frame[DECLINED]) fact("left alone", words);
  const why = element("ul");
  for (const line of frame[WHY]) why.append(element("li", line));
  const capture = DATA.captures[talk().capture];
  const hint = element("pre", "midstream capture why " + quoted(capture) + " " + lane.name + ":" + frame[SEQ]);
  detail.replaceChildren(element("h3", frame[TEXT] || frame[KIND]), facts, why, hint);
}

function step(by, isWanted = () => true) {
  const frames = talk().frames;
  let place = state.shown.indexOf(state.selected);
  if (place < 0) place = by > 0 ? -1 : state.shown.length;
  for (place += by; place >= 0 && place < state.shown.length; place += by)
    if (isWanted(frames[state.shown[place]])) return select(state.shown[place]);
}

// --- zoom -----------------------------------------------------------------------------------------

function move(from, length) {
  length = Math.min(scale.length, Math.max(length, scale.length / 100000, 0.01));
  state.from = Math.max(0, Math.min(scale.length - length, from));
  state.to = state.from + length;
  redraw();
}

function zoom(factor, x = width() / 2) {
  const place = xToPlace(x), length = (state.to - state.from) * factor;
  move(place - ((place - state.from) / (state.to - state.from)) * length, length);
}

// --- events ---------------------------------------------------------------------------------------

canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return; // the page scrolls as usual
  event.preventDefault();
  const by = event.deltaY || event.deltaX;
  if (event.shiftKey) move(state.from + (by / width()) * (state.to - state.from), state.to - state.from);
  else zoom(Math.exp(by / 300), event.offsetX);
}, { passive: false });

let grip = null;
canvas.addEventListener("pointerdown", (event) => {
  grip = { x: event.offsetX, from: state.from, isMoved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointerup", (event) => {
  if (grip && !grip.isMoved) {
    const spot = frameAt(event.offsetX, event.offsetY);
    if (spot) select(spot.index);
  }
  grip = null;
});
canvas.addEventListener("pointercancel", () => { grip = null; });
canvas.addEventListener("pointermove", (event) => {
  if (grip) {
    if (Math.abs(event.offsetX - grip.x) > 3) grip.isMoved = true;
    const length = state.to - state.from;
    if (grip.isMoved) move(grip.from - ((event.offsetX - grip.x) / width()) * length, length);
    return;
  }
  showTip(frameAt(event.offsetX, event.offsetY), event);
});
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });

function showTip(spot, event) {
  tip.hidden = !spot;
  canvas.style.cursor = spot ? "pointer" : "grab";
  if (!spot) return;
  const frame = talk().frames[spot.index];
  const words = [...new Set([...frame[MENDED], ...frame[FAULTS]])].join(", ");
  const sent = frame[SENT] === null ? "" : " → " + number(frame[SENT]);
  tip.textContent = frame[TEXT] + "  (" + number(frame[SIZE]) + sent + " B)" + (words ? "  " + words : "");
  const x = Math.min(event.offsetX + 12, Math.max(0, width() - tip.offsetWidth - 8));
  tip.style.left = x + "px";
  tip.style.top = event.offsetY + 18 + "px";
}

const KEYS = {
  ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => step(1),
  ArrowUp: () => step(-1), n: () => step(1, isMarked), p: () => step(-1, isMarked),
  "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
  0: () => move(0, scale.length), "[": () => openTalk(state.talk - 1),
  "]": () => openTalk(state.talk + 1), "/": () => byId("search").focus(),
  Home: () => step(1, (frame) => frame === talk().frames[state.shown[0]]),
  Escape: () => select(-1),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inField = event.target.matches("input[type=search], select");
  if (inField && event.key !== "Escape") return;
  const isArrow = event.key.startsWith("Arrow") || event.key === "Home";
  if (isArrow && event.target !== canvas && event.target !== list) return;
  const action = Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
  if (!action || !DATA.talks.length) return;
  event.preventDefault();
  if (inField) event.target.blur();
  action();
});

for (const id of ["client", "server", "marked"]) byId(id).addEventListener("change", refilter);
byId("search").addEventListener("input", refilter);
byId("squeeze").addEventListener("change", () => { rescale(); redraw(); });
byId("talk").addEventListener("change", (event) => openTalk(Number(event.target.value)));
byId("in").addEventListener("click", KEYS["+"]);
byId("out").addEventListener("click", KEYS["-"]);
byId("fit").addEventListener("click", KEYS[0]);
byId("next").addEventListener("click", KEYS.n);
byId("previous").addEventListener("click", KEYS.p);
list.addEventListener("scroll", drawRows);
new ResizeObserver(redraw).observe(canvas.parentElement);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });

// A link `#x-CAPTURE-EXCHANGE-SEQ` opens that frame.
function follow() {
  const found = /^#x-(\d+)-(\d+)-(\d+)$/.exec(location.hash);
  if (!found) return;
  const [capture, exchange, seq] = found.slice(1).map(Number);
  const index = DATA.talks.findIndex((one) =>
    one.capture === capture && one.lanes.some((lane) => lane.number === exchange));
  if (index < 0) return;
  openTalk(index);
  const lane = talk().lanes.findIndex((one) => one.number === exchange);
  const mine = (frame) => frame[LANE] === lane;
  let place = talk().frames.findIndex((frame) => mine(frame) && frame[SEQ] === seq);
  if (place < 0) place = talk().frames.findIndex((frame) => mine(frame) && isMarked(frame));
  if (place >= 0) select(place);
  byId("timeline").scrollIntoView();
}
addEventListener("hashchange", follow);

readColours();
DATA.talks.forEach((one, index) => {
  const name = (DATA.captures.length > 1 ? DATA.names[one.capture] + ": " : "") + one.title +
    (one.faults ? "  (" + number(one.faults) + " faulty)" : "");
  const option = element("option", name);
  option.value = String(index);
  byId("talk").append(option);
});
if (DATA.talks.length) {
  const most = (one) => (one.faults > 0 ? 1000 : 0) + one.lanes.length;
  openTalk(DATA.talks.reduce((best, one, index) =>
    (most(one) > most(DATA.talks[best]) ? index : best), 0));
  follow();
} else { byId("lanes").hidden = true; list.hidden = true; detail.textContent = "No conversation."; }
