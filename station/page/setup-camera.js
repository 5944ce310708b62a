// Step "Camera": which camera, its format and light, and the focus.

import { ask } from "./ask.js";
import { make, number, say } from "./dom.js";
import { HistogramPlot } from "./plots.js";
import { ChoiceField, NumberField, RadioField, TextField, button, section } from "./setup-fields.js";

const CONTROLS = [
  ["exposure", "Exposure", "µs", 1],
  ["gain", "Gain", "", 0.1],
  ["black-level", "Black level", "", 0.1],
];

const KINDS = { running: "Cameras of this station", genicam: "GenICam camera", v4l2: "Video camera", folder: "Folder of pictures" };

/// Above this share of samples at the limit a picture has lost what a defect would show.
const MUCH_SATURATED = 0.001;
/// Brighter parts of a picture should lie above this share of the range.
const BRIGHT_ENOUGH = 0.6;

export class CameraStep {
  constructor(bench) {
    this.bench = bench;
    const { draft } = bench;
    this.choices = new RadioField({ label: "Camera", key: "source", onchange: (source) => this.choose(source) });
    this.searching = make("p", { class: "muted", role: "status" }, "Looking for cameras …");
    this.nameField = new TextField({ label: "Name", key: "name", hint: "Letters, digits, - and _. It stands on the page and in every result.", onchange: (name) => draft.change({ name }) });
    this.format = new ChoiceField({ label: "Pixel format", key: "pixel-format", onchange: (format) => draft.change({ "pixel-format": format || null }) });
    this.controls = CONTROLS.map(([key, label, unit, step]) => {
      const field = new NumberField({ label, unit, step, key, least: 0, most: 1, onchange: (value) => draft.change({ [key]: value }) });
      field.element.hidden = true;
      return field;
    });
    this.fields = [this.choices, this.nameField, this.format, ...this.controls];
    this.histogram = new HistogramPlot();
    this.light = make("p", { class: "advice" });
    this.focus = make("strong", {}, "–");
    this.best = make("span", { class: "muted" });
    this.bar = make("meter", { min: 0, max: 1, value: 0, "aria-label": "Focus, share of the best value" });
    this.lightSection = section("Light", this.histogram.element, this.light);
    this.focusSection = section("Focus", make("p", { class: "focus" }, this.focus, this.bar, this.best),
      make("p", { class: "hint" }, "Open the aperture and turn the focus ring until the figure no longer rises. Then close the aperture again."),
      button("Start the best value again", () => { this.most = 0; }));
    this.elements = [
      make("h2", {}, "Which camera?"), this.choices.element, this.searching,
      make("p", { class: "buttons" }, button("Look again", () => this.search())),
      this.nameField.element, this.format.element, ...this.controls.map(({ element }) => element),
      this.lightSection, this.focusSection];
    this.most = 0;
    this.list = [];
  }

  enter() {
    if (!this.list.length) this.search();
  }

  async search() {
    say(this.searching, "Looking for cameras …");
    const answer = await ask("api/setup/cameras", { within: 30_000 });
    this.list = answer?.ok ? JSON.parse(answer.text) : [];
    if (!answer?.ok) say(this.searching, answer?.text ?? "The station does not answer.");
    else say(this.searching, this.list.length ? "" : "No camera answers. Check its power and its cable, then look again.");
    this.onState();
    const { state } = this.bench.draft;
    // The first camera that no inspection uses is the one that was plugged in for this.
    const first = this.list.find((of) => !of.camera) ?? this.list[0];
    if (!state.source && first && !this.isChosen) this.choose(first.id);
  }

  choose(source) {
    this.isChosen = true;
    const { draft } = this.bench;
    const patch = { source };
    for (const [key] of CONTROLS) if (source !== draft.settings.source) patch[key] = null;
    draft.change(patch);
    this.most = 0;
    this.onState();
  }

  onState() {
    const { settings, state } = this.bench.draft;
    const choices = this.list.map((of) => ({ value: of.id, text: of.label, detail: of.detail, badge: of.camera ? `runs as ${of.camera}` : KINDS[of.kind] }));
    this.choices.offer(choices, settings.source ?? state.source);
    this.nameField.set(settings.name);
    this.nameField.input.disabled = state.is_running_camera;
    const formats = state.formats ?? [];
    this.format.element.hidden = formats.length === 0;
    this.format.offer([["", "The first that the inspection takes"], ...formats.map((name) => [name, name])], settings["pixel-format"] ?? "");
    CONTROLS.forEach(([key], index) => {
      const field = this.controls[index];
      const of = state.controls?.[key];
      field.element.hidden = !of;
      if (!of) return;
      field.range(of.least, of.most);
      field.set(settings[key] ?? of.value);
    });
    this.lightSection.hidden = this.focusSection.hidden = !state.source;
  }

  onLive({ histogram, saturated, focus }) {
    if (histogram?.bins) this.histogram.show({ bins: histogram.bins, histogram: { format: histogram.bins.length === 1 ? "GRAY8" : "RGB", ...histogram } });
    if (saturated != null) this.showLight(saturated, histogram);
    if (focus == null) return;
    this.most = Math.max(this.most, focus);
    say(this.focus, number(focus, 1));
    say(this.best, `best so far ${number(this.most, 1)}`);
    this.bar.value = this.most ? focus / this.most : 0;
  }

  showLight(saturated, histogram) {
    const share = `${number(100 * saturated, saturated < 0.1 ? 2 : 0)} % of the samples are saturated.`;
    const bright = histogram?.bins ? Math.max(...histogram.bins.map((bins) => percentile(bins, 0.99))) : 1;
    const isTooBright = saturated > MUCH_SATURATED;
    let text = `${share} The light is right.`;
    if (isTooBright) text = `${share} Shorten the exposure or dim the lamp: saturated pixels hide defects.`;
    else if (bright < BRIGHT_ENOUGH) text = `${share} The bright parts reach ${number(100 * bright)} % of the range: more light or a longer exposure shows fainter defects.`;
    this.light.dataset.good = !isTooBright && bright >= BRIGHT_ENOUGH;
    say(this.light, text);
  }
}

/// Where that share of the samples is reached, as a share of the range.
function percentile(bins, share) {
  const all = bins.reduce((sum, count) => sum + count, 0);
  let below = 0;
  const bin = bins.findIndex((count) => (below += count) >= share * all);
  return (bin + 1) / bins.length;
}
