// A list of any length that keeps only the rows in sight in the document.
// Rows are painted at most once a frame of the screen, and are used again while scrolling.
"use strict";

const EXTRA_ROWS = 10;

export class List {
  /** `fill(row, item)` writes an item into a row; `make(row)` gives a new row its cells. */
  constructor(box, height, { name, make, fill, onPick }) {
    Object.assign(this, { box, height, name, make, fill, onPick });
    this.items = [];
    this.at = -1;
    this.follow = false;
    this.onFollow = () => {};
    this.rows = [];
    this.waiting = false;
    this.space = document.createElement("div");
    this.space.className = "space";
    box.append(this.space);
    box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(box);
    this.space.addEventListener("click", event => {
      const row = event.target.closest(".row");
      if (row) this.onPick(row.index, true);
    });
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.#paint(); });
  }

  /** Choose the item at a place, and bring it into sight. */
  choose(at) {
    this.at = at;
    if (at >= 0) {
      const top = at * this.height, sight = this.box.clientHeight;
      if (top < this.box.scrollTop) this.box.scrollTop = top;
      else if (top + this.height > this.box.scrollTop + sight) this.box.scrollTop = top + this.height - sight;
    }
    this.draw();
  }

  #scrolled() {
    const below = this.items.length * this.height - this.box.scrollTop - this.box.clientHeight;
    if (!this.waiting) this.onFollow(below < this.height * 1.5);
    this.draw();
  }

  #paint() {
    const { items, height, box, rows } = this;
    box.dataset.empty = !items.length;
    this.space.style.height = items.length * height + "px";
    if (this.follow) box.scrollTop = items.length * height;
    const first = Math.max(0, Math.floor(box.scrollTop / height) - EXTRA_ROWS);
    const count = Math.min(items.length - first, Math.ceil(box.clientHeight / height) + 2 * EXTRA_ROWS);
    while (rows.length < count) rows.push(this.#newRow());
    rows.forEach((row, i) => {
      row.hidden = i >= count;
      if (row.hidden) return;
      row.index = first + i;
      row.style.transform = `translateY(${row.index * height}px)`;
      row.setAttribute("aria-posinset", row.index + 1);
      row.setAttribute("aria-setsize", items.length);
      row.setAttribute("aria-selected", row.index === this.at);
      this.fill(row, items[row.index]);
      if (row.index === this.at) box.setAttribute("aria-activedescendant", row.id);
    });
  }

  #newRow() {
    const row = document.createElement("div");
    row.id = `${this.name}-row-${this.rows.length}`;
    row.className = `row ${this.name}`;
    row.setAttribute("role", "option");
    this.make(row);
    this.space.append(row);
    return row;
  }
}

/** Return a child of a row, by its class. */
export function cell(row, name, parent = row) {
  const span = document.createElement("span");
  span.className = name;
  parent.append(span);
  row[name] = span;
  return span;
}

/** Set text only where it is another: an untouched node costs no layout. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
