// Step "Object": what the camera looks at, measured and shown as a lattice that rulers correct.

import { make, number, say } from "./dom.js";
import { SLOW_MS } from "./setup-draft.js";
import { ChoiceField, NumberField, RadioField, button, section } from "./setup-fields.js";
import { Ruler, isParallel, isThere } from "./setup-ruler.js";

const OBJECTS = {
  pattern: { analyzer: "pitch", text: "Pattern", detail: "Each repeat equals the others: panel, wafer, mesh, printed web." },
  texture: { analyzer: "texture", text: "Texture", detail: "No two places are alike: woven and knitted cloth, embossed or coated web." },
  surface: { analyzer: "surface", text: "Surface", detail: "Nothing repeats, and no picture is fixed: leather, cast or ground metal, wood, paper." },
  same: { analyzer: "reference", text: "Same every time", detail: "Each frame shows the same object: label, board, part." },
};

/// Longest vector that a field sets, px; in a larger frame half of its longer side, because a repeat needs a neighbour.
const LONGEST = 200;
const longestIn = (size) => Math.max(LONGEST, ...(size ?? []).map((side) => Math.floor(side / 2)));

/// Numbers of `lattice` as two vectors: none and one vector are completed.
const vectorsOf = (lattice) => [[lattice[0] ?? 0, lattice[1] ?? 0], [lattice[2] ?? 0, lattice[3] ?? 0]];

/// What is used for an object that a person chooses against the advice.
const DEFAULTS = {
  pattern: { gaussian: { "kernel-size": 5, sigma: 0.8 }, analysis: {} },
  texture: { gaussian: null, analysis: {} },
  surface: { gaussian: null, analysis: {} },
  same: { gaussian: null, analysis: { align: "translation", normalize: "gain" } },
};

/// Where an object lies that is the same every time.
const PLACES = [["translation", "Where it was shown, moved by some pixels"], ["affine", "There, and turned by up to three degrees"],
  ["any", "Anywhere, at any angle"]];
/// Most parts of a frame.
const MOST_PARTS = 60;

/// What a surface is searched for.
const CHANNELS = [["novelty", "What good pieces have not shown"], ["novelty+dark-lines", "And dark lines, such as cracks"],
  ["novelty+bright-lines", "And bright lines, such as scratches"], ["novelty+dark-lines+bright-lines", "And lines of both kinds"],
  ["dark-lines", "Dark lines alone"], ["bright-lines", "Bright lines alone"]];

/// Objects on which nothing repeats.
const UNREPEATED = ["same", "surface"];

/// Properties that mean the same for every analyzer.
const SHARED = ["rois", "ignore", "min-area", "merge-distance", "classes", "fail", "limits", "mm-per-pixel", "bit-depth", "components"];

