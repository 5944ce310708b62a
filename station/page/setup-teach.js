// Step "Teach": good pieces, and what the limits are from; the references of the flat field.

import { make, number, plural, say, table } from "./dom.js";
import { NumberField, button, section } from "./setup-fields.js";
import { fillThumbnails } from "./setup-frames.js";
import { objectOf } from "./setup-object.js";

const WHITE = "Put an even white or grey sheet in front of the camera, with the lamp on and out of focus. Then press the button.";
const DARK = "Cover the lens or switch the lamp off. Then press the button.";

export class TeachStep {
  constructor(bench) {
    this.bench = bench;
    this.isJudged = true;
    this.intro = make("p", {});
    this.frames = new NumberField({ label: "Number of good pieces", least: 4, most: 64, key: "frames" });
    this.frames.set(24);
    this.start = button("Start", () => this.teach("limits"), { class: "main" });
    this.again = button("Learn again", () => this.learnAgain());
    this.takeOut = button("", () => this.useWithoutSuspects(), { hidden: true });
    this.stop = button("Stop", () => this.endTeaching(), { hidden: true });
    this.progress = make("progress", { max: 1, value: 0, "aria-label": "Good pieces collected", hidden: true });
    this.status = make("p", { class: "answer", role: "status" });
    this.limits = make("div", {});
    this.limitsSection = section("Learned limits", this.limits,
      make("p", { class: "hint" }, "Look at the piece that set a limit. If it shows a defect, take it out: the limit is learned again without it."));
    this.thumbnails = make("ul", { class: "thumbnails" });
    this.framesSection = section("Good pieces", this.thumbnails);
    this.flat = make("details", { class: "flat" }, make("summary", {}, "Even out the light (optional)"),
      make("p", { class: "hint" }, "If the corners are darker than the middle, the flat field makes all places equal. Do this before you show good pieces."),
      make("p", {}, WHITE), make("p", { class: "buttons" }, button("Take the white reference", () => this.takeReference("white"))),
      make("p", {}, DARK), make("p", { class: "buttons" }, button("Take the dark reference", () => this.takeReference("dark"))));
    this.remove = button("Do without the flat field", () => bench.draft.change({ "flat-field": null }));
    this.flat.append(make("p", { class: "buttons" }, this.remove));
    this.fields = [];
    this.elements = [make("h2", {}, "Show good pieces"), this.intro, this.frames.element,
      make("p", { class: "buttons" }, this.start, this.again, this.stop), this.progress, this.status, make("p", { class: "buttons" }, this.takeOut), this.limitsSection, this.framesSection, this.flat];
  }

  async teach(what) {
    this.showAnswer(await this.bench.draft.command("teach", { what, frames: Math.round(this.frames.value) }));
  }

  async endTeaching() {
    await this.bench.draft.ask("teach", { method: "DELETE" });
    await this.bench.draft.load();
  }

  async takeReference(what) {
    const { draft } = this.bench;
    if (!draft.settings["flat-field"]) draft.change({ "flat-field": {} });
    await this.teach(what);
  }

  async learnAgain() {
    say(this.status, "Learning …");
    this.showAnswer(await this.bench.draft.command("teach/again"));
  }

  showAnswer(problem) {
    this.problem = problem;
    this.onState();
  }

  /// Takes a frame out or in again, and learns without or with it.
  async use(id, used) {
    const answer = await this.bench.draft.send(`frames/${id}`, "PUT", { used });
    if (!answer?.ok) return this.showAnswer(answer?.text ?? "The station does not answer.");
    await this.learnAgain();
  }

  /// Takes out all pieces that need much more than the others, and learns without them.
  async useWithoutSuspects() {
    for (const id of this.suspects) {
      const answer = await this.bench.draft.send(`frames/${id}`, "PUT", { used: false });
      if (!answer?.ok) return this.showAnswer(answer?.text ?? "The station does not answer.");
    }
    await this.learnAgain();
  }

  onFrames() {
    this.onState();
  }

