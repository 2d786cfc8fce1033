// Draws the lanes: one for each exchange, what the client sent above its line, the server below.
const LANE_PX = 64, LABEL_PX = 18, AXIS_PX = 22, PAD_PX = 10;
const canvas = document.getElementById("canvas");
const pen = canvas.getContext("2d");
let scale = null, spots = [], colours = {};

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["card", "ink", "dim", "line", "soft", "client", "server", "fault", "mended",
    "note", "replay"]) colours[name] = style.getPropertyValue("--" + name).trim();
}

const width = () => canvas.clientWidth;
const toX = (ms) => placeToX(placeOf(scale, ms));
const placeToX = (place) =>
  PAD_PX + ((place - state.from) / (state.to - state.from)) * (width() - 2 * PAD_PX);
const xToPlace = (x) =>
  state.from + ((x - PAD_PX) / (width() - 2 * PAD_PX)) * (state.to - state.from);
const lineOf = (lane) => AXIS_PX + lane * LANE_PX + LABEL_PX + (LANE_PX - LABEL_PX) / 2;

function draw() {
  const ratio = window.devicePixelRatio || 1;
  const height = AXIS_PX + talk().lanes.length * LANE_PX + 4;
  canvas.style.height = height + "px";
  if (canvas.width !== Math.round(width() * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width() * ratio);
    canvas.height = Math.round(height * ratio);
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width(), height);
  pen.font = "12px system-ui, sans-serif";
  drawAxis(height);
  talk().lanes.forEach(drawReplays);
  talk().lanes.forEach(drawLane);
  talk().lanes.forEach(drawReconnect);
  drawFrames();
}

function drawAxis(height) {
  const steps = Math.max(2, Math.floor(width() / 140));
  const apart = (timeAt(scale, state.to) - timeAt(scale, state.from)) / steps;
  pen.fillStyle = colours.dim;
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  for (let i = 0; i <= steps; i++) {
    const place = state.from + (i / steps) * (state.to - state.from);
    const x = Math.round(placeToX(place)) + 0.5;
    pen.beginPath(); pen.moveTo(x, AXIS_PX - 4); pen.lineTo(x, height); pen.stroke();
    pen.textAlign = i === 0 ? "left" : i === steps ? "right" : "center";
    pen.fillText(seconds(timeAt(scale, place), apart), x, 13);
  }
  pen.textAlign = "center";
  for (const cut of scale.cuts) {
    const x = placeToX(cut.place);
    if (x < 0 || x > width()) continue;
    pen.fillStyle = colours.soft;
    pen.fillRect(x - 4, AXIS_PX, 8, height);
    pen.fillStyle = colours.note;
    pen.fillText("⋯", x, AXIS_PX + 4);
  }
}

function drawLane(lane, index) {
  const y = lineOf(index), begin = toX(lane.begin);
  const end = lane.end === null ? width() : toX(lane.end);
  pen.strokeStyle = colours.dim;
  pen.lineWidth = 1.5;
  pen.beginPath(); pen.moveTo(begin, y); pen.lineTo(Math.max(end, begin + 2), y); pen.stroke();
  pen.fillStyle = colours.dim;
  pen.beginPath(); pen.arc(begin, y, 3, 0, 7); pen.fill();
  const isBroken = lane.ending.startsWith("aborted");
  if (lane.end !== null) {
    pen.strokeStyle = isBroken ? colours.note : colours.dim;
    pen.lineWidth = 2;
    pen.beginPath();
    if (isBroken) {
      pen.moveTo(end - 4, y - 4); pen.lineTo(end + 4, y + 4);
      pen.moveTo(end - 4, y + 4); pen.lineTo(end + 4, y - 4);
    } else { pen.moveTo(end, y - 5); pen.lineTo(end, y + 5); }
    pen.stroke();
  }
  pen.textAlign = "left";
  pen.fillStyle = colours.ink;
  const name = lane.name + "  " + lane.transport + " " + lane.label;
  const rest = "   " + number(lane.frames) + (lane.frames === 1 ? " frame" : " frames") +
    (isBroken ? ", " + lane.ending.replace("aborted", "broken off by") : "");
  const chunks = lane.replays.reduce((sum, replay) => sum + replay[2], 0);
  const again = chunks ? ", replay of " + number(chunks) + " chunks" : "";
  const top = AXIS_PX + index * LANE_PX + 13;
  const room = width() - 2 * PAD_PX - pen.measureText(rest + again).width;
  const shown = clipped(name, room);
  pen.fillText(shown, PAD_PX, top);
  pen.fillStyle = isBroken ? colours.note : colours.dim;
  const left = PAD_PX + pen.measureText(shown).width;
  pen.fillText(rest, left, top);
  pen.fillStyle = colours.fault;
  pen.fillText(again, left + pen.measureText(rest).width, top);
}

