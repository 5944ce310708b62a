// The set-up of a camera: its steps as tabs, the picture, and the draft that the address names.

import { ask, askJson } from "./ask.js";
import { clock, make, number, partsText, plural, say } from "./dom.js";
import { confirmCommand, logIn } from "./questions.js";
import { CameraStep } from "./setup-camera.js";
import { Draft, beginDraft } from "./setup-draft.js";
import { button } from "./setup-fields.js";
import { KeptFrames } from "./setup-frames.js";
import { ObjectStep } from "./setup-object.js";
import { RegionsStep } from "./setup-regions.js";
import { SaveStep } from "./setup-save.js";
import { LOOKS, Stage } from "./setup-stage.js";
import { TeachStep } from "./setup-teach.js";
import { TryStep } from "./setup-try.js";

const STEPS = [
  ["camera", "Camera", CameraStep],
  ["object", "Object", ObjectStep],
  ["regions", "Regions", RegionsStep],
  ["teach", "Teach", TeachStep],
  ["try", "Try", TryStep],
  ["save", "Save", SaveStep],
];

const NO_PICTURE_MS = 5000;

const WORDS = { pass: "Pass", fail: "Fail", none: "Not judged" };

const find = (id) => document.getElementById(id);

/// The address's hash: `#draft=ID&step=NAME`, or `#camera=NAME` for a new draft.
const address = () => new URLSearchParams(location.hash.slice(1));

class Bench {
  constructor() {
    this.stage = new Stage("Live picture");
    this.verdict = make("p", { class: "state" });
    this.looks = make("div", { class: "tools", role: "group", "aria-label": "Marks" },
      ...LOOKS.map(([look, text]) =>
        button(text, () => this.setLook(look), { "data-look": look, "aria-pressed": String(look === "over") })));
    find("stage").append(this.stage.viewport, make("div", { class: "bar" }, this.verdict, this.looks, this.stage.tools));
    find("discard").addEventListener("click", () => this.discard());
    addEventListener("hashchange", () => this.go(address().get("step") ?? "camera", false));
  }

  announce(text) {
    say(find("announcements"), text);
  }

  setLook(look) {
    this.stage.setLook(look);
    for (const of of this.looks.children) of.setAttribute("aria-pressed", of.dataset.look === look);
    this.step?.onLook?.();
  }

  /// Opens the draft that the address names, or begins one.
  async start() {
    const answer = await ask("api/session");
    if (!answer?.ok) return this.fail(answer?.text ?? "The station does not answer.", () => location.reload());
    const session = JSON.parse(answer.text);
    if (session.writing !== "allowed") {
      if (!session.has_token || session.logged_in) {
        return this.fail("This station lets nobody change its settings. Set allow-writing and token-file in the station's file.");
      }
      if (!await logIn(true)) return this.fail("Log in to set up a camera.", () => location.reload());
      return this.start();
    }
    let id = address().get("draft") ?? await this.offerDrafts();
    if (!id) {
      say(find("summary"), "Opening …");
      const begun = await beginDraft(address().get("camera"));
      if (!begun.id) return this.fail(begun.problem, () => this.start());
      id = begun.id;
      history.replaceState(null, "", `#draft=${id}`);
    }
    await this.open(new Draft(id));
  }

  /// Drafts that somebody began, of this camera or of a new one; the one to go on with, or null for another.
  async offerDrafts() {
    const camera = address().get("camera");
    const all = await askJson("api/setup/drafts");
    const drafts = (all ?? []).filter((of) => (camera ? of.is_running_camera && of.name === camera : !of.is_running_camera));
    if (!drafts.length) return null;
    return new Promise((done) => {
      const text = ({ name, frames, idle_s: idle }) => `Go on with ${name}: ${plural(frames, "frame")} kept, last used ${idle < 60 ? "just now" : `${Math.floor(idle / 60)} min ago`}`;
      const main = document.querySelector("main");
      const before = [...main.children];
      const choose = (id) => () => {
        main.replaceChildren(...before);
        if (id) history.replaceState(null, "", `#draft=${id}`);
        done(id);
      };
      main.replaceChildren(make("div", { class: "empty" }, make("h2", {}, "A set-up was begun before"),
        ...drafts.map((of) => make("p", { class: "buttons" }, button(text(of), choose(of.id), { class: "main" }))),
        make("p", { class: "buttons" }, button("Begin a new one", choose(null)))));
    });
  }

