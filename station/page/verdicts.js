// What people say about frames: "false alarm" on one that failed, "missed here" with a rectangle on any that was recorded.
// The rectangle is drawn by mouse or touch, or moved by the keyboard.

import { NO_ANSWER, ask, askJson } from "./ask.js";
import { dayAndClock, draw, make, number, plural, say } from "./dom.js";

/// Steps of a key, as a share of the longer side.
const STEP = 0.01;
/// A smaller rectangle is a click that was not meant, px.
const LEAST = 2;

/// The picture of a dialog with what people said about it, and buttons to say it.
export class Judging {
  /// `image` stays where it is, in a box with what is drawn over it; the buttons come behind.
  constructor(image) {
    this.image = image;
    image.draggable = false;
    this.marks = draw("svg", { class: "marks", "aria-hidden": "true" });
    this.box = make("div", { class: "marked" });
    image.replaceWith(this.box);
    this.box.append(image, this.marks);
    this.text = make("p", { class: "said", role: "status" });
    this.place = make("p", { class: "muted", role: "status", hidden: true });
    const button = (text, onclick, attributes = {}) => make("button", { type: "button", onclick, ...attributes }, text);
    this.falseAlarm = button("False alarm", () => this.post({ verdict: "false-alarm" }));
    this.missed = button("Missed here", () => this.begin());
    this.takeBack = button("Take back", () => this.post({ verdict: null }));
    this.keep = button("Mark this place", () => this.end(true), { class: "main" });
    this.cancel = button("Cancel", () => this.end(false));
    this.buttons = make("p", { class: "buttons", role: "group", "aria-label": "What do you say about this frame?" },
      this.falseAlarm, this.missed, this.takeBack, this.keep, this.cancel);
    this.box.after(this.place, this.buttons, this.text);
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("pointerdown", (event) => this.press(event));
    this.box.addEventListener("pointermove", (event) => this.drag(event));
    this.box.addEventListener("pointerup", () => { this.from = null; });
    this.box.addEventListener("pointercancel", () => { this.from = null; });
    image.addEventListener("load", () => this.show());
    this.set(null);
  }

  /// Shows a frame: `{ path, size, said, isFailed, mayWrite, why }`. `why` says why nothing can be said about it; null
  /// shows none.
  set(frame) {
    this.frame = frame;
    this.drawn = null;
    say(this.text, "");
    this.show();
  }

  show() {
    const { frame, drawn } = this;
    const { said } = frame ?? {};
    const mayJudge = Boolean(frame?.mayWrite && !frame.why);
    this.buttons.hidden = !mayJudge;
    this.falseAlarm.hidden = Boolean(drawn) || !frame?.isFailed || said?.verdict === "false-alarm";
    this.missed.hidden = Boolean(drawn) || !this.image.naturalWidth;
    say(this.missed, said?.verdict === "missed" ? "Missed here, too" : "Missed here");
    this.takeBack.hidden = Boolean(drawn) || !said;
    this.keep.hidden = this.cancel.hidden = this.place.hidden = !drawn;
    this.box.classList.toggle("drawing", Boolean(drawn));
    if (!drawn) say(this.text, frame ? saidText(frame) : "");
    this.showMarks();
  }

  showMarks() {
    const [width, height] = [this.image.naturalWidth, this.image.naturalHeight];
    const boxes = this.frame?.said?.boxes ?? [];
    const { drawn } = this;
    // As the picture itself lies in its element.
    this.marks.setAttribute("viewBox", `0 0 ${width || 1} ${height || 1}`);
    const mark = ([x, y, w, h], name) => {
      const [across, down] = this.scale();
      return draw("rect", { class: name, x: x / across, y: y / down, width: w / across, height: h / down });
    };
    this.marks.replaceChildren(...boxes.map((box) => mark(box, "was")), ...(drawn ? [mark(drawn, "now")] : []));
    if (drawn) {
      const [x, y, w, h] = drawn.map((of) => number(Math.round(of)));
      say(this.place, `Rectangle at ${x}, ${y}: ${w} × ${h} px. Draw around the defect, or use the arrow keys; with Shift they change the size. Enter marks the place.`);
    }
  }

