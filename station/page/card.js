// The card of a camera.

import { clock, countsText, dayAndClock, draw, make, number, partsText, plural, say } from "./dom.js";
import { Classes, HistogramPlot, MinutesPlot, RollPlot } from "./plots.js";

/// A failed frame stays this long on the card, though the next ones pass: people are slower.
const HOLD_MS = 1000;
/// The verdict of an older frame says its age.
const SHOW_AGE_MS = 3000;
/// The verdict of an older frame is grey: from afar, only a new one has a colour.
const OLD_VERDICT_MS = 10_000;
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
  learn: { verb: "Learn limits", text: "Let only good parts pass. The analyzer learns its limits from the next frames." },
  "take-reference": { verb: "Take light reference", text: "First adjust the light and let a good part pass. The histogram takes the next frame's median grey level; the alarm lamp-drift counts from it." },
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
    this.setUp = make("a", { class: "set-up", href: `setup.html#camera=${name}`, "aria-label": `Set up ${name}`, hidden: true }, "Set up");
    this.image = make("img", { alt: `Live picture of camera ${name} with its defects marked`, hidden: true });
    this.placeholder = make("p", { class: "placeholder" }, "Waiting for a picture");
    this.shape = draw("path", { d: "" });
    this.word = make("strong", {});
    this.text = make("span", {});
    this.age = make("span", {});
    this.verdict = make("div", { class: "verdict" }, draw("svg", { viewBox: "0 0 64 64", "aria-hidden": "true" }, this.shape), make("p", {}, this.word, make("span", {}, this.text, this.age)));
    this.alarms = make("ul", { class: "alarms", hidden: true, "aria-label": "Alarms" });
    this.figures = {};
    const figure = (key, label, title) => {
      this.figures[key] = make("dd", {}, "–");
      return make("div", { title, class: { device: "whole", sent: "whole", alignment: "whole", parts: "whole", answer: "whole", restarts: "less", lost: "less", missed: "less" }[key] }, make("dt", {}, label), this.figures[key]);
    };
    const figures = make("dl", { class: "figures" },
      figure("rate", "Frame rate", "Frames per second over the last seconds"),
      figure("latency", "Latency", "Mean time from the arrival of a frame to its result, over the last seconds"),
      figure("failed", "Failed", "Failed frames since the station started"),
      figure("lost", "Lost frames", "Frames that the source lost since the station started"),
      figure("missed", "Late, fault", "Frames since the station started that the machine had to reject because they had no result at their deadline, or none at all"),
      figure("restarts", "Restarts", "Restarts of this camera's inspection"),
      figure("answer", "Answer to the machine", "Number and outcome of the newest frame, and the time from its arrival"),
      figure("parts", "Parts", "The parts of the newest frame, with place and angle of each"),
      figure("alignment", "Alignment", "How the newest frame lies, compared with the reference"),
      figure("sent", "Picture", "What the camera was asked for and sends, and what becomes of it before the inspection"),
      figure("device", "Device", "OpenCL device"));
    const classes = new Classes();
    this.minutes = new MinutesPlot(classes);
    this.histogram = new HistogramPlot();
    this.roll = new RollPlot(classes);
    this.thumbnails = make("ul", { class: "thumbnails" });
    this.noFailures = make("p", { class: "muted" }, "No frame failed since the station started.");
    this.recordings = make("button", { type: "button", class: "recordings", hidden: true, onclick: () => this.actions.openRecordings(name, this.actions.mayWrite()) }, "Recorded frames");
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
      make("header", {}, make("h2", { id: `${id}-name`, tabindex: "-1" }, make("a", { href: `#${name}` }, name)), this.setUp, this.status),
      make("div", { class: "picture-side" },
        make("div", { class: "live" }, this.image, this.placeholder), this.verdict, this.alarms),
      make("div", { class: "numbers-side" }, figures, section("Defects in the last hour", this.minutes.element), this.histogramSection),
      make("div", { class: "failures" }, section("Last failed frames", this.noFailures, this.thumbnails, this.recordings)),
      make("div", { class: "below" }, this.rollSection, this.commands));
  }

  /// Takes a summary from the station.
  update(now) {
    // Frames that failed while the page was hidden did not fail just now.
    const before = this.isFresh ? this.now : null;
    this.now = now;
    this.reportAt = performance.now() - (now.age_ms ?? 0);
    this.setFresh(true);
    const state = STATES[now.status] ?? STATES.starting;
    const isRunning = now.status === "running";
    this.status.dataset.status = now.status;
    say(this.status, state.word);
    if (isRunning && now.verdict && now.fail > (before?.fail ?? now.fail)) {
      this.heldUntil = performance.now() + HOLD_MS;
      this.showVerdict("fail", now.verdict === "fail" ? this.defectsText() : "A frame failed just now");
      setTimeout(() => this.refreshVerdict(), HOLD_MS + 10);
    } else this.refreshVerdict();
    if (!isRunning) this.showNote(state.word, now.status_text, state.help);
    this.showFigures(before, now);
    this.refreshAlarms();
    this.showCommands();
    this.recordings.hidden = !now.is_recording;
  }

  /// Whether results come; the station's last ones are old otherwise.
  setFresh(isFresh) {
    if (isFresh === this.isFresh) return;
    this.isFresh = isFresh;
    this.element.classList.toggle("old", !isFresh);
    if (isFresh) return;
    this.refreshVerdict();
    this.refreshAlarms();
    // Nobody knows whether it runs, and what the machine gets.
    this.status.dataset.status = "unknown";
    say(this.status, "No connection");
    for (const name of ["rate", "latency", "answer"]) say(this.figures[name], "–");
  }

  /// Whether the newest verdict is that of the camera now, not of one that has stopped.
  get isJudged() {
    return this.isFresh && this.now?.status === "running" && this.now.verdict != null;
  }

  refreshVerdict() {
    const { now } = this;
    if (!now) return;
    if (!this.isFresh) this.showVerdict("missing", "No connection to the station");
    else if (now.status !== "running") this.showVerdict("missing", (STATES[now.status] ?? STATES.starting).word);
    else if (!now.verdict) this.showVerdict("missing", "Waiting for the first frame");
    else if (performance.now() < this.heldUntil) return;
    else this.showVerdict(now.verdict, this.defectsText());
  }

  defectsText() {
    const { defects, counts, overflow, verdict } = this.now;
    const progress = [answerText(this.now.answer), progressText(this.now)].filter(Boolean).join(" · ");
    const why = this.now.blind_limit ? blindText(this.now.blind_limit) : progress ? "" : "The pattern or reference is missing";
    if (verdict === "none") return [why, progress].filter(Boolean).join(" · ");
    const found = defects ? `${overflow ? "more than " : ""}${plural(defects, "defect")}: ${countsText(counts)}` : "No defects";
    return progress ? `${found} · ${progress}` : found;
  }

  /// Says how old the verdict is. Needs no network, and is called twice a second.
  showAge() {
    const age = this.isJudged ? performance.now() - this.reportAt : 0;
    say(this.age, age < SHOW_AGE_MS ? "" : ` · ${ago(age)}`);
    const isOld = age >= OLD_VERDICT_MS;
    this.verdict.classList.toggle("aged", isOld);
    if (isOld) say(this.figures.rate, "–");
  }

  showVerdict(verdict, text) {
    const { word, shape } = VERDICTS[verdict] ?? VERDICTS.missing;
    say(this.word, word);
    say(this.text, text);
    this.showAge();
    if (this.shown === verdict) return;
    this.shown = verdict;
    this.shape.setAttribute("d", shape);
    this.verdict.dataset.verdict = verdict;
    this.actions.announce(this.name, `${word}. ${text}`);
  }

  showNote(title, ...lines) {
    this.image.hidden = true;
    this.placeholder.hidden = false;
    const text = [title, ...lines].join();
    if (text === this.placeholderText) return;
    this.placeholderText = text;
    this.placeholder.replaceChildren(make("strong", {}, title), ...lines.filter(Boolean).map((line) => make("span", {}, line)));
  }

  onPicture(isShown) {
    if (this.now && this.now.status !== "running") return;
    if (!isShown) return this.showNote("No picture comes from the station");
    this.image.hidden = false;
    this.placeholder.hidden = true;
  }

  showFigures(before, now) {
    const { rate, latency, failed, lost, answer, missed, restarts, alignment, parts, sent, device } = this.figures;
    parts.parentElement.hidden = !now.parts;
    if (now.parts) say(parts, [partsText(now.parts), ...now.parts.found.map(partText)].join("; "));
    // Of several parts there is no one place.
    alignment.parentElement.hidden = !now.alignment || Boolean(now.parts);
    if (now.alignment) say(alignment, alignmentText(now.alignment));
    say(rate, this.isJudged ? `${number(now.frame_rate, now.frame_rate < WHOLE_RATE ? 1 : 0)} /s` : "–");
    if (!before) this.since = null;
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
    answer.parentElement.hidden = !now.answer;
    if (now.answer) say(answer, `${now.answer.outcome}, number ${now.answer.sequence}, after ${number(now.answer.latency_ms, 1)} ms`);
    say(missed, `${number(now.late)}, ${number(now.fault)}`);
    say(restarts, number(now.restarts));
    say(sent, now.sent ?? "–");
    say(device, now.device ?? "–");
  }

  refreshAlarms() {
    if (!this.now) return;
    const alarms = alarmsNow(this.now, this.isJudged);
    const text = JSON.stringify(alarms);
    if (text === this.alarmsText) return;
    this.alarmsText = text;
    this.alarms.hidden = alarms.length === 0;
    this.alarms.replaceChildren(...alarms.map(({ time_ms, text: what, times }) =>
      make("li", {}, time_ms ? make("time", { title: dayAndClock(time_ms) }, clock(time_ms)) : null,
        make("span", { class: "what", title: what }, what), times > 1 ? make("span", { class: "times" }, `${number(times)} times`) : null)));
  }

  showCommands() {
    this.setUp.hidden = !this.actions.mayWrite();
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
    const known = new Map([...this.thumbnails.children].map((item) => [item.dataset.key, item]));
    this.failures = failures;
    this.thumbnails.replaceChildren(...failures.map((of) => known.get(key(of)) ?? this.thumbnail(of)));
  }

  thumbnail(failure) {
    const { id, time, defects, counts, no_picture: why } = failure;
    const open = () => this.actions.openFailure(this.name, this.failures, this.failures.find((of) => key(of) === key(failure)), this.actions.mayWrite());
    const label = `Failed frame, ${clock(time)}, ${plural(defects, "defect")}: ${countsText(counts)}`;
    return make("li", { "data-key": key(failure) },
      make("button", { type: "button", "aria-label": label, title: label, onclick: open },
        why
          ? make("span", { class: "no-picture muted", title: why }, "No picture")
          : make("img", { src: `thumbnails/${this.name}/${id}.jpg?${encodeURIComponent(time)}`, alt: "", loading: "lazy" }),
        make("span", {}, clock(time)), make("span", { class: "muted" }, plural(defects, "defect"))));
  }

  /// Takes the newest web with its defects; its number is null if the camera inspects none.
  updateRoll(roll) {
    this.rollSection.hidden = roll.web == null;
    if (roll.web != null) this.roll.show(roll);
  }
}