function clipped(text, room) {
  if (pen.measureText(text).width <= room) return text;
  let length = text.length;
  while (length > 1 && pen.measureText(text.slice(0, length) + "…").width > room) length--;
  return text.slice(0, length) + "…";
}

// What is sent again after a reconnect: a band behind the frames of the server.
function drawReplays(lane, index) {
  const y = lineOf(index);
  for (const [begin, end] of lane.replays) {
    const from = toX(begin) - 3, to = toX(end) + 3;
    pen.fillStyle = colours.replay;
    pen.fillRect(from, y, Math.max(to - from, 8), (LANE_PX - LABEL_PX) / 2);
  }
}

// A socket that takes over from another of its page: a line from the end of that one.
function drawReconnect(lane, index) {
  const before = talk().lanes.findIndex((other) => other.number === lane.follows);
  if (before < 0 || talk().lanes[before].end === null) return;
  const from = toX(talk().lanes[before].end), to = toX(lane.begin);
  pen.strokeStyle = colours.note;
  pen.lineWidth = 1.5;
  pen.setLineDash([4, 3]);
  pen.beginPath(); pen.moveTo(from, lineOf(before) + 5); pen.lineTo(to, lineOf(index) - 5);
  pen.stroke();
  pen.setLineDash([]);
  pen.fillStyle = colours.note;
  const gap = lane.begin - talk().lanes[before].end;
  const isRight = to < 170; // the lane is empty before it begins: that is where the text stands
  pen.textAlign = isRight ? "left" : "right";
  pen.fillText("reconnect after " + seconds(gap), to + (isRight ? 8 : -8), lineOf(index) + 17);
}

function drawFrames() {
  spots = [];
  const frames = talk().frames, marked = [], right = width() + 4;
  const from = state.from, factor = (width() - 2 * PAD_PX) / (state.to - state.from);
  const drawn = new Map(); // what already stands at a pixel of a lane: to draw less, not to see less
  for (const index of state.shown) {
    const frame = frames[index], x = PAD_PX + (scale.frames[index] - from) * factor;
    if (x < -4 || x > right) continue;
    const y = lineOf(frame[LANE]), isClient = frame[SIDE] === 0;
    const length = 4 + Math.min(12, Math.log2(1 + frame[SIZE]));
    const spot = { index, x, y: isClient ? y - length / 2 : y + length / 2, length, isClient };
    spots.push(spot);
    if (isMarked(frame) || index === state.selected) marked.push(spot);
    else {
      const pixel = frame[LANE] * 4 + (isClient ? 1 : 0), last = drawn.get(pixel);
      if (last && last.x === (x | 0) && last.length >= length) continue;
      drawn.set(pixel, { x: x | 0, length });
      drawTick(frame, spot, 2, isClient ? colours.client : colours.server);
    }
  }
  for (const spot of marked) {
    const frame = frames[spot.index];
    const colour = isMended(frame) ? colours.mended : isFaulty(frame) ? colours.fault
      : spot.isClient ? colours.client : colours.server;
    drawTick(frame, spot, 3, colour);
    if (isMarked(frame)) drawFlag(frame, spot, colour);
    if (spot.index === state.selected) drawSelection(spot);
  }
}

function drawTick(frame, spot, thickness, colour) {
  pen.fillStyle = colour;
  const y = lineOf(frame[LANE]);
  pen.fillRect(spot.x - thickness / 2, spot.isClient ? y - spot.length : y, thickness, spot.length);
}

// Not by colour alone: a triangle for what is faulty, a dot for what was mended.
function drawFlag(frame, spot, colour) {
  const y = lineOf(frame[LANE]) + (spot.isClient ? -spot.length - 4 : spot.length + 4);
  pen.fillStyle = colour;
  pen.beginPath();
  if (isMended(frame)) pen.arc(spot.x, y, 3, 0, 7);
  else {
    const turn = spot.isClient ? 1 : -1;
    pen.moveTo(spot.x, y + 3 * turn); pen.lineTo(spot.x - 4, y - 3 * turn);
    pen.lineTo(spot.x + 4, y - 3 * turn);
  }
  pen.fill();
}

function drawSelection(spot) {
  pen.strokeStyle = colours.ink;
  pen.lineWidth = 1.5;
  pen.strokeRect(spot.x - 5, spot.y - spot.length / 2 - 3, 10, spot.length + 6);
}

// The frame nearest to a point, if one is near.
function frameAt(x, y) {
  const lane = Math.floor((y - AXIS_PX) / LANE_PX);
  let best = null, least = 10;
  for (const spot of spots) {
    if (talk().frames[spot.index][LANE] !== lane) continue;
    const far = Math.abs(spot.x - x) + Math.max(0, Math.abs(spot.y - y) - spot.length) / 2 -
      (isMarked(talk().frames[spot.index]) ? 2 : 0);
    if (far < least) { least = far; best = spot; }
  }
  return best;
}
