// The card of a camera.

import { clock, countsText, dayAndClock, draw, make, number, plural, say } from "./dom.js";
import { Classes, HistogramPlot, MinutesPlot, RollPlot } from "./plots.js";

/// A failed frame stays this long on the card, though the next ones pass: people are slower.
const HOLD_MS = 1000;
/// A frame rate below this is shown with a digit after the point.
const WHOLE_RATE = 10;

const VERDICTS = {
  pass: { word: "Pass", shape: "M32 4a28 28 0 1 0 .01 0zM18 33l10 10 18-21" },
  fail: { word: "Fail", shape: "M20 4h24l16 16v24L44 60H20L4 44V20zM22 22l20 20M42 22L22 42" },
  none: { word: "Not judged", shape: "M32 4L60 58H4zM32 24v16M32 48v4" },
  missing: { word: "No results", shape: "M8 8h48v48H8zM20 32h24" },
};

const STATES = {
  starting: { word: "Starting", help: "The inspection starts. The first start compiles kernels and can take a minute." },
  running: { word: "Running", help: "" },
  "camera-lost": { word: "Camera lost", help: "Check the camera's power, cable and network. The station tries again by itself." },
  "device-lost": { word: "Device lost", help: "The OpenCL device failed. The station starts the inspection again by itself. If this repeats, restart the PC and check the device's driver." },
  "settings-refused": { word: "Settings refused", help: "Correct the camera's settings in the station's file, then run: systemctl reload clinspect-station" },
};

const COMMANDS = {
  "take-white": { verb: "Take white reference", text: "First put an even white or grey surface in front of the camera, with the lamp on. The flat field averages the next frames and replaces its white reference." },
  "take-dark": { verb: "Take dark reference", text: "First cover the lens or switch the lamp off. The flat field averages the next frames and replaces its dark reference." },
  train: { verb: "Train reference", text: "Let only good parts pass. The next frames train a new reference, which replaces the one before. Frames of the training are not judged." },
  "learn-threshold": { verb: "Learn threshold", text: "Let only good parts pass. The analyzer learns its threshold from the next frames." },
};

export class Card {
  constructor(name, actions) {
    this.name = name;
    this.actions = actions;
    this.heldUntil = 0;
    this.build();
    this.showVerdict("missing", "Waiting for the first frame");
  }

  build() {
    const { name } = this;
    const id = `camera-${name}`;
    this.status = make("p", { class: "status", "data-status": "starting" });
    this.image = make("img", { alt: `Live picture of camera ${name} with its defects marked`, hidden: true });
    this.note = make("p", { class: "note" }, "Waiting for a picture");
    this.shape = draw("path", { d: "" });
    this.word = make("strong", {});
    this.text = make("span", {});
    this.verdict = make("div", { class: "verdict" }, draw("svg", { viewBox: "0 0 64 64", "aria-hidden": "true" }, this.shape), make("p", {}, this.word, this.text));
    this.alarms = make("ul", { class: "alarms", hidden: true, "aria-label": "Alarms" });
    this.figures = {};
    const figure = (key, label, title) => {
      this.figures[key] = make("dd", {}, "–");
      return make("div", { title, class: { device: "whole", restarts: "less", lost: "less" }[key] }, make("dt", {}, label), this.figures[key]);
    };
    const figures = make("dl", { class: "figures" },
      figure("rate", "Frame rate", "Frames per second over the last seconds"),
      figure("latency", "Latency", "Mean time from capture to result, over the last seconds"),
      figure("failed", "Failed", "Failed frames since the station started"),
      figure("lost", "Lost frames", "Frames that the source lost since the station started"),
      figure("restarts", "Restarts", "Restarts of this camera's inspection"),
      figure("device", "Device", "OpenCL device"));
    const classes = new Classes();
    this.minutes = new MinutesPlot(classes);
    this.histogram = new HistogramPlot();
    this.roll = new RollPlot(classes);
    this.thumbnails = make("ul", { class: "thumbnails" });
    this.noFailures = make("p", { class: "muted" }, "No frame failed since the station started.");
    this.rollSection = section("Roll map", this.roll.element);
    this.rollSection.hidden = true;
    this.histogramSection = section("Histogram of the newest frame", this.histogram.element);
    this.histogramSection.hidden = true;
    this.buttons = make("p", { class: "buttons" });
    this.answer = make("p", { class: "answer", role: "status" });
    this.commands = section("Commands", this.buttons, this.answer);
    this.commands.classList.add("commands");
    this.commands.hidden = true;
    this.element = make("article", { class: "card", id, "aria-labelledby": `${id}-name` },
      make("header", {}, make("h2", { id: `${id}-name`, tabindex: "-1" }, make("a", { href: `#${name}` }, name)), this.status),
      make("div", { class: "look" },
        make("div", { class: "live" }, this.image, this.note), this.verdict, this.alarms),
      make("div", { class: "numbers-side" }, figures, section("Defects in the last hour", this.minutes.element), this.histogramSection),
      make("div", { class: "failures" }, section("Last failed frames", this.noFailures, this.thumbnails)),
      make("div", { class: "below" }, this.rollSection, this.commands));
  }