  onState() {
    const { draft } = this.bench;
    const { state, settings } = draft;
    const teach = state.teach ?? {};
    const isSame = objectOf(settings) === "same";
    say(this.intro, isSame
      ? "Let good pieces pass, or show the good piece again and again as it will lie later. The station learns how they look and how much they differ."
      : "Let only good pieces pass, and show all that is good. The station sets each limit just above what they need.");
    const isBusy = teach.have < teach.need || teach.is_learning;
    this.start.disabled = isBusy || !state.source;
    this.stop.hidden = !(teach.have < teach.need);
    this.progress.hidden = !isBusy;
    if (teach.is_learning) this.progress.removeAttribute("value");
    else this.progress.value = teach.need ? teach.have / teach.need : 0;
    const good = (state.frames ?? []).filter(({ label }) => label === "good");
    const used = good.filter((of) => of.used).length;
    const suspects = good.filter((of) => of.used && (teach.suspects ?? []).includes(of.id)).map(({ id }) => id);
    this.takeOut.hidden = suspects.length === 0 || isBusy;
    this.takeOut.textContent = suspects.length === 1 ? "Take this piece out" : `Take these ${suspects.length} pieces out`;
    this.suspects = suspects;
    this.again.hidden = good.length === 0;
    this.again.disabled = isBusy;
    const limits = teach.limits ?? [];
    this.status.dataset.done = !(this.problem ?? teach.problem);
    say(this.status, this.problem ?? teach.problem ?? this.statusText(teach, isBusy, used, limits));
    this.limitsSection.hidden = limits.length === 0;
    this.showLimits(limits, good);
    this.framesSection.hidden = good.length === 0;
    const sets = (id) => limits.filter(({ frame }) => frame === id).map(({ name }) => name);
    fillThumbnails(this.thumbnails, good.map((frame) => {
      const names = sets(frame.id);
      const [, demands] = (teach.demands ?? []).find(([id]) => id === frame.id) ?? [];
      const needs = demands?.length ? `needs ${demands.map((of) => number(of, 1)).join(", ")}` : limits.length ? "adds nothing" : "";
      const note = frame.used === false ? "taken out" : names.length ? `sets ${names.join(", ")}` : needs;
      return [frame, note, () => this.bench.kept.thumbnail(frame, note, good.map(({ id }) => id))];
    }));
    this.remove.parentElement.hidden = !settings["flat-field"];
  }

  statusText(teach, isBusy, used, limits) {
    const what = { white: "The white reference", dark: "The dark reference" }[teach.what];
    if (teach.is_learning) return "Learning …";
    if (isBusy) return what ? `${what}: ${teach.have} of ${teach.need} frames` : `${teach.have} of ${teach.need} good pieces`;
    if (what) return teach.done ?? `${what} was taken.`;
    return limits.length ? `${teach.done ?? `Learned from ${plural(used, "good piece")}`}. The limits are in force in this draft.` : "";
  }

  showLimits(limits, good) {
    const text = JSON.stringify([limits, good.map(({ id, name, used }) => [id, name, used])]);
    if (text === this.shown) return;
    this.shown = text;
    const taken = good.filter(({ used }) => used === false);
    const rows = table("What was learned", ["Limit", "Value", "Set by", ""], []);
    rows.querySelector("tbody").append(...limits.map(({ name, value, frame: id }) => {
      const frame = good.find((of) => of.id === id);
      const cell = (child) => make("td", {}, child);
      return make("tr", {}, cell(name), cell(number(value, 2)),
        cell(frame ? button(frame.name, () => this.bench.kept.open(id, good.map((of) => of.id)), { class: "link" }) : "–"),
        cell(frame ? button("Take out", () => this.use(id, false), { "aria-label": `Take ${frame.name} out and learn again` }) : ""));
    }));
    this.limits.replaceChildren(make("div", { class: "scroll" }, rows), ...taken.map((frame) =>
      make("p", { class: "buttons" }, make("span", { class: "muted" }, `${frame.name} was taken out.`),
        button("Put back", () => this.use(frame.id, true), { "aria-label": `Put ${frame.name} back and learn again` }))));
  }
}
