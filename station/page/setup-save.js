// Step "Save": the recipe as text, what changes in it, and the way onto the line.

import { linesOf, make, number, say } from "./dom.js";
import { SLOW_MS } from "./setup-draft.js";
import { TextField, button } from "./setup-fields.js";

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

export class SaveStep {
  constructor(bench) {
    this.bench = bench;
    this.isJudged = true;
    this.name = new TextField({ label: "Name of the recipe", key: "recipe", hint: "One recipe for each product: letters, digits, - and _.", onchange: () => this.previewLater() });
    this.save = button("Save", () => this.write(false));
    this.use = button("Save and use it", () => this.write(true), { class: "main" });
    this.others = make("fieldset", { class: "choices", hidden: true }, make("legend", {}, "Other cameras of this recipe"));
    this.left = new Set();
    this.answer = make("div", { class: "answer", role: "status" });
    this.changes = make("pre", { class: "text", tabindex: 0, role: "region", "aria-label": "What changes" });
    this.text = make("pre", { class: "text", tabindex: 0, role: "region", "aria-label": "The recipe's text" });
    this.fields = [this.name];
    this.elements = [make("h2", {}, "Save the recipe"), this.name.element, this.others, make("p", { class: "buttons" }, this.use, this.save), this.answer,
      make("section", {}, make("h3", {}, "What changes"), this.changes),
      make("details", {}, make("summary", {}, "The whole text"), this.text)];
  }

  enter() {
    const { state, settings } = this.bench.draft;
    // A new camera beside others may be the next product, or one more camera of this one: the person says which.
    const isBeside = !state.is_running_camera && state.others.length > 0;
    if (!this.name.input.value) this.name.set((isBeside ? null : state.base?.recipe) ?? settings.name ?? "");
    this.showOthers();
    this.preview();
  }

  /// Cameras that the recipe has already, and that can be left out.
  showOthers() {
    const { others } = this.bench.draft.state;
    this.others.hidden = others.length === 0;
    const boxes = others.map((name) => make("label", { class: "check" },
      make("input", { type: "checkbox", checked: !this.left.has(name), onchange: (event) => this.leaveOut(name, !event.target.checked) }), name));
    this.others.replaceChildren(this.others.firstChild, ...boxes,
      make("p", { class: "hint" }, "A camera without a tick is not in this recipe. It stops when the station uses the recipe."));
  }

  leaveOut(name, isLeft) {
    if (isLeft) this.left.add(name);
    else this.left.delete(name);
    this.preview();
  }

  previewLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.preview(), 200);
  }

  get isNamed() {
    const isGood = NAME.test(this.name.input.value);
    say(this.name.error, isGood ? "" : "1 to 64 letters, digits, - and _.");
    return isGood;
  }

  async preview() {
    this.save.disabled = this.use.disabled = !this.isNamed;
    if (!this.isNamed) return;
    const { draft } = this.bench;
    await draft.settled();
    const name = this.name.input.value;
    const answer = await draft.ask(`recipe?name=${encodeURIComponent(name)}&without=${[...this.left].join()}`);
    if (name !== this.name.input.value) return;
    if (!answer?.ok) {
      this.save.disabled = this.use.disabled = true;
      return this.tell(false, answer?.text ?? "The station does not answer.");
    }
    const { text, changes } = JSON.parse(answer.text);
    say(this.text, text);
    this.changes.replaceChildren(...(changes.length ? linesOf(changes) : ["Nothing: the file already has this text."]));
  }

  async write(activate) {
    if (!this.isNamed) return;
    const { draft } = this.bench;
    this.save.disabled = this.use.disabled = true;
    this.tell(true, activate ? "Saving, and switching the line to it …" : "Saving …");
    await draft.settled();
    const name = this.name.input.value;
    const answer = await draft.send("save", "POST", { name, activate, without: [...this.left] }, { within: SLOW_MS });
    this.save.disabled = this.use.disabled = false;
    if (!answer) return this.tell(false, "The station does not answer. Look at the list of changes on the main page before you save again.");
    if (answer.status === 409) return this.showConflict(answer.text);
    if (!answer.ok) return this.tell(false, answer.text);
    const { hash, milliseconds, problem } = JSON.parse(answer.text);
    if (problem) {
      this.tell(false, `Saved as ${name}, version ${hash}, but not in use: ${problem}`);
      return draft.load();
    }
    const used = activate && milliseconds != null ? ` The cameras use it since now; the switch took ${number(milliseconds)} ms.` : "";
    this.tell(true, `Saved as ${name}, version ${hash}.${used}`, make("p", { class: "buttons" }, make("a", { href: "./", id: "done" }, "To the cameras")));
    await draft.load();
    if (!draft.isOver) this.preview();
  }

  /// Someone else saved meanwhile.
  showConflict(text) {
    let said = { text };
    try {
      said = JSON.parse(text);
    } catch { /* a sentence */ }
    const sentence = said.text ?? said.error ?? said.message ?? "Someone saved this recipe meanwhile.";
    const camera = this.bench.draft.state.is_running_camera ? this.bench.draft.settings.name : null;
    this.tell(false, `${sentence} Your draft would change this in the recipe as it is now:`,
      make("pre", { class: "text", tabindex: 0 }, linesOf(said.changes ?? [])),
      make("p", { class: "buttons" }, button("Begin again from the new state", () => this.beginAgain(camera))));
  }

  async beginAgain(camera) {
    const text = "What you changed in this draft is lost. The new draft has what the other person saved.";
    if (!await this.bench.confirm("Begin again?", text, "Begin again")) return;
    this.bench.draft.isOver = true;
    await this.bench.draft.ask("", { method: "DELETE" });
    location.hash = camera ? `camera=${camera}` : "";
    location.reload();
  }

  tell(isDone, text, ...more) {
    this.answer.dataset.done = isDone;
    this.answer.replaceChildren(make("p", {}, text), ...more);
  }
}