  async open(draft) {
    this.draft = draft;
    const on = (type, hear) => draft.addEventListener(type, hear);
    on("over", () => this.over());
    on("lost", () => this.lost());
    on("found", () => { find("lost").hidden = true; });
    if (!await draft.load()) {
      return draft.isOver ? undefined : this.fail("The station does not answer.", () => location.reload());
    }
    find("discard").hidden = false;
    this.kept = new KeptFrames(this);
    this.steps = new Map(STEPS.map(([name, text, Step]) => {
      const step = new Step(this);
      step.id = name;
      step.tab = button("", () => this.go(name), { role: "tab", id: `step-${name}`, "aria-controls": "panel" });
      step.tab.append(make("span", { class: "count", "aria-hidden": "true" }, String(STEPS.findIndex(([of]) => of === name) + 1)), text);
      return [name, step];
    }));
    find("steps").append(...[...this.steps.values()].map(({ tab }) => tab));
    find("steps").addEventListener("keydown", (event) => this.onTabKey(event));
    on("state", () => this.onState());
    on("settings", () => this.onSettings());
    on("live", () => this.onLive());
    this.shownAt = performance.now();
    draft.onPicture = (live) => this.showLive(live);
    this.go(address().get("step") ?? "camera", false);
    this.onState();
    draft.watch();
    draft.follow();
  }

  onTabKey(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const names = [...this.steps.keys()];
    const name = names[(names.indexOf(this.step.id) + by + names.length) % names.length];
    this.go(name);
    this.steps.get(name).tab.focus();
    event.preventDefault();
  }

  /// Shows a step; `isChosen` by the person.
  go(name, isChosen = true) {
    const step = this.steps?.get(name);
    if (!step || step === this.step) return;
    this.step?.leave?.();
    this.step = step;
    this.stage.layer.replaceChildren();
    this.freeze(false);
    for (const { tab, id: of } of this.steps.values()) {
      tab.setAttribute("aria-selected", of === name);
      tab.tabIndex = of === name ? 0 : -1;
      if (of === name) tab.scrollIntoView({ inline: "center", block: "nearest" });
    }
    const names = [...this.steps.keys()];
    const [before, after] = [names[names.indexOf(name) - 1], names[names.indexOf(name) + 1]];
    const title = (of) => STEPS.find(([key]) => key === of)[1];
    const walk = make("p", { class: "buttons walk" },
      before ? button(`Back: ${title(before)}`, () => this.go(before)) : null,
      after ? button(`Next: ${title(after)}`, () => this.go(after), { class: "main", id: "next" }) : null);
    const panel = find("panel");
    panel.setAttribute("aria-labelledby", `step-${name}`);
    this.problem = make("p", { class: "error", role: "alert" });
    panel.replaceChildren(...step.elements, this.problem, walk);
    panel.scrollTop = 0;
    if (isChosen) {
      const hash = address();
      hash.set("step", name);
      history.replaceState(null, "", `#${hash}`);
      panel.focus({ preventScroll: true });
    }
    this.looks.hidden = !step.hasMask;
    this.stage.setLook(step.hasMask ? this.looks.querySelector("[aria-pressed=true]").dataset.look : "plain");
    step.enter?.();
    step.onState?.();
    this.onSettings();
    if (this.draft.live) this.onLive();
    if (this.judged) this.showVerdict(this.judged);
  }

  onState() {
    const { state, settings } = this.draft;
    say(find("title"), state.is_running_camera ? `Set up ${settings.name}` : settings.name ? `Set up ${settings.name} (new)` : "Set up a camera");
    say(find("summary"), state.is_running_camera ? "The inspection goes on as it is until you save." : "Nothing changes on the line until you save.");
    document.title = `${find("title").textContent} – Line station`;
    if (!state.source) this.stage.say("Choose a camera");
    if (state.size?.[0]) this.stage.setSize(...state.size);
    this.kept.onState();
    this.step.onState?.();
  }

