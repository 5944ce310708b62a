// The cell of the pattern's lattice over the picture, at any angle, and two rulers that correct its vectors.

import { draw } from "./dom.js";

/// Lines closer than this on the screen are left out.
const LEAST_GAP = 5;
/// A ruler takes about this share of the picture.
const SHARE = 0.5;
const MOST_REPEATS = 10;
const FAR = 10;
/// A ruler that is dragged lies along a row or a column if its end is no farther from it on the screen.
const SNAP = 4;

const LEAST_PX = 1;
const cross = ([ax, ay], [bx, by]) => ax * by - ay * bx;
const lengthOf = (vector) => Math.hypot(...vector);

export const isThere = (vector) => lengthOf(vector) >= LEAST_PX;

/// Whether the vectors lie along rows and columns, where pitches say the same.
export const isParallel = ([a, b]) => a[1] === 0 && b[0] === 0;

/// Lines along a vector, one `step` apart, of which one goes through a place: as far as the frame reaches, as an SVG path.
function linesOf(place, vector, step, size) {
  const corners = [[0, 0], [size[0], 0], [0, size[1]], size];
  const numbers = corners.map(([x, y]) => cross(vector, [x - place[0], y - place[1]]) / cross(vector, step));
  const all = [];
  for (let number = Math.ceil(Math.min(...numbers)); number <= Math.max(...numbers); number += 1) {
    const from = place.map((of, axis) => of + number * step[axis]);
    // Multiples of the vector at which the line enters and leaves the frame along each axis that it crosses.
    const ends = [0, 1].filter((axis) => vector[axis]).map((axis) =>
      [-from[axis], size[axis] - from[axis]].map((of) => of / vector[axis]).sort((a, b) => a - b));
    const [first, last] = [Math.max(...ends.map(([of]) => of)), Math.min(...ends.map(([, of]) => of))];
    const at = (times) => from.map((of, axis) => (of + times * vector[axis]).toFixed(2)).join(" ");
    if (first < last) all.push(`M${at(first)}L${at(last)}`);
  }
  return all.join("");
}

export class Ruler {
  constructor(stage, onchange) {
    this.stage = stage;
    this.onchange = onchange;
    this.vectors = [[0, 0], [0, 0]];
    this.repeats = 0;
    this.origin = null;
    this.lines = draw("path", { class: "lattice" });
    this.cell = draw("path", { class: "cell" });
    this.rulers = draw("path", { class: "ruler" });
    this.handles = [["origin", "Start of both rulers"], ["a", "End of the first ruler"], ["b", "End of the second ruler"]].map(([name, label]) => {
      const handle = draw("circle", { class: "handle", tabindex: 0, role: "slider", "data-handle": name, "data-label": label });
      handle.addEventListener("keydown", (event) => this.onKey(event, name));
      handle.addEventListener("pointerdown", (event) => this.onDown(event, name));
      return handle;
    });
    this.element = draw("g", {}, this.lines, this.cell, this.rulers, ...this.handles);
  }

  show() {
    this.stage.layer.replaceChildren(this.element);
    this.stage.onscale = () => this.draw();
    this.draw();
  }

  hide() {
    this.stage.onscale = null;
  }

  /// Takes two vectors in pixels, x to the right and y down; one of no length = none.
  set(vectors) {
    this.vectors = structuredClone(vectors);
    // As many repeats as are read off well; the number is the person's as soon as it was changed.
    if (!this.isGiven) {
      const start = this.start();
      const room = (length, axis) => (length < 0 ? start[axis] : this.stage.size[axis] * SHARE);
      const most = this.vectors.filter(isThere).map((of) =>
        Math.min(...of.map((length, axis) => (length ? room(length, axis) / Math.abs(length) : Infinity))));
      if (most.length) this.repeats = Math.max(1, Math.min(MOST_REPEATS, Math.floor(Math.min(...most))));
    }
    this.draw();
  }

  setRepeats(repeats) {
    this.repeats = repeats;
    this.isGiven = true;
    this.draw();
  }

  start() {
    const [width, height] = this.stage.size;
    return this.origin ?? [Math.round(width / 4), Math.round(height / 4)];
  }