  /// Pixels of the frame in one of the picture.
  scale() {
    const [width, height] = this.frame.size;
    return [width / (this.image.naturalWidth || width), height / (this.image.naturalHeight || height)];
  }

  begin() {
    const [width, height] = this.frame.size;
    const side = Math.max(1, Math.round(Math.min(width, height) / 8));
    this.drawn = [Math.round((width - side) / 2), Math.round((height - side) / 2), side, side];
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "application");
    this.box.setAttribute("aria-label", "Rectangle around the defect: arrow keys move it, Shift and arrow keys change its size, Enter marks the place, Escape cancels");
    this.show();
    this.box.focus();
  }

  end(isKept) {
    const { drawn } = this;
    this.drawn = null;
    this.box.removeAttribute("tabindex");
    this.box.removeAttribute("role");
    this.box.removeAttribute("aria-label");
    this.show();
    this.missed.focus();
    if (!isKept || !drawn) return;
    const { said } = this.frame;
    const before = said?.verdict === "missed" ? said.boxes : [];
    this.post({ verdict: "missed", boxes: [...before, drawn.map(Math.round)] });
  }

  key(event) {
    if (!this.drawn) return;
    const [width, height] = this.frame.size;
    const step = Math.max(1, Math.round(Math.max(width, height) * STEP));
    const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
    if (by) {
      const [x, y, w, h] = this.drawn;
      this.drawn = event.shiftKey ? [x, y, w + by[0], h + by[1]] : [x + by[0], y + by[1], w, h];
      this.fit();
    } else if (event.key === "Enter") this.end(true);
    else if (event.key === "Escape") this.end(false);
    else return;
    // Not for the dialog, which would leaf or close.
    event.preventDefault();
    event.stopPropagation();
  }

  /// Keeps the rectangle in the frame.
  fit() {
    const [width, height] = this.frame.size;
    const [x, y, w, h] = this.drawn;
    const size = [Math.min(Math.max(w, LEAST), width), Math.min(Math.max(h, LEAST), height)];
    this.drawn = [Math.min(Math.max(x, 0), width - size[0]), Math.min(Math.max(y, 0), height - size[1]), ...size];
    this.showMarks();
  }

  /// The frame's pixel under the pointer.
  at(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.marks.getScreenCTM().inverse());
    const [across, down] = this.scale();
    const [width, height] = this.frame.size;
    return [Math.min(Math.max(point.x * across, 0), width), Math.min(Math.max(point.y * down, 0), height)];
  }

  press(event) {
    if (!this.drawn || event.button !== 0) return;
    event.preventDefault();
    this.box.focus();
    this.box.setPointerCapture(event.pointerId);
    this.from = this.at(event);
  }

  drag(event) {
    if (!this.drawn || !this.from) return;
    const [from, to] = [this.from, this.at(event)];
    const size = [0, 1].map((axis) => Math.abs(to[axis] - from[axis]));
    if (Math.max(...size) < LEAST) return;
    this.drawn = [Math.min(from[0], to[0]), Math.min(from[1], to[1]), ...size].map(Math.round);
    this.fit();
  }

  async post(body) {
    const mine = this.frame;
    const answer = await ask(mine.path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (this.frame !== mine) return;
    if (!answer?.ok) return say(this.text, answer?.text ?? NO_ANSWER);
    mine.said = JSON.parse(answer.text).said;
    mine.onSaid?.(mine.said);
    const buttons = [...this.buttons.children];
    const focused = document.activeElement;
    this.show();
    if (buttons.includes(focused) && focused.hidden) buttons.find((of) => !of.hidden)?.focus();
  }
}

/// What was said, or why nothing can be said.
function saidText({ said, why, mayWrite }) {
  if (!said) return why && mayWrite ? why : "";
  const by = [said.who, said.time ? dayAndClock(said.time) : ""].filter(Boolean).join(", ");
  const what = said.verdict === "false-alarm"
    ? "False alarm: this frame counts as a good one."
    : `Missed: ${plural(said.boxes?.length ?? 0, "place")} marked. This frame counts as a failed one.`;
  return by ? `${what} (${by})` : what;
}

