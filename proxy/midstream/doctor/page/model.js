// The data of the page: conversations, their frames, what is filtered, and where a time stands.
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const [LANE, SEQ, AT, SIDE, KIND, SIZE, SENT, TEXT, FAULTS, MENDED, DECLINED, WHY] =
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const SIDES = ["client", "server", ""];
const SILENCE_MS = 1500; // a longer silence is drawn as long as this

const state = { talk: 0, shown: [], selected: -1, from: 0, to: 1 };

const isFaulty = (frame) => frame[FAULTS].length > 0;
const isMended = (frame) => frame[MENDED].length > 0;
const isMarked = (frame) => isFaulty(frame) || isMended(frame);
const talk = () => DATA.talks[state.talk];
const number = (value) => value.toLocaleString("en-US");

// A time as text, as exact as steps of `step` ms need it.
function seconds(ms, step = 1) {
  if (ms >= 600000 && step >= 1000) return (ms / 60000).toFixed(step < 60000 ? 2 : 0) + " min";
  if (step < 1 && ms < 100) return ms.toFixed(step < 0.1 ? 2 : 1) + " ms";
  return (ms / 1000).toFixed(step < 10 ? 3 : step < 100 ? 2 : 1) + " s";
}

// Times of the conversation, and where each is drawn: long silences are cut short.
function makeScale(isSqueezed) {
  const times = new Set();
  for (const lane of talk().lanes) {
    times.add(lane.begin);
    if (lane.end !== null) times.add(lane.end);
  }
  for (const frame of talk().frames) times.add(frame[AT]);
  const at = [...times].sort((a, b) => a - b);
  if (!at.length) at.push(0);
  const place = [0];
  const cuts = [];
  for (let i = 1; i < at.length; i++) {
    const gap = at[i] - at[i - 1];
    const drawn = isSqueezed ? Math.min(gap, SILENCE_MS) : gap;
    if (drawn < gap) cuts.push({ place: place[i - 1] + drawn / 2, gap });
    place.push(place[i - 1] + drawn);
  }
  const made = { at, place, cuts, length: Math.max(place[place.length - 1], 1), frames: [] };
  made.frames = talk().frames.map((frame) => placeOf(made, frame[AT]));
  return made;
}

function placeOf(scale, ms) {
  const { at, place } = scale;
  let low = 0, high = at.length - 1;
  if (ms <= at[0]) return 0;
  if (ms >= at[high]) return place[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (at[middle] <= ms) low = middle; else high = middle;
  }
  const share = (ms - at[low]) / (at[high] - at[low] || 1);
  return place[low] + share * (place[high] - place[low]);
}

function timeAt(scale, where) {
  const { at, place } = scale;
  let low = 0, high = place.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (place[middle] <= where) low = middle; else high = middle;
  }
  const length = place[high] - place[low];
  return at[low] + (length ? (where - place[low]) / length : 0) * (at[high] - at[low]);
}

// The indices of the frames that pass the filters.
function filtered(filters) {
  const words = filters.search.toLowerCase();
  const found = [];
  talk().frames.forEach((frame, index) => {
    if (frame[SIDE] === 0 && !filters.client) return;
    if (frame[SIDE] === 1 && !filters.server) return;
    if (filters.marked && !isMarked(frame)) return;
    if (words) {
      const lane = talk().lanes[frame[LANE]];
      const text = [lane.name + ":" + frame[SEQ], frame[TEXT], ...frame[FAULTS],
        ...frame[MENDED], ...frame[DECLINED]].join(" ").toLowerCase();
      if (!text.includes(words)) return;
    }
    found.push(index);
  });
  return found;
}