/// The station counts failed frames from 1 after each start, so the number alone is not enough.
const key = ({ id, time }) => `${id} ${time}`;

/// What the alignment used, where it is less than all: a fallback is told.
const STEPS = { affine: "", shift: "shift only", start: "first estimate of the shift only", none: "none" };

/// Where a part lies.
function partText({ number: n, x, y, x_mm: xMm, y_mm: yMm, angle, score, cut, verdict }) {
  const at = xMm == null ? `${number(x, 1)}, ${number(y, 1)} px` : `${number(xMm, 2)}, ${number(yMm, 2)} mm`;
  return `${n} ${cut ? "cut by the edge" : verdict} at ${at}, ${number(angle, 1)}°, score ${number(score, 2)}`;
}

/// "turned by 0.13°, scale 1.0125, shift 3.3, −1.5 px, largest local shift 0.8 px, misfit 2.3, score 0.96"
function alignmentText(of) {
  if (!of.matched) return `No match, score ${number(of.match_score, 2)}`;
  const parts = [STEPS[of.step] ?? ""];
  if (of.step === "affine") parts.push(`turned by ${number(of.rotation_degrees, 2)}°`, `scale ${number(of.scale, 4)}`);
  if (of.step !== "none") parts.push(`shift ${number(of.shift_x, 1)}, ${number(of.shift_y, 1)} px`);
  if (of.largest_local_shift > 0) parts.push(`largest local shift ${number(of.largest_local_shift, 1)} px`);
  if (of.misfit > 0) parts.push(`misfit ${number(of.misfit, 1)}`);
  parts.push(`score ${number(of.match_score, 2)}`);
  return parts.filter(Boolean).join(", ");
}

