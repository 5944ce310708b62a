// Step "Regions": what is judged and what is not, drawn on a still picture.

import { make, say } from "./dom.js";
import { button, section } from "./setup-fields.js";
import { isPolygon, pointsOf } from "./setup-geometry.js";
import { Editor } from "./setup-shapes.js";

const MOST_MASK_BYTES = 4 * 1024 * 1024;
const NAMES = { judge: "Judged rectangle", ignore: "Ignored region" };

export class RegionsStep {
  constructor(bench) {
    this.bench = bench;
    this.editor = new Editor(bench.stage, { names: NAMES, onchange: () => this.take(), onmode: (drawing) => this.onMode(drawing) });
    this.help = make("p", { class: "hint", role: "status" });
    this.list = make("ul", { class: "regions" });
    this.none = make("p", { class: "muted" }, "The whole picture is judged.");
    this.undo = button("Undo", () => this.editor.undo());
    this.redo = button("Redo", () => this.editor.redo());
    this.file = make("input", { type: "file", accept: "image/png", id: "mask-file", onchange: () => this.load() });
    this.masked = make("p", {});
    this.unmask = button("Remove the mask file", () => this.removeMask());
    this.answer = make("p", { class: "answer", role: "status" });
    this.elements = [
      make("h2", {}, "Where to look"),
      make("p", { class: "buttons" },
        button("Add a rectangle to judge", () => this.editor.begin("judge")),
        button("Add a region to ignore", () => this.editor.begin("ignore")),
        this.undo, this.redo, button("Take another picture", () => this.still())),
      this.help, this.none, this.list,
      section("Mask file", make("label", { for: "mask-file", class: "hint" }, "A PNG of the picture's size: pixels that are not black are ignored."),
        this.file, this.masked, make("p", { class: "buttons" }, this.unmask), this.answer)];
  }

  enter() {
    this.editor.show();
    this.editor.set(shapesOf(this.bench.draft.settings.analysis));
    this.onMode(null);
    this.still();
    this.showList();
    this.onState();
  }

  leave() {
    this.editor.hide();
  }

  /// Lets one frame come and keeps it on the screen.
  still() {
    const { draft } = this.bench;
    this.bench.freeze(false);
    draft.addEventListener("live", () => { this.isStillDue = true; }, { once: true });
  }

  onLive() {
    // The frame that has just come is shown before this step holds it.
    if (!this.isStillDue) return;
    this.isStillDue = false;
    setTimeout(() => { if (this.bench.step === this) this.bench.freeze(true); }, 400);
  }

  onMode(drawing) {
    const texts = {
      judge: "Drag over the part to judge; Enter takes the middle half. Escape cancels.",
      ignore: `Click each corner; click the first one again or press Enter to close. By keyboard: arrows move the cross, Space sets a corner, Enter closes, Escape cancels.${drawing?.points.length ? ` ${drawing.points.length} corners, the cross is at ${drawing.cursor.join(", ")}.` : ""}`,
    };
    say(this.help, drawing ? texts[drawing.kind] : "Drag a region or its points, or choose one with Tab and move it with the arrow keys (Shift: 10 px). Delete removes, + adds a point, Ctrl+Z undoes.");
  }

  take() {
    const { draft } = this.bench;
    const { shapes } = this.editor;
    const rois = shapes.filter((of) => !isPolygon(of)).map(({ at }) => at);
    const regions = shapes.filter(isPolygon).map(({ at }) => at);
    const { regions: before, ...ignore } = draft.settings.analysis.ignore ?? {};
    if (regions.length) ignore.regions = regions;
    draft.changeAnalysis({ rois: rois.length ? rois : null, ignore: Object.keys(ignore).length ? ignore : null });
    this.showList();
  }

  showList() {
    const { shapes } = this.editor;
    this.none.hidden = shapes.length > 0 || this.bench.draft.state.has_mask;
    this.undo.disabled = this.editor.done.length === 0;
    this.redo.disabled = this.editor.undone.length === 0;
    this.list.replaceChildren(...shapes.map((shape, index) => {
      const name = this.editor.name(index);
      const isRight = (numbers) => (isPolygon(shape) ? numbers.length >= 6 && numbers.length % 2 === 0 : numbers.length === 4 && numbers[2] > 0 && numbers[3] > 0);
      const error = make("p", { class: "error" });
      const input = make("input", {
        type: "text", value: shape.at.join(", "), "aria-label": `${name}: ${isPolygon(shape) ? "x and y of each point" : "x, y, width, height"}, in pixels`, spellcheck: "false",
        onchange: () => {
          const numbers = input.value.split(/[\s,;]+/).filter(Boolean).map(Number);
          const isGood = numbers.every(Number.isFinite) && isRight(numbers);
          say(error, isGood ? "" : isPolygon(shape) ? "Write x and y of three points or more." : "Write x, y, width and height.");
          if (isGood) this.editor.change(() => { shape.at = numbers; });
        },
      });
      const what = isPolygon(shape) ? `${pointsOf(shape).length} points` : "x, y, width, height";
      return make("li", {}, make("span", {}, make("strong", {}, name), ` ${what}`), input,
        button("Remove", () => this.editor.remove(index), { "aria-label": `Remove ${name}` }), error);
    }));
  }

  onState() {
    const { draft } = this.bench;
    say(this.masked, draft.state.has_mask ? "A mask file is in use." : "No mask file is in use.");
    this.unmask.hidden = !draft.state.has_mask;
    this.none.hidden = this.editor.shapes.length > 0 || draft.state.has_mask;
    if (this.editor.drawing || this.editor.dragging || this.list.contains(document.activeElement)) return;
    if (draft.sent !== draft.changes) return;
    const before = JSON.stringify(this.editor.shapes);
    this.editor.set(shapesOf(draft.settings.analysis));
    if (before !== JSON.stringify(this.editor.shapes)) this.showList();
  }

  async load() {
    const [file] = this.file.files;
    if (!file) return;
    if (file.size > MOST_MASK_BYTES) return this.tell(false, "The file is larger than 4 MiB.");
    const answer = await this.bench.draft.ask("mask", { method: "PUT", headers: { "Content-Type": "image/png" }, body: file, within: 60_000 });
    this.file.value = "";
    await this.tellMask(answer);
  }

  async removeMask() {
    const answer = await this.bench.draft.ask("mask", { method: "DELETE" });
    await this.tellMask(answer);
  }

  async tellMask(answer) {
    const mistakes = answer?.ok ? JSON.parse(answer.text).mistakes : [];
    if (!answer?.ok) this.tell(false, answer?.text ?? "The station does not answer.");
    else this.tell(mistakes.length === 0, mistakes.map(({ text }) => text).join(" "));
    await this.bench.draft.load();
  }

  tell(isDone, text) {
    this.answer.dataset.done = Boolean(isDone);
    say(this.answer, text);
  }
}

function shapesOf(analysis) {
  const judge = (analysis?.rois ?? []).map((at) => ({ kind: "judge", at }));
  const ignore = (analysis?.ignore?.regions ?? []).map((at) => ({ kind: "ignore", at }));
  return [...judge, ...ignore];
}