/// "11.30 × 8.70 px", or the vectors of a turned pattern.
function repeatText({ lattice, pitch_x: x, pitch_y: y }) {
  const text = (numbers, between) => numbers.map((of) => number(of, 2)).join(between);
  if (lattice.length) return `${[lattice.slice(0, 2), lattice.slice(2)].filter((of) => of.length).map((of) => `(${text(of, ", ")})`).join(", ")} px`;
  return x || y ? `${text([x, y], " × ")} px` : "none";
}

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
    const distance = (label, key, least, onchange) => new NumberField({ label, unit: "px", step: 0.01, least, most: LONGEST, key, onchange });
    const pitch = (axis, index) => distance(`Pitch along ${axis}`, `pitch-${axis}`, 1, (value) => this.setNumber(index, index, value));
    this.pitches = [pitch("x", 0), pitch("y", 1)];
    const component = (label, index, axis) => distance(label, "lattice", -LONGEST, (value) => this.setNumber(index, axis, value));
    this.components = [component("First vector, to the right", 0, 0), component("First vector, down", 0, 1),
      component("Second vector, to the right", 1, 0), component("Second vector, down", 1, 1)];
    this.ruler = new Ruler(bench.stage, (vectors) => this.setVectors(vectors));
    this.repeats = new NumberField({ label: "Repeats under the ruler", step: 1, least: 1, most: 50, key: "", onchange: (value) => this.ruler.setRepeats(Math.max(1, Math.round(value))) });
    this.byItself = make("input", { type: "checkbox", onchange: () => this.setByItself(this.byItself.checked) });
    this.lattice = section("One repeat of the pattern",
      make("label", { class: "check" }, this.byItself, "The inspection measures it by itself, at any angle"),
      ...[...this.pitches, ...this.components].map(({ element }) => element), this.repeats.element,
      make("p", { class: "hint" }, "The lines in the picture lie one repeat apart. If they drift off the pattern, drag a ruler's end onto the same point some repeats away, in any direction, or choose the end and press the arrow keys."));
    this.channels = new ChoiceField({ label: "What is searched for?", key: "channels", hint: "Teach again after a change: each kind has limits of its own.",
      onchange: (channels) => this.bench.draft.changeAnalysis({ channels: channels === CHANNELS[0][0] ? null : channels, thresholds: null }) });
    this.place = new ChoiceField({ label: "Where does it lie?", key: "align", hint: "Anywhere: the first good piece is the part; each later one is searched, and several may lie in a picture.",
      onchange: (align) => this.bench.draft.changeAnalysis({ align, parts: null, "search-range": null }) });
    const count = (label, index) => new NumberField({ label, step: 1, least: index, most: MOST_PARTS, key: "parts", onchange: (value) => this.setParts(index, Math.round(value)) });
    this.parts = [count("Fewest parts in a picture", 0), count("Most parts in a picture", 1)];
    this.fields = [this.choices, this.channels, this.place, ...this.parts, ...this.pitches, this.components[0]];
    this.elements = [make("h2", {}, "What is inspected?"), this.measured, this.reasons, this.numbers,
      make("p", { class: "buttons" }, this.useButton, this.measureButton), this.choices.element, this.channels.element, this.place.element,
      ...this.parts.map(({ element }) => element), this.lattice];
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

  /// The vectors that the inspection, else the advice, measured.
  get estimates() {
    const { live } = this.bench.draft;
    const { advice } = this;
    const found = [live?.estimates, advice].find((of) => of && (of.lattice.length || of.pitch_x || of.pitch_y));
    if (!found) return vectorsOf([]);
    if (found.lattice.length) return vectorsOf(found.lattice);
    // An axis that the inspection has not found yet has the advice's pitch.
    const or = (key) => found[key] || (advice?.lattice.length ? 0 : advice?.[key]) || 0;
    return [[or("pitch_x"), 0], [0, or("pitch_y")]];
  }

  /// The vectors in force: those of the settings, else what is measured.
  get vectors() {
    const { analysis = {} } = this.bench.draft.settings;
    if (analysis.lattice?.length) return vectorsOf(analysis.lattice);
    const given = ["pitch-x", "pitch-y"].map((key) => analysis[key] ?? -1);
    const measured = this.estimates;
    if (given.every((pitch) => pitch < 0)) return measured;
    // A pitch along one axis goes with the other one along the other axis.
    return given.map((pitch, axis) => measured[axis].map((of, index) => (index !== axis ? 0 : pitch < 0 ? of : pitch)));
  }

  setNumber(index, axis, value) {
    const { vectors } = this;
    vectors[index][axis] = value;
    this.setVectors(vectors);
  }

  /// Vectors along rows and columns become pitches.
  setVectors(vectors) {
    this.bench.draft.changeAnalysis(isParallel(vectors)
      ? { "pitch-x": Math.abs(vectors[0][0]), "pitch-y": Math.abs(vectors[1][1]), lattice: null }
      : { "pitch-x": null, "pitch-y": null, lattice: vectors.filter(isThere).flat() });
    this.onState();
  }

  setByItself(isByItself) {
    const { estimates } = this;
    // A pitch that was not found waits for the ruler.
    if (!isByItself) return this.setVectors(isParallel(estimates) ? vectorsOf([estimates[0][0] || 10, 0, 0, estimates[1][1] || 10]) : estimates);
    this.bench.draft.changeAnalysis({ "pitch-x": null, "pitch-y": null, lattice: null });
    this.onState();
  }

  /// The fewest are not more than the most.
  setParts(index, count) {
    const parts = [...this.bench.draft.settings.analysis?.parts ?? [1, 1]];
    parts[index] = count;
    parts[1 - index] = index ? Math.min(parts[0], count) : Math.max(parts[1], count);
    this.bench.draft.changeAnalysis({ parts });
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
    const repeats = !UNREPEATED.includes(object);
    this.lattice.hidden = !repeats;
    this.channels.element.hidden = object !== "surface";
    const align = settings.analysis?.align ?? "none";
    this.place.element.hidden = object !== "same";
    this.place.offer(align === "local" ? [...PLACES, ["local", "There, and stretched unevenly"]] : align === "none" ? [["none", "Exactly where it was shown"], ...PLACES] : PLACES, align);
    this.parts.forEach((field, index) => {
      field.element.hidden = object !== "same" || align !== "any";
      field.set((settings.analysis?.parts ?? [1, 1])[index]);
    });
    this.channels.offer(CHANNELS, settings.analysis?.channels ?? CHANNELS[0][0]);
    const { vectors } = this;
    this.ruler.set(repeats ? vectors : vectorsOf([]));
    const hasPitches = isParallel(vectors);
    const longest = longestIn(this.bench.draft.state.size);
    this.pitches.forEach((field) => field.range(1, longest));
    this.components.forEach((field) => field.range(-longest, longest));
    this.pitches.forEach((field, axis) => { field.element.hidden = !hasPitches; field.set(vectors[axis][axis] || null); });
    this.components.forEach((field, index) => { field.element.hidden = hasPitches; field.set(vectors.flat()[index]); });
    this.repeats.set(this.ruler.repeats);
    this.byItself.checked = (settings.analysis?.["pitch-x"] ?? -1) < 0 && !settings.analysis?.lattice?.length;
  }

  showAdvice(advice) {
    say(this.measured, `This looks like ${{ pattern: "a pattern", texture: "a texture", surface: "a surface", same: "the same object every time" }[advice.object]}.`);
    const reasons = JSON.stringify(advice.reasons);
    if (reasons === this.shownReasons) return;
    this.shownReasons = reasons;
    this.reasons.replaceChildren(...advice.reasons.map((reason) => make("li", {}, reason)));
    const figure = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));
    this.numbers.replaceChildren(
      figure("Contrast", `${number(advice.contrast, 1)} levels`), figure("Noise", `${number(advice.noise, 1)} levels`),
      figure("Repeat", repeatText(advice)));
  }

  onLive() {
    if (this.byItself.checked) this.onState();
  }
}