  /// Takes a summary from the station.
  update(now) {
    const before = this.now;
    this.now = now;
    const state = STATES[now.status] ?? STATES.starting;
    const isRunning = now.status === "running";
    this.status.dataset.status = now.status;
    say(this.status, state.word);
    if (now.fail > (before?.fail ?? now.fail)) {
      this.heldUntil = performance.now() + HOLD_MS;
      this.showVerdict("fail", now.verdict === "fail" ? this.defectsText() : "A frame failed just now");
      setTimeout(() => this.refreshVerdict(), HOLD_MS + 10);
    } else this.refreshVerdict();
    if (!isRunning) this.showNote(state.word, now.status_text, state.help);
    this.showFigures(before, now);
    this.showAlarms(alarmsNow(now));
    this.showCommands();
  }

  /// Whether results come; the station's last ones are old otherwise.
  setFresh(isFresh) {
    this.isFresh = isFresh;
    this.element.classList.toggle("old", !isFresh);
    this.refreshVerdict();
  }

  refreshVerdict() {
    const { now } = this;
    if (!now) return;
    if (!this.isFresh) this.showVerdict("missing", "No connection to the station");
    else if (now.status !== "running") this.showVerdict("missing", (STATES[now.status] ?? STATES.starting).word);
    else if (performance.now() < this.heldUntil) return;
    else if (!now.verdict) this.showVerdict("missing", "Waiting for the first frame");
    else this.showVerdict(now.verdict, this.defectsText());
  }

  defectsText() {
    const { defects, counts, overflow, verdict } = this.now;
    if (verdict === "none") return "The pattern or reference is missing";
    if (!defects) return "No defects";
    return `${overflow ? "more than " : ""}${plural(defects, "defect")}: ${countsText(counts)}`;
  }

  showVerdict(verdict, text) {
    const { word, shape } = VERDICTS[verdict] ?? VERDICTS.missing;
    say(this.word, word);
    say(this.text, text);
    if (this.shown === verdict) return;
    this.shown = verdict;
    this.shape.setAttribute("d", shape);
    this.verdict.dataset.verdict = verdict;
    this.actions.announce(this.name, `${word}. ${text}`);
  }

  showNote(title, ...lines) {
    this.image.hidden = true;
    this.note.hidden = false;
    const text = [title, ...lines].join();
    if (text === this.noteText) return;
    this.noteText = text;
    this.note.replaceChildren(make("strong", {}, title), ...lines.filter(Boolean).map((line) => make("span", {}, line)));
  }

  onPicture(isShown) {
    if (this.now && this.now.status !== "running") return;
    if (!isShown) return this.showNote("No picture comes from the station");
    this.image.hidden = false;
    this.note.hidden = true;
  }

