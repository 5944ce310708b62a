// The pitch as a lattice over the picture, and two rulers that correct it.

import { draw } from "./dom.js";

/// Lines closer than this on the screen are left out.
const LEAST_GAP = 5;
/// A ruler takes about this share of the picture.
const SHARE = 0.5;
const MOST_REPEATS = 10;
const FAR = 10;

export class Ruler {
  constructor(stage, onchange) {
    this.stage = stage;
    this.onchange = onchange;
    this.pitch = [0, 0];
    this.repeats = 0;
    this.origin = null;
    this.lines = draw("path", { class: "lattice" });
    this.rulers = draw("path", { class: "ruler" });
    this.handles = [["origin", "Start of both rulers"], ["x", "End of the ruler along x"], ["y", "End of the ruler along y"]].map(([name, label]) => {
      const handle = draw("circle", { class: "handle", tabindex: 0, role: "slider", "data-handle": name, "data-label": label });
      handle.addEventListener("keydown", (event) => this.onKey(event, name));
      handle.addEventListener("pointerdown", (event) => this.onDown(event, name));
      return handle;
    });
    this.element = draw("g", {}, this.lines, this.rulers, ...this.handles);
  }

  show() {
    this.stage.layer.replaceChildren(this.element);
    this.stage.onscale = () => this.draw();
    this.draw();
  }

  hide() {
    this.stage.onscale = null;
  }

  /// Takes pitches in pixels; 0 = none along that axis.
  set(pitch) {
    this.pitch = [...pitch];
    const [width, height] = this.stage.size;
    // As many repeats as are read off well; the number is the person's as soon as it was changed.
    if (!this.isGiven) {
      const most = Math.min(...[width / pitch[0], height / pitch[1]].filter((of) => Number.isFinite(of) && of > 0).map((of) => of * SHARE));
      if (Number.isFinite(most)) this.repeats = Math.max(1, Math.min(MOST_REPEATS, Math.floor(most)));
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

  place(name) {
    const [x, y] = this.start();
    if (name === "x") return [x + this.repeats * this.pitch[0], y];
    if (name === "y") return [x, y + this.repeats * this.pitch[1]];
    return [x, y];
  }

  move(name, [x, y]) {
    if (name === "origin") {
      this.origin = [x, y];
      this.draw();
      return;
    }
    const axis = name === "x" ? 0 : 1;
    const length = [x, y][axis] - this.start()[axis];
    const pitch = Math.round((100 * length) / this.repeats) / 100;
    if (pitch < 1) return;
    this.pitch[axis] = pitch;
    // Else the ruler's end would leave the pointer.
    this.isGiven = true;
    this.draw();
    this.onchange([...this.pitch]);
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
    handle.onpointermove = (moved) => this.move(name, this.stage.place(moved));
    handle.onpointerup = handle.onpointercancel = () => { handle.onpointermove = null; };
  }

  draw() {
    const [width, height] = this.stage.size;
    const { scale } = this.stage;
    const [x, y] = this.start();
    const lines = [0, 1].map((axis) => {
      const pitch = this.pitch[axis];
      const most = [width, height][axis];
      if (!(pitch >= 1)) return "";
      const step = pitch * Math.ceil(LEAST_GAP / (pitch * scale));
      const from = [x, y][axis] % step;
      const all = [];
      for (let at = from; at <= most; at += step) all.push(axis ? `M0 ${at.toFixed(2)}H${width}` : `M${at.toFixed(2)} 0V${height}`);
      return all.join("");
    });
    this.lines.setAttribute("d", lines.join(""));
    const isThere = { origin: this.pitch[0] > 0 || this.pitch[1] > 0, x: this.pitch[0] > 0, y: this.pitch[1] > 0 };
    const [endX, endY] = [this.place("x"), this.place("y")];
    this.rulers.setAttribute("d", `${isThere.x ? `M${x} ${y}H${endX[0]}` : ""}${isThere.y ? `M${x} ${y}V${endY[1]}` : ""}`);
    for (const handle of this.handles) {
      const { handle: name, label } = handle.dataset;
      const [cx, cy] = this.place(name);
      const value = name === "origin" ? `${cx}, ${cy}` : `${this.pitch[name === "x" ? 0 : 1]}`;
      handle.setAttribute("cx", cx);
      handle.setAttribute("cy", cy);
      handle.setAttribute("r", 7 / scale);
      handle.setAttribute("display", isThere[name] ? "inline" : "none");
      handle.setAttribute("aria-label", label);
      handle.setAttribute("aria-valuenow", name === "origin" ? cx : this.pitch[name === "x" ? 0 : 1]);
      handle.setAttribute("aria-valuetext", name === "origin" ? `at ${value}` : `pitch ${value} px`);
    }
  }
}
