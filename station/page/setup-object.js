// Step "Object": what the camera looks at, measured and shown as a lattice that a ruler corrects.

import { make, number, say } from "./dom.js";
import { SLOW_MS } from "./setup-draft.js";
import { NumberField, RadioField, button, section } from "./setup-fields.js";
import { Ruler } from "./setup-ruler.js";

const OBJECTS = {
  pattern: { analyzer: "pitch", text: "Pattern", detail: "Each repeat equals the others: panel, wafer, mesh, printed web." },
  texture: { analyzer: "texture", text: "Texture", detail: "No two places are alike: woven and knitted cloth, embossed or coated web." },
  same: { analyzer: "reference", text: "Same every time", detail: "Each frame shows the same object: label, board, part." },
};

/// What is used for an object that a person chooses against the advice.
const DEFAULTS = {
  pattern: { gaussian: { "kernel-size": 5, sigma: 0.8 }, analysis: {} },
  texture: { gaussian: null, analysis: {} },
  same: { gaussian: null, analysis: { align: "translation", normalize: "gain" } },
};

/// Properties that mean the same for every analyzer.
const SHARED = ["rois", "ignore", "min-area", "merge-distance", "classes", "fail", "limits", "mm-per-pixel", "bit-depth", "components"];

export const objectOf = (settings) => Object.keys(OBJECTS).find((name) => OBJECTS[name].analyzer === settings.analyzer) ?? "pattern";

export class ObjectStep {
  constructor(bench) {
    this.bench = bench;
    this.choices = new RadioField({ label: "What does the camera look at?", key: "analyzer", onchange: (object) => this.choose(object) });
    this.measured = make("p", { class: "advice", role: "status" });
    this.reasons = make("ul", { class: "reasons" });
    this.numbers = make("dl", { class: "figures" });
    this.measureButton = button("Measure again", () => this.measure());
    this.useButton = button("Use the advice", () => this.use(), { class: "main", hidden: true });
    const pitch = (axis, key) => new NumberField({ label: `Pitch along ${axis}`, unit: "px", step: 0.01, least: 1, most: 200, key, onchange: (value) => this.setPitch(key, value) });
    this.pitches = [pitch("x", "pitch-x"), pitch("y", "pitch-y")];
    this.ruler = new Ruler(bench.stage, (pitches) => this.setPitches(pitches));
    this.repeats = new NumberField({ label: "Repeats under the ruler", step: 1, least: 1, most: 50, key: "", onchange: (value) => this.ruler.setRepeats(Math.max(1, Math.round(value))) });
    this.byItself = make("input", { type: "checkbox", onchange: () => this.setByItself(this.byItself.checked) });
    this.lattice = section("Pitch: one repeat of the pattern",
      make("label", { class: "check" }, this.byItself, "The inspection measures the pitch by itself"),
      ...this.pitches.map(({ element }) => element), this.repeats.element,
      make("p", { class: "hint" }, "The lines in the picture lie one pitch apart. If they drift off the pattern, drag a ruler's end onto the same point some repeats away, or choose the end and press the arrow keys."));
    this.fields = [this.choices, ...this.pitches];
    this.elements = [make("h2", {}, "What is inspected?"), this.measured, this.reasons, this.numbers,
      make("p", { class: "buttons" }, this.useButton, this.measureButton), this.choices.element, this.lattice];
  }

  enter() {
    const { source } = this.bench.draft.state;
    // What was measured of another camera says nothing of this one.
    if (this.measuredOf !== undefined && this.measuredOf !== source) {
      this.advice = null;
      this.isChosen = false;
      this.isOther = true;
    }
    if (!this.advice && !this.isMeasuring) this.measure();
    this.ruler.show();
    this.onState();
  }

  leave() {
    this.ruler.hide();
  }

  async measure() {
    const { draft } = this.bench;
    if (!draft.state.source) return say(this.measured, "Choose a camera first.");
    this.isMeasuring = true;
    this.measuredOf = draft.state.source;
    this.measureButton.disabled = true;
    this.reasons.replaceChildren();
    this.numbers.replaceChildren();
    this.shownReasons = null;
    say(this.measured, "Measuring some frames …");
    await draft.settled();
    const answer = await draft.send("measure", "POST", {}, { within: SLOW_MS });
    this.isMeasuring = false;
    this.measureButton.disabled = false;
    if (!answer?.ok) return say(this.measured, answer?.text ?? "The station does not answer.");
    this.advice = JSON.parse(answer.text);
    // Nobody has chosen yet: the advice is the beginning.
    const isNew = !draft.state.is_running_camera && !this.isChosen && (this.isOther || Object.keys(draft.settings.analysis ?? {}).length === 0);
    this.isOther = false;
    if (isNew) this.use();
    this.onState();
  }