  onSettings() {
    const { mistakes } = this.draft;
    const shown = (this.step.fields ?? []).map((field) => field.showMistakes(mistakes));
    say(this.problem, mistakes.filter((of) => !shown.includes(of)).map(({ key, text }) => (key ? `${key}: ${text}` : text)).join(" "));
    this.step.onSettings?.();
  }

  onLive() {
    const { live } = this.draft;
    if (live.problem) this.showVerdict(live);
    this.step.onLive?.(live);
  }

  /// The verdict stands below its picture, so it changes with it.
  showVerdict(live) {
    this.judged = live;
    if (live.problem) {
      say(this.verdict, live.problem);
      this.verdict.dataset.verdict = "none";
    } else {
      const count = live.defect_count ?? 0;
      const found = count ? `${live.overflow ? "more than " : ""}${plural(count, "defect")}` : "no defects";
      // Before the object is known a verdict means nothing. Not every camera tells its rate.
      const parts = this.step.isJudged ? [WORDS[live.verdict] ?? WORDS.none, found] : [];
      if (live.parts && this.step.isJudged) parts.push(partsText(live.parts));
      if (live.rate) parts.push(`${number(live.rate, 1)} frames/s`);
      if (live.warning) parts.push(live.warning);
      say(this.verdict, parts.join(" · "));
      this.verdict.dataset.verdict = this.step.isJudged ? live.verdict ?? "none" : "";
    }
  }

  async showLive(live) {
    const { draft, step } = this;
    if (draft.isFrozen) return;
    if (live.width == null) {
      this.stage.say(live.problem);
      return;
    }
    const shown = await this.stage.show({
      picture: draft.path(`live/${live.n}.jpg`),
      mask: step.hasMask ? draft.path(`live/${live.n}-mask.png`) : null,
      size: [live.width, live.height],
      defects: step.hasMask ? live.defects : [],
      parts: live.parts?.found ?? [],
      alt: `Live picture of ${draft.settings.name || "the camera"}`,
    });
    if (shown) this.shownAt = performance.now();
    // A page that is slow misses a picture: the station keeps the last ones only.
    else if (performance.now() - this.shownAt > NO_PICTURE_MS) this.stage.say("No picture comes from the station");
    if (shown) {
      this.showVerdict(live);
      this.note(live);
    }
    await new Promise((done) => { setTimeout(done, 0); });
  }

  /// Notes at the picture which frame it is, and how long the last change of the settings took to come to it.
  note({ n, revision }) {
    const { dataset } = this.stage.viewport;
    dataset.frame = n;
    if (revision === this.revision) return;
    this.revision = revision;
    dataset.milliseconds = Math.round(performance.now() - this.draft.changedAt);
  }

  /// Holds the picture still, or lets it live again.
  freeze(isFrozen) {
    this.draft.isFrozen = isFrozen;
  }

  lost() {
    const banner = find("lost");
    say(banner, `The station has not answered since ${clock(Date.now())}. The page tries again by itself; the station keeps your draft.`);
    banner.hidden = false;
  }

  over() {
    this.fail("This draft has ended: it was saved, discarded, or nobody worked on it for a long time.", () => {
      location.hash = "";
      location.reload();
    }, "Begin again");
  }

  fail(text, again, verb = "Try again") {
    say(find("summary"), "");
    find("discard").hidden = true;
    find("steps").replaceChildren();
    document.querySelector("main").replaceChildren(make("div", { class: "empty", role: "alert" }, make("p", {}, text),
      make("p", { class: "buttons" }, again ? button(verb, again, { class: "main" }) : null, make("a", { href: "./" }, "All cameras"))));
  }

  async discard() {
    const text = "The draft's settings and the frames that it kept are lost. The running inspection stays as it is.";
    if (!await confirmCommand("Discard this draft?", text, "Discard")) return;
    this.draft.isOver = true;
    await ask(this.draft.path(), { method: "DELETE" });
    location.href = "./";
  }

  confirm(...all) {
    return confirmCommand(...all);
  }
}

const bench = new Bench();
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  find("panel")?.focus();
});
bench.start();