  vectorOf(name) {
    return { origin: [0, 0], a: this.vectors[0], b: this.vectors[1] }[name];
  }

  place(name) {
    const vector = this.vectorOf(name);
    return this.start().map((of, axis) => of + this.repeats * vector[axis]);
  }

  move(name, place) {
    if (name === "origin") {
      this.origin = place;
      this.draw();
      return;
    }
    const start = this.start();
    const vector = place.map((of, axis) => Math.round((100 * (of - start[axis])) / this.repeats) / 100);
    const index = name === "a" ? 0 : 1;
    const other = this.vectors[1 - index];
    // Vectors that lie along each other span no cell.
    if (!isThere(vector) || (isThere(other) && Math.abs(cross(vector, other)) < LEAST_PX * lengthOf(other))) return;
    const vectors = this.vectors.with(index, vector);
    // A pitch has no sign.
    if (isParallel(vectors) && (vectors[0][0] < 0 || vectors[1][1] < 0)) return;
    this.vectors = vectors;
    // Else the ruler's end would leave the pointer.
    this.isGiven = true;
    this.draw();
    this.onchange(structuredClone(this.vectors));
  }

  onKey(event, name) {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!by) return;
    event.preventDefault();
    const [x, y] = this.place(name);
    const far = event.shiftKey ? FAR : 1;
    this.move(name, [x + far * by[0], y + far * by[1]]);
  }

  onDown(event, name) {
    event.preventDefault();
    const handle = event.currentTarget;
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (moved) => this.move(name, this.snapped(name, this.stage.place(moved)));
    handle.onpointerup = handle.onpointercancel = () => { handle.onpointermove = null; };
  }

  /// The place, or one near it along the row or the column of the start.
  snapped(name, place) {
    if (name === "origin") return place;
    const across = name === "a" ? 1 : 0;
    const start = this.start();
    const isNear = Math.abs(place[across] - start[across]) * this.stage.scale <= SNAP;
    return place.map((of, axis) => (axis === across && isNear ? start[axis] : of));
  }

  draw() {
    const { scale, size } = this.stage;
    const start = this.start();
    const [a, b] = this.vectors;
    // Lines have one vector, which is normal to them.
    const normal = ([x, y]) => [-y, x];
    const lines = [[b, a], [a, b]].map(([vector, step]) => {
      if (!isThere(step)) return "";
      const direction = isThere(vector) ? vector : normal(step);
      const gap = (scale * Math.abs(cross(direction, step))) / lengthOf(direction);
      const times = Math.ceil(LEAST_GAP / gap);
      return Number.isFinite(times) ? linesOf(start, direction, step.map((of) => times * of), size) : "";
    });
    this.lines.setAttribute("d", lines.join(""));
    const isCell = isThere(a) && isThere(b);
    const to = (...vectors) => start.map((of, axis) => vectors.reduce((sum, vector) => sum + vector[axis], of)).join(" ");
    this.cell.setAttribute("d", isCell ? `M${to()}L${to(a)}L${to(a, b)}L${to(b)}z` : "");
    const ruler = (name) => (isThere(this.vectorOf(name)) ? `M${start.join(" ")}L${this.place(name).join(" ")}` : "");
    this.rulers.setAttribute("d", ruler("a") + ruler("b"));
    for (const handle of this.handles) {
      const { handle: name, label } = handle.dataset;
      const vector = this.vectorOf(name);
      const [cx, cy] = this.place(name);
      const isOrigin = name === "origin";
      const isShown = isOrigin ? isThere(a) || isThere(b) : isThere(vector);
      handle.setAttribute("cx", cx);
      handle.setAttribute("cy", cy);
      handle.setAttribute("r", 7 / scale);
      handle.setAttribute("display", isShown ? "inline" : "none");
      handle.setAttribute("aria-label", label);
      handle.setAttribute("aria-valuenow", isOrigin ? cx : lengthOf(vector));
      handle.setAttribute("aria-valuetext", isOrigin ? `at ${cx}, ${cy}` : `vector ${vector.join(", ")} px`);
    }
  }
}
