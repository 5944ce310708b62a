// A draft of a camera's settings, which the station keeps: what it is, its changes, its live frames.

import { ask, send } from "./ask.js";

/// Changes within this time become one request; those that come while one is under way, too.
const GATHER_MS = 15;
const RETRY_MS = 1000;
/// The station holds a request for a live frame for up to 5 s.
const FRAME_WITHIN_MS = 15_000;
/// Measuring, opening a camera and saving take some seconds.
export const SLOW_MS = 120_000;
const STATE_EVERY_MS = 1500;
const BUSY_STATE_EVERY_MS = 250;

const DRAFTS = "api/setup/drafts";

/// Begins a draft of that camera, or of a new one; `{ id }` or `{ problem }`.
export async function beginDraft(camera) {
  const answer = await send(DRAFTS, "POST", { camera }, { within: SLOW_MS });
  if (!answer) return { problem: "The station does not answer." };
  return answer.ok ? { id: JSON.parse(answer.text).id } : { problem: answer.text };
}

/// Events: `state`, `settings` (after each answer to a change), `live`, `lost`, `found`, `over`.
export class Draft extends EventTarget {
  constructor(id) {
    super();
    this.id = id;
    this.state = null;
    this.settings = {};
    this.mistakes = [];
    this.live = null;
    this.newest = 0;
    this.changes = 0;
    this.sent = 0;
    this.changedAt = 0;
    this.isSending = false;
    this.isOver = false;
    this.wantsMask = false;
  }

  path(rest) {
    return rest ? `${DRAFTS}/${this.id}/${rest}` : `${DRAFTS}/${this.id}`;
  }

  tell(type) {
    this.dispatchEvent(new Event(type));
  }

  /// Asks the station; tells if the draft has ended or the station does not answer.
  async ask(rest, options) {
    const answer = await ask(this.path(rest), options);
    return this.judge(answer);
  }

  async send(rest, method, body, options) {
    return this.judge(await send(this.path(rest), method, body, options));
  }

  judge(answer) {
    if (!answer) this.setLost(true);
    else this.setLost(false);
    return answer;
  }

  setLost(isLost) {
    if (isLost === this.isLost || this.isOver) return;
    this.isLost = isLost;
    this.tell(isLost ? "lost" : "found");
  }

  end() {
    if (this.isOver) return;
    this.isOver = true;
    this.tell("over");
  }

  /// Takes the draft's state from the station; false if there is none.
  async load() {
    const { changes, sent } = this;
    const answer = await this.ask("");
    if (answer?.status === 404) this.end();
    if (!answer?.ok || this.isOver) return false;
    this.state = JSON.parse(answer.text);
    // What the person changed meanwhile counts more than what the station had.
    if (changes === this.changes && sent === changes) {
      this.settings = this.state.settings;
      this.settings.analysis ??= {};
    }
    this.tell("state");
    return true;
  }

  get isBusy() {
    const { teach, try: trial } = this.state ?? {};
    return teach?.is_learning || teach?.have < teach?.need || (trial?.done < trial?.all && !trial.problem);
  }

  /// Follows the state for the page's life.
  async watch() {
    while (!this.isOver) {
      await pause(this.isLost ? RETRY_MS : this.isBusy ? BUSY_STATE_EVERY_MS : STATE_EVERY_MS);
      if (!document.hidden && !this.isSending) await this.load();
    }
  }

  /// Follows the live frames for the page's life.
  async follow() {
    while (!this.isOver) {
      if (document.hidden || !this.state?.source || this.isFrozen) {
        await pause(100);
        continue;
      }
      const answer = await this.ask(`live?after=${this.newest}`, { within: FRAME_WITHIN_MS });
      if (answer?.status === 404) return this.load();
      if (!answer?.ok) {
        await pause(RETRY_MS);
        continue;
      }
      const live = JSON.parse(answer.text);
      const isNew = live.n > this.newest;
      this.live = live;
      this.newest = isNew ? live.n : this.newest;
      this.tell("live");
      if (!isNew) await pause(RETRY_MS / 2);
      // The next one is asked for when the last one is on the screen.
      else await this.onPicture?.(live);
    }
  }

  /// Changes settings; a key that is null is left out of the recipe.
  change(patch) {
    this.settings = { ...this.settings, ...patch };
    this.changes += 1;
    this.changedAt = performance.now();
    clearTimeout(this.timer);
    if (!this.isSending) this.timer = setTimeout(() => this.put(), GATHER_MS);
    this.tell("changed");
  }

  /// Changes properties of the analyzer; one that is null gets its default.
  changeAnalysis(patch) {
    const all = Object.entries({ ...this.settings.analysis, ...patch });
    this.change({ analysis: Object.fromEntries(all.filter(([, value]) => value != null)) });
  }

  /// Sends what has changed. One request at a time, and always the newest settings.
  async put() {
    if (this.isSending || this.isOver) return;
    this.isSending = true;
    while (this.sent !== this.changes && !this.isOver) {
      const mine = this.changes;
      const answer = await this.send("settings", "PUT", this.settings, { within: SLOW_MS });
      if (!answer) {
        await pause(RETRY_MS);
        continue;
      }
      this.sent = mine;
      if (answer.status === 404) this.end();
      else this.mistakes = mistakesOf(answer);
      this.tell("settings");
    }
    this.isSending = false;
    await this.load();
  }

  /// Waits until the station has all changes.
  async settled() {
    clearTimeout(this.timer);
    await this.put();
    while (this.isSending) await pause(20);
  }

  /// Asks for something to begin, and for the state after it; a sentence if it was refused.
  async command(rest, body, options) {
    await this.settled();
    const answer = await this.send(rest, "POST", body ?? {}, { within: SLOW_MS, ...options });
    await this.load();
    if (!answer) return "The station does not answer.";
    return answer.ok ? null : answer.text;
  }
}

function mistakesOf(answer) {
  if (!answer.ok) return [{ key: "", text: answer.text }];
  return JSON.parse(answer.text).mistakes ?? [];
}

export const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });
