// The frames that a draft keeps: thumbnails, and a dialog for one of them.

import { countsText, make, plural, say } from "./dom.js";
import { SLOW_MS } from "./setup-draft.js";
import { button } from "./setup-fields.js";
import { Editor } from "./setup-shapes.js";
import { LOOKS, Stage } from "./setup-stage.js";

export const LABELS = { good: "good", failed: "failed" };
const WORDS = { pass: "passes", fail: "fails", none: "is not judged" };

export class KeptFrames {
  constructor(bench) {
    this.bench = bench;
    this.dialog = document.getElementById("kept");
    this.text = this.dialog.querySelector("[data-text]");
    this.stage = new Stage("Kept frame");
    this.editor = new Editor(this.stage, { names: { judge: "Missed defect" }, onchange: (shapes) => this.put({ missed: shapes.map(({ at }) => at) }) });
    this.good = button("Good piece", () => this.put({ label: "good" }));
    this.failed = button("Failed piece", () => this.put({ label: "failed" }));
    this.used = make("input", { type: "checkbox", onchange: () => this.put({ used: this.used.checked }) });
    this.missed = button("Mark what was missed", () => this.editor.begin("judge"));
    this.older = button("← Previous", () => this.leaf(-1));
    this.newer = button("Next →", () => this.leaf(1));
    this.looks = LOOKS.map(([look, text]) => button(text, () => {
      this.stage.setLook(look);
      this.show();
    }, { "data-look": look }));
    this.dialog.querySelector("[data-stage]").append(this.stage.viewport, make("div", { class: "bar" }, make("div", { class: "tools", role: "group", "aria-label": "Marks" }, this.looks), this.stage.tools));
    this.dialog.querySelector("[data-controls]").append(make("p", { class: "buttons" }, this.older, this.newer, this.good, this.failed, this.missed,
      button("Remove the frame", () => this.remove())),
    make("label", { class: "check" }, this.used, "Learn from this frame"));
    this.dialog.addEventListener("close", () => this.editor.hide());
  }

  get frames() {
    return this.bench.draft.state.frames ?? [];
  }

  get frame() {
    return this.frames.find(({ id }) => id === this.id);
  }

  /// Opens a frame; `among` are the ids that one can leaf through.
  open(id, among = this.frames.map((of) => of.id)) {
    this.among = among;
    this.id = id;
    this.dialog.showModal();
    this.show();
  }

  leaf(by) {
    const next = this.among[this.among.indexOf(this.id) + by];
    if (next == null) return;
    this.id = next;
    this.show();
  }

  async show() {
    const { frame } = this;
    if (!frame) return this.dialog.close();
    const place = this.among.indexOf(frame.id);
    this.older.disabled = place <= 0;
    this.newer.disabled = place + 1 >= this.among.length;
    say(document.getElementById("kept-title"), `${frame.label === "good" ? "Good" : "Failed"} piece: ${frame.name}`);
    this.say(frame);
    this.good.disabled = frame.label === "good";
    this.failed.disabled = frame.label !== "good";
    this.used.checked = frame.used;
    for (const of of this.looks) of.setAttribute("aria-pressed", of.dataset.look === this.stage.look);
    this.used.parentElement.hidden = frame.label !== "good";
    this.editor.show();
    this.editor.set((frame.missed ?? []).map((at) => ({ kind: "judge", at })));
    const { draft } = this.bench;
    await this.stage.show({
      picture: draft.path(`frames/${frame.id}.jpg`), mask: draft.path(`frames/${frame.id}-mask.png?${draft.sent}`),
      size: draft.state.size, defects: frame.defects, alt: `Kept frame ${frame.name}`,
    });
    this.editor.render();
  }

  say(frame) {
    const verdict = frame.verdict ? `It ${WORDS[frame.verdict] ?? "is not judged"} with these limits.` : "It was not tried yet.";
    const counts = frame.counts ? ` ${countsText(frame.counts)}` : "";
    const missed = frame.missed?.length ? ` ${plural(frame.missed.length, "missed defect")} marked${frame.is_missed ? ", and still missed" : ", and found now"}.` : "";
    say(this.text, `${verdict}${counts}${missed}`);
  }

  async put(patch) {
    const answer = await this.bench.draft.send(`frames/${this.id}`, "PUT", patch);
    if (!answer?.ok) return say(this.text, answer?.text ?? "The station does not answer.");
    await this.bench.draft.load();
    this.bench.step.onFrames?.();
    if (this.dialog.open) this.show();
  }

  async remove() {
    const { draft } = this.bench;
    const answer = await draft.ask(`frames/${this.id}`, { method: "DELETE" });
    if (!answer?.ok) return say(this.text, answer?.text ?? "The station does not answer.");
    this.dialog.close();
    await draft.load();
    this.bench.step.onFrames?.();
  }

  onState() {
    if (this.dialog.open && this.frame) this.say(this.frame);
  }

  /// A thumbnail; a click opens the frame among the others of its list.
  thumbnail(frame, note, among) {
    const { draft } = this.bench;
    const label = `${frame.label === "good" ? "Good" : "Failed"} piece ${frame.name}${note ? `, ${note}` : ""}`;
    return make("li", { class: frame.used === false ? "unused" : "", "data-frame": frame.id },
      make("button", { type: "button", title: label, "aria-label": label, onclick: () => this.open(frame.id, among) },
        make("img", { src: draft.path(`frames/${frame.id}-thumb.jpg`), alt: "", loading: "lazy" }),
        make("span", {}, frame.name), note ? make("span", { class: "muted" }, note) : null));
  }

  /// Keeps the newest live frame.
  keep(label) {
    return this.bench.draft.command("frames", { label });
  }

  /// Loads recordings or the pictures of a folder, with that label.
  collect(from, label) {
    return this.bench.draft.command("collect", { from, label }, { within: SLOW_MS });
  }
}

/// Thumbnails that stay the same elements while nothing changes: pictures do not flicker.
export function fillThumbnails(list, items) {
  const text = JSON.stringify(items.map(([frame, note]) => [frame.id, frame.label, frame.used, frame.name, note]));
  if (list.dataset.items === text) return;
  list.dataset.items = text;
  const focused = document.activeElement?.closest("[data-frame]")?.dataset.frame;
  list.replaceChildren(...items.map(([, , element]) => element()));
  if (focused) list.querySelector(`[data-frame="${CSS.escape(focused)}"] button`)?.focus();
}