  showFigures(before, now) {
    const { rate, latency, failed, lost, restarts, device } = this.figures;
    say(rate, now.status === "running" ? `${number(now.frame_rate, now.frame_rate < WHOLE_RATE ? 1 : 0)} /s` : "–");
    const since = this.since ?? before;
    if (since && now.frames > since.frames) {
      const mean = (now.latency_sum_us - since.latency_sum_us) / (now.frames - since.frames) / 1000;
      if (mean >= 0) say(latency, `${number(mean, mean < WHOLE_RATE ? 1 : 0)} ms`);
    }
    // The mean of some seconds is steadier than that of a tenth.
    if (!this.since || performance.now() - this.sinceWhen > 3000) {
      this.since = now;
      this.sinceWhen = performance.now();
    }
    const share = now.frames ? (100 * now.fail) / now.frames : 0;
    say(failed, `${number(now.fail)} of ${number(now.frames)} (${number(share, share < WHOLE_RATE ? 2 : 0)} %)`);
    say(lost, number(now.lost));
    say(restarts, number(now.restarts));
    say(device, now.device ?? "–");
  }

  showAlarms(alarms) {
    const text = JSON.stringify(alarms);
    if (text === this.alarmsText) return;
    this.alarmsText = text;
    this.alarms.hidden = alarms.length === 0;
    this.alarms.replaceChildren(...alarms.map(({ time_ms, text: what }) =>
      make("li", {}, time_ms ? make("time", { title: dayAndClock(time_ms) }, clock(time_ms)) : null, what)));
  }

  showCommands() {
    const offers = this.actions.mayWrite() ? this.now.offers : [];
    const text = offers.join();
    if (text === this.offersText) return;
    this.offersText = text;
    this.commands.hidden = offers.length === 0;
    this.buttons.replaceChildren(...offers.filter((offer) => COMMANDS[offer]).map((offer) =>
      make("button", { type: "button", onclick: () => this.ask(offer) }, COMMANDS[offer].verb)));
  }

  async ask(offer) {
    const { verb, text } = COMMANDS[offer];
    if (!await this.actions.confirm(`${verb} of ${this.name}?`, text, verb)) return;
    say(this.answer, "Sent to the camera …");
    const { isDone, sentence } = await this.actions.command(this.name, offer);
    this.answer.dataset.done = isDone;
    say(this.answer, sentence);
  }

  /// Takes the last hour, the failed frames and the histogram.
  updateHistory(history) {
    this.minutes.show({ now: history.now_minute, minutes: history.minutes });
    this.histogramSection.hidden = history.bins.length === 0;
    if (history.bins.length) this.histogram.show({ bins: history.bins, histogram: history.histograms?.[0] });
    this.showThumbnails(history.failures);
  }

  showThumbnails(failures) {
    const text = JSON.stringify(failures);
    if (text === this.failuresText) return;
    this.failuresText = text;
    this.noFailures.hidden = failures.length > 0;
    const ids = failures.map((of) => of.id);
    const known = new Map([...this.thumbnails.children].map((item) => [Number(item.dataset.id), item]));
    this.ids = ids;
    this.thumbnails.replaceChildren(...failures.map((of) => known.get(of.id) ?? this.thumbnail(of)));
  }

  thumbnail({ id, time, defects, counts }) {
    const label = `Failed frame, ${clock(time)}, ${plural(defects, "defect")}: ${countsText(counts)}`;
    return make("li", { "data-id": id },
      make("button", { type: "button", "aria-label": label, title: label, onclick: () => this.actions.openFailure(this.name, this.ids, id) },
        make("img", { src: `/thumbnails/${this.name}/${id}.jpg`, alt: "", loading: "lazy" }),
        make("span", {}, clock(time)), make("span", { class: "muted" }, plural(defects, "defect"))));
  }

  updateRoll(roll) {
    this.rollSection.hidden = roll.marks.length === 0;
    if (roll.marks.length) this.roll.show(roll);
  }
}

/// Alarms that are raised now, then those of the station with their times.
function alarmsNow(now) {
  const raised = (now.light_alarms ?? []).map((name) => `Light: ${name}`);
  if (now.recording_stopped) raised.push("Recording stopped: the folder or the disk takes no pictures");
  if (now.publish_dropped) raised.push(`${plural(now.publish_dropped, "result")} not published: the broker or file did not take them in time`);
  return [...raised.map((text) => ({ text })), ...now.alarms];
}

const section = (title, ...children) => make("section", {}, make("h3", {}, title), ...children);
