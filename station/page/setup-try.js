// Step "Try": limits are moved, and at once the live picture and the kept frames say what they do.

import { draw, make, number, plural, say } from "./dom.js";
import { ChoiceField, NumberField, TextField, button, section } from "./setup-fields.js";
import { fillThumbnails } from "./setup-frames.js";
import { objectOf } from "./setup-object.js";

/// A trial of all kept frames begins when the person rests for so long.
const REST_MS = 200;

/// Limits by analyzer: property, label, unit, range, step, default.
const LIMITS = {
  pitch: [["threshold", "Threshold", "grey levels", 1, 128, 0.1, 12]],
  reference: [["threshold", "Threshold", "grey levels", 1, 128, 0.1, 20], ["deviation-factor", "Deviation factor", "", 0, 32, 0.1, 4]],
  texture: [],
  surface: [],
};
/// Names of the limits that a texture, or a surface, has for its channels. Directions of lines follow those of the rows.
const DIRECTIONS = ["0°", "18°", "45°", "72°", "90°", "108°", "135°", "162°"];
const CHANNELS = {
  texture: () => ["Fine residue", "Residue, 4 px", "Residue, 9 px", "Residue, 33 px", "Mean", "Mean, 10 px", "Flatness"],
  surface: ({ channels = "novelty" }) => {
    const lines = (name, text) => (channels.includes(name) ? DIRECTIONS.map((angle) => `${text} at ${angle}`) : []);
    return [...(channels.includes("novelty") ? ["Novelty"] : []), ...lines("dark-lines", "Dark lines"), ...lines("bright-lines", "Bright lines")];
  },
};
const MOST_CHANNELS = 17;

export class TryStep {
  constructor(bench) {
    this.bench = bench;
    this.isJudged = true;
    this.hasMask = true;
    const { draft } = bench;
    const limit = ([key, label, unit, least, most, step]) => new NumberField({ key, label, unit, least, most, step, onchange: (value) => draft.changeAnalysis({ [key]: value }) });
    this.limits = Object.fromEntries(Object.entries(LIMITS).map(([name, all]) => [name, all.map(limit)]));
    this.factor = new NumberField({
      label: "All learned limits", unit: "%", key: "thresholds", least: 50, most: 200, step: 1, onchange: (percent) => this.scale(percent),
      hint: "100 % is what was learned: less finds fainter defects, more lets more pass.",
    });
    this.channels = Array.from({ length: MOST_CHANNELS }, (_, index) => new NumberField({ label: "", key: `thresholds-${index}`, least: 0.1, most: 100, step: 0.01, onchange: (value) => this.setChannel(index, value) }));
    this.channelDetails = make("details", {}, make("summary", {}, "Each limit"), ...this.channels.map(({ element }) => element));
    this.area = new NumberField({ label: "Smallest defect", unit: "pixels", key: "min-area", least: 1, most: 1000, onchange: (value) => draft.changeAnalysis({ "min-area": Math.round(value) }) });
    this.count = new NumberField({ label: "Defects that a good frame may have", key: "fail", least: 0, most: 20, onchange: (value) => this.setFail(Math.round(value)) });
    this.levels = new ChoiceField({ label: "Faint stains", key: "scales", hint: "Levels that also compare means of blocks, so that stains fainter than the noise are found.", onchange: (value) => draft.changeAnalysis({ scales: Number(value) || null }) });
    this.classes = new TextField({ label: "Classes", isLong: true, key: "classes", hint: "Such as scratch: elongation > 4 and major > 20; particle: area < 60", onchange: (text) => draft.changeAnalysis({ classes: text.trim() || null }) });
    this.fields = [...Object.values(this.limits).flat(), this.factor, ...this.channels, this.area, this.count, this.levels, this.classes];
    this.ignored = draw("g", { "aria-hidden": "true" });
    draft.addEventListener("changed", () => { if (bench.step === this) this.showTrial(draft.state.try ?? {}); });
    this.good = make("p", { class: "tally" });
    this.failed = make("p", { class: "tally" });
    this.progress = make("progress", { max: 1, value: 0, "aria-label": "Kept frames tried", hidden: true });
    this.status = make("p", { class: "answer", role: "status" });
    this.groups = ["Good pieces that do not pass", "Faulty pieces that are not found", "Judged differently than before", "All kept frames"].map((title, index) => {
      const list = make("ul", { class: "thumbnails" });
      const heading = make("h3", {}, title);
      const element = index === 3 ? make("details", {}, make("summary", {}, title), list) : make("section", {}, heading, list);
      element.hidden = true;
      return { title, list, heading, element };
    });
    this.source = make("select", { id: "collect-from" });
    this.label = make("select", { "aria-label": "What these frames show" }, make("option", { value: "good" }, "as good"), make("option", { value: "failed" }, "as failed"));
    this.elements = [make("h2", {}, "Try the limits"),
      make("div", { class: "tallies", role: "group", "aria-label": "Kept frames" }, this.good, this.failed), this.progress, this.status,
      ...this.fields.filter((field) => !this.channels.includes(field)).map(({ element }) => element), this.channelDetails,
      ...this.groups.slice(0, 3).map(({ element }) => element),
      section("Kept frames", make("p", { class: "buttons" }, button("Keep this frame as good", () => this.keep("good")), button("Keep this frame as failed", () => this.keep("failed"))),
        make("label", { for: "collect-from" }, "Add frames from"), make("div", { class: "collect" }, this.source, this.label, button("Add", () => this.collect()))),
      this.groups[3].element];
  }