/// Why nothing can be said about a frame without a recording.
export const NOT_RECORDED = "Nothing can be said about this frame, because it is not recorded; set recording in the station's file.";

let recordings = null;

/// Opens the recorded frames of a camera, the newest first.
export function openRecordings(camera, mayWrite) {
  recordings ??= new Recordings();
  recordings.open(camera, mayWrite);
}

class Recordings {
  constructor() {
    this.title = make("h2", { id: "recordings-title" });
    this.text = make("p", { class: "muted", role: "status" });
    this.image = make("img", { "data-picture": true, alt: "" });
    this.newer = make("button", { type: "button", onclick: () => this.step(-1) }, "← Newer");
    this.older = make("button", { type: "button", onclick: () => this.step(1) }, "Older →");
    const close = make("button", { type: "button", autofocus: true, onclick: () => this.dialog.close() }, "Close");
    this.dialog = make("dialog", { id: "recordings", class: "wide", "aria-labelledby": "recordings-title" },
      make("header", {}, this.title, close), this.text, this.image,
      make("nav", { "aria-label": "Recorded frames" }, this.newer, this.older));
    document.body.append(this.dialog);
    this.judging = new Judging(this.image);
    this.dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowLeft") this.step(-1);
      if (event.key === "ArrowRight") this.step(1);
    });
  }

  async open(camera, mayWrite) {
    Object.assign(this, { camera, mayWrite, frames: [], at: 0, isWhole: false });
    say(this.title, `Recorded frames of ${camera}`);
    this.clear();
    this.dialog.showModal();
    await this.more();
    this.show();
  }

  clear() {
    this.image.removeAttribute("src");
    this.image.hidden = true;
    this.judging.set(null);
    say(this.text, "Loading …");
    this.newer.disabled = this.older.disabled = true;
  }

  /// Loads older ones.
  async more() {
    const { camera, frames } = this;
    const last = frames.at(-1)?.name;
    const answer = await askJson(`api/cameras/${camera}/recordings${last ? `?before=${last}` : ""}`);
    // Another camera, or the same one opened again.
    if (frames !== this.frames) return;
    this.isLost = !answer;
    if (!answer) return;
    frames.push(...answer.recordings);
    this.isWhole = answer.recordings.length === 0;
  }

  async step(by) {
    const at = this.at + by;
    if (at < 0 || this.isLoading) return;
    this.isLoading = true;
    if (at >= this.frames.length && !this.isWhole) await this.more();
    this.isLoading = false;
    if (at < this.frames.length) this.at = at;
    this.show();
  }

  show() {
    const { camera, frames, at } = this;
    const frame = frames[at];
    if (!frame) {
      this.clear();
      return say(this.text, this.isLost ? NO_ANSWER : "No frame is recorded yet.");
    }
    const hadFocus = document.activeElement;
    this.newer.disabled = at === 0;
    this.older.disabled = this.isWhole && at + 1 >= frames.length;
    // A button that is switched off loses the keys for the dialog.
    if (hadFocus?.disabled) (this.newer.disabled ? this.older : this.newer).focus();
    const isFailed = frame.role === "failed";
    say(this.text, `${isFailed ? "Failed frame" : "Frame before or after a failed one"}: ${number(frame.frame)}, ${dayAndClock(frame.time)}`);
    this.image.hidden = false;
    this.image.alt = `Recorded frame ${frame.frame} of camera ${camera}`;
    this.image.src = `recordings/${camera}/${frame.name}.jpg`;
    this.judging.set({
      path: `api/cameras/${camera}/recordings/${frame.name}/verdict`,
      size: frame.size,
      said: frame.said,
      isFailed,
      mayWrite: this.mayWrite && Boolean(frame.size),
      onSaid: (said) => { frame.said = said; },
    });
  }
}
