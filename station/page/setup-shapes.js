// Draws rectangles and polygons over a picture, by mouse, by touch and by keyboard.

import { draw } from "./dom.js";
import { isPolygon, marksOf, movePoint, moveShape, nearestEdge, pointsOf, previewOf, rectangle } from "./setup-geometry.js";

const FAR = 10;
/// A pointer that moved less drew no rectangle.
const LEAST_SIDE = 3;
const MOST_POINTS = 1000;
const HANDLE = 6;

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Editor {
  /// `names`: what people call a shape, by its kind. `onchange` hears of each change that is done.
  constructor(stage, { names, onchange, onmode }) {
    this.stage = stage;
    this.names = names;
    this.onchange = onchange;
    this.onmode = onmode ?? (() => {});
    this.shapes = [];
    this.selected = -1;
    this.drawing = null;
    this.undone = [];
    this.done = [];
    this.element = draw("g", {});
    const { svg } = stage;
    svg.addEventListener("pointerdown", (event) => this.onDown(event));
    // The mark that was pressed has a new element by now: the browser would take the focus away from it.
    svg.addEventListener("mousedown", (event) => { if (this.drawing || this.dragging) event.preventDefault(); });
    svg.addEventListener("pointermove", (event) => this.onMove(event));
    svg.addEventListener("pointerup", (event) => this.onUp(event));
    svg.addEventListener("pointercancel", () => this.onCancel());
    svg.addEventListener("dblclick", (event) => this.onDouble(event));
    svg.addEventListener("keydown", (event) => this.onKey(event));
    svg.addEventListener("focusin", (event) => this.onFocus(event));
  }

  get isShown() {
    return this.element.isConnected;
  }

  show() {
    this.stage.layer.replaceChildren(this.element);
    this.stage.onscale = () => this.render();
    this.render();
  }

  hide() {
    this.cancel();
    this.stage.onscale = null;
    this.element.remove();
    this.stage.svg.removeAttribute("tabindex");
  }

  /// Takes shapes from elsewhere; what was done before cannot be undone any more.
  set(shapes) {
    if (JSON.stringify(shapes) === JSON.stringify(this.shapes)) return;
    this.shapes = structuredClone(shapes);
    this.done = [];
    this.undone = [];
    this.selected = Math.min(this.selected, shapes.length - 1);
    this.render();
  }

  name(index) {
    const shape = this.shapes[index];
    const nth = this.shapes.slice(0, index + 1).filter(({ kind }) => kind === shape.kind).length;
    return `${this.names[shape.kind]} ${nth}`;
  }

  // What happens to shapes.

  change(edit) {
    this.done.push(JSON.stringify(this.shapes));
    this.undone = [];
    edit();
    this.commit();
  }

  commit() {
    this.render();
    this.onchange(this.shapes);
  }

  undo() {
    this.step(this.done, this.undone);
  }

  redo() {
    this.step(this.undone, this.done);
  }

  step(from, to) {
    if (!from.length) return;
    to.push(JSON.stringify(this.shapes));
    this.shapes = JSON.parse(from.pop());
    this.selected = Math.min(this.selected, this.shapes.length - 1);
    this.commit();
  }

  remove(index) {
    this.change(() => {
      this.shapes.splice(index, 1);
      this.selected = Math.min(index, this.shapes.length - 1);
    });
    this.focus(this.selected);
  }

  removePoint(index, point) {
    const shape = this.shapes[index];
    if (!isPolygon(shape) || shape.at.length <= 6) return this.remove(index);
    this.change(() => shape.at.splice(2 * point, 2));
    this.focus(index, Math.max(0, point - 1));
  }

  /// A new point half way to the next one.
  insertPoint(index, point, place) {
    const shape = this.shapes[index];
    if (!isPolygon(shape) || shape.at.length >= 2 * MOST_POINTS) return;
    const points = pointsOf(shape);
    const [a, b] = [points[point], points[(point + 1) % points.length]];
    const middle = place ?? [0, 1].map((axis) => Math.round((a[axis] + b[axis]) / 2));
    this.change(() => shape.at.splice(2 * point + 2, 0, ...middle));
    this.focus(index, point + 1);
  }

  // Drawing of a new shape.

  begin(kind) {
    const [width, height] = this.stage.size;
    const middle = [Math.round(width / 2), Math.round(height / 2)];
    this.drawing = { kind, points: [], cursor: middle };
    this.selected = -1;
    this.render();
    this.stage.svg.focus({ preventScroll: true });
    this.onmode(this.drawing);
  }

  cancel() {
    if (!this.drawing) return;
    this.drawing = null;
    this.render();
    this.onmode(null);
  }

  finish(at) {
    const { kind } = this.drawing;
    this.drawing = null;
    this.change(() => {
      this.shapes.push({ kind, at });
      this.selected = this.shapes.length - 1;
    });
    this.onmode(null);
    this.focus(this.selected);
  }

  addPoint(place) {
    const { points } = this.drawing;
    const last = points.at(-1);
    if (last && last[0] === place[0] && last[1] === place[1]) return;
    if (points.length < MOST_POINTS) points.push(place);
    this.drawing.cursor = place;
    this.render();
  }

  close() {
    const { points } = this.drawing;
    if (points.length >= 3) this.finish(points.flat());
  }

  // Pointers.

  onDown(event) {
    if (!this.isShown || event.button > 0) return;
    const place = this.stage.place(event);
    if (this.drawing) {
      event.preventDefault();
      this.stage.svg.focus({ preventScroll: true });
      if (!isPolygon(this.drawing)) {
        this.drawing.from = this.drawing.cursor = place;
        this.stage.svg.setPointerCapture(event.pointerId);
      } else if (this.isFirst(place)) this.close();
      else this.addPoint(place);
      return;
    }
    const [index, point] = keyOf(event.target);
    if (index < 0) {
      this.selected = -1;
      return this.render();
    }
    event.preventDefault();
    this.focus(index, point);
    this.dragging = { index, point, from: [...this.shapes[index].at], place, before: JSON.stringify(this.shapes) };
    this.stage.svg.setPointerCapture(event.pointerId);
  }

  isFirst([x, y]) {
    const [first] = this.drawing.points;
    return this.drawing.points.length >= 3 && Math.hypot(first[0] - x, first[1] - y) * this.stage.scale < 2 * HANDLE;
  }

  onMove(event) {
    if (!this.isShown) return;
    const place = this.stage.place(event);
    const { drawing, dragging } = this;
    if (drawing) {
      drawing.cursor = place;
      this.renderSoon();
    } else if (dragging) {
      const shape = this.shapes[dragging.index];
      if (dragging.point >= 0) {
        shape.at = [...dragging.from];
        movePoint(shape, dragging.point, place);
      } else moveShape(shape, dragging.from, [place[0] - dragging.place[0], place[1] - dragging.place[1]], this.stage.size);
      this.renderSoon();
    }
  }

  onUp(event) {
    if (!this.isShown) return;
    const { drawing, dragging } = this;
    this.dragging = null;
    if (drawing?.from) {
      const at = rectangle(drawing.from, this.stage.place(event));
      drawing.from = null;
      if (at[2] >= LEAST_SIDE && at[3] >= LEAST_SIDE) this.finish(at);
      else this.render();
    } else if (dragging) {
      if (dragging.before === JSON.stringify(this.shapes)) return;
      this.done.push(dragging.before);
      this.undone = [];
      this.commit();
    }
  }

  onCancel() {
    if (this.dragging) this.shapes = JSON.parse(this.dragging.before);
    this.dragging = null;
    if (this.isShown) this.render();
  }

  /// Closes the polygon that is drawn, or adds a point to the edge under the pointer.
  onDouble(event) {
    if (!this.isShown) return;
    if (this.drawing) return isPolygon(this.drawing) ? this.close() : undefined;
    const [index, point] = keyOf(event.target);
    if (index < 0 || point >= 0 || !isPolygon(this.shapes[index])) return;
    const place = this.stage.place(event);
    this.insertPoint(index, nearestEdge(this.shapes[index], place), place);
  }

  // Keys.

  onKey(event) {
    if (!this.isShown) return;
    const isControl = event.ctrlKey || event.metaKey;
    const by = ARROWS[event.key]?.map((of) => of * (event.shiftKey ? FAR : 1));
    const [index, point] = keyOf(event.target);
    const done = () => event.preventDefault();
    if (isControl && event.key.toLowerCase() === "z") (done(), event.shiftKey ? this.redo() : this.undo());
    else if (isControl && event.key.toLowerCase() === "y") (done(), this.redo());
    else if (isControl) return;
    else if (this.drawing) this.onDrawingKey(event, by);
    else if (index < 0) return;
    else if (by) (done(), this.moveBy(index, point, by));
    else if (event.key === "Delete" || event.key === "Backspace") (done(), point >= 0 ? this.removePoint(index, point) : this.remove(index));
    else if ((event.key === "Insert" || event.key === "+") && point >= 0) (done(), this.insertPoint(index, point));
    else if (event.key === "Escape" && point >= 0) (done(), this.focus(index));
  }

  onDrawingKey(event, by) {
    const { drawing } = this;
    const [width, height] = this.stage.size;
    const keys = [" ", "Enter", "Escape", "Backspace"];
    if (!by && !keys.includes(event.key)) return;
    event.preventDefault();
    if (by) {
      drawing.cursor = [Math.min(width, Math.max(0, drawing.cursor[0] + by[0])), Math.min(height, Math.max(0, drawing.cursor[1] + by[1]))];
      this.render();
      this.onmode(drawing);
    } else if (event.key === "Escape") this.cancel();
    else if (event.key === "Backspace") (drawing.points.pop(), this.render());
    else if (isPolygon(drawing)) event.key === " " ? (this.addPoint(drawing.cursor), this.onmode(drawing)) : this.close();
    else this.finish([Math.round(width / 4), Math.round(height / 4), Math.round(width / 2), Math.round(height / 2)]);
  }

  moveBy(index, point, [dx, dy]) {
    const shape = this.shapes[index];
    const [width, height] = this.stage.size;
    this.change(() => {
      if (point < 0) return moveShape(shape, [...shape.at], [dx, dy], [width, height]);
      const [x, y] = pointsOf(shape)[point];
      return movePoint(shape, point, [Math.min(width, Math.max(0, x + dx)), Math.min(height, Math.max(0, y + dy))]);
    });
    this.focus(index, point);
  }

  onFocus(event) {
    const [index] = keyOf(event.target);
    if (index < 0 || index === this.selected || !this.isShown) return;
    this.selected = index;
    this.render();
  }

  focus(index, point = -1) {
    this.selected = index;
    this.render();
    this.element.querySelector(`[data-key="${index} ${point}"]`)?.focus({ preventScroll: true });
  }

  // The picture.

  renderSoon() {
    this.isDue ||= requestAnimationFrame(() => { this.isDue = 0; this.render(); });
  }

  render() {
    if (!this.isShown) return;
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const { svg, scale } = this.stage;
    svg.classList.toggle("drawing", Boolean(this.drawing));
    if (this.drawing) svg.setAttribute("tabindex", "0");
    else svg.removeAttribute("tabindex");
    this.element.replaceChildren(...this.marks(HANDLE / scale), ...previewOf(this.drawing, HANDLE / scale));
    if (focused) this.element.querySelector(`[data-key="${focused}"]`)?.focus({ preventScroll: true });
  }

  marks(radius) {
    return this.shapes.flatMap((shape, index) => {
      const isSelected = index === this.selected;
      return marksOf(shape, { name: this.name(index), key: index, isSelected, hasPoints: isSelected && !this.drawing, radius });
    });
  }
}

/// Which shape and point an element stands for; -1 = none.
function keyOf(element) {
  const key = element.dataset?.key;
  return key ? key.split(" ").map(Number) : [-1, -1];
}