  /// From the first trial on the station tries the frames again after each change of the settings.
  enter() {
    this.offerSources();
    this.bench.stage.layer.replaceChildren(this.ignored);
    this.tryLater();
  }

  get frames() {
    return this.bench.draft.state.frames ?? [];
  }

  async offerSources() {
    const camera = this.bench.steps.get("camera");
    if (!camera.list.length) await camera.search();
    const folders = camera.list.filter(({ kind }) => kind === "folder");
    const chosen = this.source.value;
    this.source.replaceChildren(make("option", { value: "recordings" }, "Recorded frames of this camera"),
      ...folders.map(({ id, label }) => make("option", { value: id }, `Folder ${label}`)));
    if (chosen) this.source.value = chosen;
  }

  tryLater() {
    if (this.bench.step !== this || this.frames.length === 0) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tryNow(), REST_MS);
    this.due = this.timer;
  }

  async tryNow() {
    const { due } = this;
    const problem = await this.bench.draft.command("try");
    if (due === this.due) this.due = null;
    if (problem) this.tell(problem);
    this.onState();
  }

  tell(problem) {
    this.status.dataset.done = !problem;
    say(this.status, problem ?? "");
  }

  async keep(label) {
    this.tell(await this.bench.kept.keep(label));
    this.tryLater();
  }

  async collect() {
    const before = this.frames.length;
    say(this.status, "Loading frames …");
    // People have said of each recording what it shows.
    const label = this.source.value === "recordings" ? undefined : this.label.value;
    const problem = await this.bench.kept.collect(this.source.value, label);
    this.tell(problem);
    if (!problem) say(this.status, `${plural(this.frames.length - before, "frame")} added.`);
    this.tryLater();
  }

  onFrames() {
    this.tryLater();
    this.onState();
  }

  setFail(count) {
    const { "defect-count": _, ...rest } = this.bench.draft.settings.analysis.fail ?? {};
    const fail = count === 0 ? rest : { ...rest, "defect-count": count };
    this.bench.draft.changeAnalysis({ fail: Object.keys(fail).length ? fail : null });
  }

  /// Scales what was learned.
  scale(percent) {
    const learned = this.learned ?? [];
    this.bench.draft.changeAnalysis({ thresholds: learned.map((value) => Number(((value * percent) / 100).toFixed(3))) });
  }

  setChannel(index, value) {
    const all = [...this.bench.draft.settings.analysis.thresholds];
    all[index] = value;
    this.bench.draft.changeAnalysis({ thresholds: all });
  }

  onState() {
    const { settings, state } = this.bench.draft;
    const { analysis = {}, analyzer } = settings;
    for (const [name, fields] of Object.entries(this.limits)) {
      fields.forEach((field, index) => {
        const [key, , , , , , usual] = LIMITS[name][index];
        field.element.hidden = name !== analyzer;
        if (name === analyzer) field.set(analysis[key] ?? usual);
      });
    }
    this.showThresholds(CHANNELS[analyzer] ? analysis.thresholds : null, CHANNELS[analyzer]?.(analysis) ?? []);
    this.area.set(analysis["min-area"] ?? 1);
    this.count.set(analysis.fail?.["defect-count"] ?? 0);
    this.levels.element.hidden = analyzer !== "pitch";
    this.levels.offer([["0", "Compare pixels only"], ["1", "1 level"], ["2", "2 levels"], ["3", "3 levels"], ["4", "4 levels"]], String(analysis.scales ?? 0));
    this.classes.set(analysis.classes ?? "");
    this.ignored.replaceChildren(...(analysis.ignore?.regions ?? []).map((at) => draw("polygon", { class: "ignored", points: at.join(" ") })));
    this.showTrial(state.try ?? {});
  }

  showThresholds(thresholds, labels) {
    this.factor.element.hidden = this.channelDetails.hidden = !thresholds?.length;
    if (!thresholds?.length) return;
    // What was learned last, or what the recipe has.
    const of = JSON.stringify([this.bench.draft.state.teach?.limits, thresholds.length]);
    if (of !== this.learnedOf) {
      this.learnedOf = of;
      this.learned = [...thresholds];
    }
    this.factor.set((100 * thresholds[0]) / this.learned[0]);
    this.channels.forEach((field, index) => {
      field.element.hidden = index >= thresholds.length;
      if (index < thresholds.length) {
        field.setLabel(labels[index] ?? `Limit ${index + 1}`);
        field.set(thresholds[index]);
      }
    });
  }

  showTrial(trial) {
    const isBusy = trial.done < trial.all && !trial.problem;
    if (trial.problem) this.tell(trial.problem);
    this.progress.hidden = !isBusy;
    this.progress.value = trial.all ? trial.done / trial.all : 0;
    const rows = trial.rows ?? [];
    const frame = (id) => this.frames.find((kept) => kept.id === id);
    // Those that were taken out do not count, here and in the lists.
    const isGood = ({ id }) => frame(id)?.label === "good";
    const counted = rows.filter((row) => frame(row.id)?.used);
    // A failed frame in which people marked a place must have a defect there, as on the command line.
    const isMissed = (row) => Boolean(frame(row.id)?.is_missed);
    const isRight = (row) => row.verdict === (isGood(row) ? "pass" : "fail") && !isMissed(row);
    const isOpen = isBusy || Boolean(trial.problem) || this.due != null || this.bench.draft.sent !== this.bench.draft.changes;
    const tally = (element, words, none, isMine) => {
      const all = this.frames.filter((kept) => kept.used && isMine(kept)).length;
      const mine = counted.filter(isMine);
      const right = mine.filter(isRight).length;
      const isTried = !isOpen && mine.length === all;
      say(element, all === 0 ? none : `${words}: ${isTried ? number(right) : "…"} of ${number(all)}`);
      element.dataset.verdict = !isTried || all === 0 ? "" : right === all ? "pass" : "fail";
    };
    tally(this.good, "Good pieces pass", "No good pieces kept", isGood);
    tally(this.failed, "Faulty pieces found", "No faulty pieces kept", (of) => !isGood(of));
    const words = { pass: "passes", fail: "fails", none: "not judged" };
    const note = (row) => (row.verdict === "fail" && isMissed(row) ? "fails, but not at the marked place" : row.before && row.before !== row.verdict ? `${words[row.verdict]}, before: ${words[row.before]}` : words[row.verdict] ?? "");
    const kinds = [
      counted.filter((row) => isGood(row) && !isRight(row)),
      counted.filter((row) => !isGood(row) && !isRight(row)),
      counted.filter((row) => row.before && row.before !== row.verdict && isRight(row)),
      this.frames.map(({ id }) => rows.find((row) => row.id === id) ?? { id }),
    ];
    kinds.forEach((all, index) => {
      const { element, list, heading, title } = this.groups[index];
      const shown = all.filter((row) => frame(row.id));
      element.hidden = shown.length === 0;
      say(index === 3 ? element.firstChild : heading, `${title}: ${shown.length}`);
      const ids = shown.map(({ id }) => id);
      fillThumbnails(list, shown.map((row) => [frame(row.id), note(row), () => this.bench.kept.thumbnail(frame(row.id), note(row), ids)]));
    });
  }

  onLook() {
    const { live } = this.bench.draft;
    if (live?.n) this.bench.showLive(live);
  }
}