  use() {
    this.isChosen = true;
    const { settings } = this.advice;
    this.setAnalyzer(settings.analyzer, settings.gaussian, settings.analysis);
  }

  /// Whether the settings are those of the advice.
  isAdvised({ analyzer, analysis, gaussian }) {
    const { settings } = this.advice;
    const isSame = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);
    return analyzer === settings.analyzer && isSame(gaussian, settings.gaussian)
      && Object.entries(settings.analysis).every(([key, value]) => isSame(analysis?.[key], value));
  }

  choose(object) {
    this.isChosen = true;
    const { advice } = this;
    const of = advice?.object === object ? advice.settings : DEFAULTS[object];
    this.setAnalyzer(OBJECTS[object].analyzer, of.gaussian, of.analysis);
  }

  setAnalyzer(analyzer, gaussian, analysis) {
    const { draft } = this.bench;
    const shared = Object.entries(draft.settings.analysis ?? {}).filter(([key]) => SHARED.includes(key));
    draft.change({ analyzer, gaussian: gaussian ?? null, analysis: { ...Object.fromEntries(shared), ...analysis } });
    this.onState();
  }

  get estimates() {
    const { live } = this.bench.draft;
    return [live?.estimates?.pitch_x, live?.estimates?.pitch_y].map((of, index) => of || this.advice?.[["pitch_x", "pitch_y"][index]] || 0);
  }

  /// The pitches in force: those of the settings, else what the inspection measures.
  get pitchesNow() {
    const { analysis = {} } = this.bench.draft.settings;
    const measured = this.estimates;
    return ["pitch-x", "pitch-y"].map((key, index) => (analysis[key] == null || analysis[key] < 0 ? measured[index] : analysis[key]));
  }

  setPitch(key, value) {
    const [x, y] = this.pitchesNow;
    this.setPitches(key === "pitch-x" ? [value, y] : [x, value]);
  }

  setPitches([x, y]) {
    this.bench.draft.changeAnalysis({ "pitch-x": x, "pitch-y": y });
    this.onState();
  }

  setByItself(isByItself) {
    const [x, y] = this.estimates;
    this.bench.draft.changeAnalysis(isByItself ? { "pitch-x": null, "pitch-y": null } : { "pitch-x": x || 10, "pitch-y": y || 10 });
    this.onState();
  }

  onState() {
    const { settings } = this.bench.draft;
    const object = objectOf(settings);
    const { advice } = this;
    this.choices.offer(Object.entries(OBJECTS).map(([value, of]) =>
      ({ value, text: of.text, detail: of.detail, badge: advice?.object === value ? "advised" : null })), object);
    this.useButton.hidden = !advice || this.isAdvised(settings);
    if (advice && !this.isMeasuring) this.showAdvice(advice);
    this.lattice.hidden = object === "same";
    this.ruler.set(object === "same" ? [0, 0] : this.pitchesNow);
    this.pitches.forEach((field, index) => field.set(this.pitchesNow[index] || null));
    this.repeats.set(this.ruler.repeats);
    this.byItself.checked = (settings.analysis?.["pitch-x"] ?? -1) < 0;
  }

  showAdvice(advice) {
    say(this.measured, `This looks like ${{ pattern: "a pattern", texture: "a texture", same: "the same object every time" }[advice.object]}.`);
    const reasons = JSON.stringify(advice.reasons);
    if (reasons === this.shownReasons) return;
    this.shownReasons = reasons;
    this.reasons.replaceChildren(...advice.reasons.map((reason) => make("li", {}, reason)));
    const figure = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));
    this.numbers.replaceChildren(
      figure("Contrast", `${number(advice.contrast, 1)} levels`), figure("Noise", `${number(advice.noise, 1)} levels`),
      figure("Pitch", advice.pitch_x || advice.pitch_y ? `${number(advice.pitch_x, 2)} × ${number(advice.pitch_y, 2)} px` : "none"));
  }

  onLive() {
    if (this.byItself.checked) this.onState();
  }
}