/// "training, 3 of 25 frames; learning, 7 of 24 frames"
const progressText = ({ training, learning }) =>
  [["training", training], ["learning", learning]]
    .filter(([, of]) => of)
    .map(([name, { frames, all }]) => `${name}, ${number(frames)} of ${number(all)} frames`)
    .join("; ");

/// "The limit threshold is too high to see a defect: it marks differences from 129.0 grey levels on, half of the range is 93.0"
const blindText = ({ name, marks, reach }) =>
  `The limit ${name} is too high to see a defect: it marks differences from ${number(marks, 1)} grey levels on, half of the range is ${number(reach, 1)}`;

function ago(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 120) return `${seconds} s ago`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min ago` : `${Math.floor(minutes / 60)} h ago`;
}

/// What the machine was told, if it is not the verdict.
function answerText(answer) {
  if (!answer || VERDICTS[answer.outcome]) return "";
  return `the machine was told ${answer.outcome}`;
}

/// Alarms that are raised now, then numbers of what was lost, then the station's alarms with their times.
function alarmsNow(now, isJudged) {
  const raised = isJudged ? now.light_alarms.map((name) => `Light: ${name}`) : [];
  if (now.recording_stopped) raised.push("Failed frames are not recorded now: the folder is missing, or the disk is full or refuses files");
  if (now.publish_connected === false) raised.push("Results are not published now: the broker or the file cannot be reached");
  if (now.corrupted) raised.push(`${plural(now.corrupted, "frame")} flagged as corrupted by the source since the station started: packets were lost`);
  const { publish_dropped: unsent, recording_dropped: skipped, recording_errors: refused } = now;
  if (unsent) raised.push(`${plural(unsent, "result")} not published since the station started: too many waited`);
  if (skipped) raised.push(`${plural(skipped, "frame")} not recorded since the station started: the disk is too slow`);
  if (refused) raised.push(`${plural(refused, "frame")} not recorded since the station started: the folder or the disk refused files`);
  return [...raised.map((text) => ({ text })), ...alarmsOnce(now.alarms)];
}

/// Each text once, with its newest time and how often it came. The newest come first.
function alarmsOnce(alarms) {
  const once = new Map();
  for (const { time_ms, text } of alarms) {
    const of = once.get(text) ?? { time_ms, text, times: 0 };
    of.times += 1;
    once.set(text, of);
  }
  return [...once.values()];
}

const section = (title, ...children) => make("section", {}, make("h3", {}, title), ...children);
