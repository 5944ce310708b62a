// Plots as SVG, drawn in the size that they have on the screen. Each has a table with the same
// numbers beside it.

import { clock, countsText, draw, make, number, table } from "./dom.js";

const MAX_CLASSES = 6;
const TOP = 6;
/// Half the width of the ring around a defect that repeats.
const RING = 9;
/// Room for the labels; grows with the size of letters.
let LEFT = 0;
let BOTTOM = 0;

/// A figure that draws itself again when its size or its numbers change.
export class Plot {
  constructor(title, rows, classes) {
    this.title = title;
    this.classes = classes;
    this.area = make("div", { class: "plot-area", "data-rows": rows });
    this.legend = make("ul", { class: "legend" });
    this.table = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}, table` });
    this.details = make("details", { class: "numbers" }, make("summary", {}, "As a table"), this.table);
    this.details.addEventListener("toggle", () => this.fillTable());
    this.element = make("figure", { class: "plot" }, this.area, this.legend, this.details);
    new ResizeObserver(() => this.draw()).observe(this.area);
  }

  show(numbers) {
    const text = JSON.stringify(numbers);
    if (text === this.text) return;
    this.text = text;
    this.numbers = numbers;
    this.draw();
    this.fillTable();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.area;
    if (!this.numbers || width < 60) return;
    const letter = parseFloat(getComputedStyle(document.documentElement).fontSize);
    LEFT = Math.round(2.4 * letter);
    BOTTOM = Math.round(1.25 * letter);
    // Before the layout, and on a wall, there may be no room.
    if (width <= LEFT || height <= TOP + BOTTOM) return this.area.replaceChildren();
    const { parts, summary, legend } = this.picture(width, height);
    this.area.replaceChildren(draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": summary }, parts));
    this.legend.replaceChildren(...legend);
  }

  fillTable() {
    // A closed table costs nothing.
    if (this.details.open && this.numbers) this.table.replaceChildren(this.asTable());
  }
}

const key = (index, text) => make("li", {}, mark(index), text);

const mark = (index) =>
  draw("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" }, shape(index, 0, 0, 5));

/// Classes differ in shape, too.
function shape(index, x, y, r) {
  const at = { class: `mark c${index}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` };
  const path = [
    `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
    `M${-r} ${-r}H${r}V${r}H${-r}z`,
    `M0 ${-r}L${r} ${r}H${-r}z`,
    `M0 ${-r}L${r} 0L0 ${r}L${-r} 0z`,
    `M${-r} ${-r}L0 0L${r} ${-r}V${r}L0 0L${-r} ${r}z`,
    `M${-r} ${-r}H${r}L0 ${r}z`,
  ][index % MAX_CLASSES];
  return draw("path", { ...at, d: path });
}

/// The classes of a camera. Each keeps its colour and shape, in all plots; many share the last one.
export class Classes {
  constructor() {
    this.order = [];
  }

  /// Learns classes from their numbers, the most frequent first; gives the names for the legend.
  learn(totals) {
    const names = [...totals].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([name]) => name);
    this.order.push(...names.filter((name) => !this.order.includes(name)));
    const named = this.order.slice(0, this.order.length > MAX_CLASSES ? MAX_CLASSES - 1 : MAX_CLASSES);
    return named.length < this.order.length ? [...named, "all others"] : named;
  }
}

const indexIn = (names, name) => (names.includes(name) ? names.indexOf(name) : names.length - 1);

/// The next larger of 1, 2, 5, 10, 20, 50, …
function niceTop(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= value);
}

/// 500, 10k, 2M: short, because the room beside the axis is small.
function shortNumber(value) {
  if (value >= 1e6) return `${number(value / 1e6)}M`;
  return value >= 1000 ? `${number(value / 1000)}k` : number(value);
}

function frame(width, height, top, leftText, rightText) {
  const bottom = height - BOTTOM;
  return [
    draw("path", { class: "axis", d: `M${LEFT} ${bottom}H${width}` }),
    draw("path", { class: "grid", d: `M${LEFT} ${TOP + 0.5}H${width}M${LEFT} ${((TOP + bottom) / 2).toFixed(1)}H${width}` }),
    draw("text", { x: LEFT - 6, y: TOP + 10, "text-anchor": "end" }, top),
    draw("text", { x: LEFT, y: height - 5 }, leftText),
    draw("text", { x: width, y: height - 5, "text-anchor": "end" }, rightText),
  ];
}

/// Defects by class and minute of the last hour.
export class MinutesPlot extends Plot {
  constructor(classes) {
    super("Defects in the last hour", 2, classes);
  }

  picture(width, height) {
    const { now } = this.numbers;
    const minutes = this.numbers.minutes.filter((of) => of.minute > now - 60);
    const totals = new Map();
    for (const { defects } of minutes) {
      for (const [name, count] of Object.entries(defects)) totals.set(name, (totals.get(name) ?? 0) + count);
    }
    const names = this.classes.learn(totals);
    const inMinute = (minute, name) => Object.entries(minute.defects)
      .reduce((sum, [of, count]) => (names[indexIn(names, of)] === name ? sum + count : sum), 0);
    const sum = (minute) => Object.values(minute.defects).reduce((a, b) => a + b, 0);
    const top = niceTop(Math.max(1, ...minutes.map(sum)));
    const bottom = height - BOTTOM;
    const step = (width - LEFT) / 60;
    const parts = frame(width, height, shortNumber(top), clock((now - 59) * 60_000).slice(0, 5), "now");
    for (const minute of minutes) {
      const slot = 59 - (now - minute.minute);
      let y = bottom;
      const bars = [];
      names.forEach((name, index) => {
        const size = (inMinute(minute, name) / top) * (bottom - TOP);
        if (size === 0) return;
        y -= size;
        bars.push(draw("rect", { class: `mark c${index}`, x: (LEFT + slot * step + 0.5).toFixed(1), y: y.toFixed(1), width: Math.max(1, step - 1).toFixed(1), height: size.toFixed(1) }));
      });
      const hint = `${clock(minute.minute * 60_000).slice(0, 5)}: ${countsText(minute.defects)}`;
      if (bars.length) parts.push(draw("g", {}, draw("title", {}, hint), bars));
    }
    const of = (name) => minutes.reduce((all, minute) => all + inMinute(minute, name), 0);
    const all = minutes.reduce((total, minute) => total + sum(minute), 0);
    const legend = names.map((name, index) => [name, index]).filter(([name]) => of(name))
      .map(([name, index]) => key(index, `${name} ${number(of(name))}`));
    if (all === 0) parts.push(draw("text", { class: "empty", x: (LEFT + width) / 2, y: bottom / 2 + 8, "text-anchor": "middle" }, "No defects"));
    const summary = all === 0 ? "No defects in the last hour" : `${number(all)} defects in the last hour: ${countsText(Object.fromEntries(totals))}`;
    return { parts, summary, legend };
  }

  asTable() {
    const rows = [...this.numbers.minutes].reverse().map(({ minute, frames, failed, defects }) =>
      [clock(minute * 60_000).slice(0, 5), number(frames), number(failed), countsText(defects) || "none"]);
    return table("Defects by minute, the newest first", ["Minute", "Frames", "Failed", "Defects"], rows);
  }
}

/// Letters of the channels: `RGB` and `BGRx` name them in their order.
function channelName(format, index) {
  if (/^x?[RGB]{3}/i.test(format)) return { R: "red", G: "green", B: "blue" }[format.replace(/[^RGB]/g, "")[index]] ?? "alpha";
  if (format.startsWith("GRAY")) return "grey";
  return ["luma", "blue difference", "red difference", "alpha"][index] ?? `channel ${index + 1}`;
}

/// Whether a channel is the chroma of a grey picture, which says nothing.
function isWithoutColour(histogram, index) {
  const of = histogram?.channels?.[index];
  const isColour = index > 0 && channelName(histogram?.format ?? "", index).endsWith("difference");
  return isColour && of != null && of.minimum === of.maximum;
}

/// The newest frame's histogram.
export class HistogramPlot extends Plot {
  constructor() {
    super("Histogram", 1);
  }

  picture(width, height) {
    const { bins, histogram } = this.numbers;
    const bottom = height - BOTTOM;
    const shown = bins.map((_, index) => index).filter((index) => !isWithoutColour(histogram, index));
    const top = Math.max(1, ...shown.flatMap((index) => bins[index]));
    const parts = frame(width, height, "", "dark", "bright");
    const legend = [];
    const name = (index) => channelName(histogram?.format ?? "", index);
    shown.forEach((index) => {
      const channel = bins[index];
      const step = (width - LEFT) / channel.length;
      const y = (count) => (bottom - (count / top) * (bottom - TOP)).toFixed(1);
      const line = channel.map((count, bin) => `V${y(count)}H${(LEFT + (bin + 1) * step).toFixed(1)}`).join("");
      const kind = { red: "red", green: "green", blue: "blue" }[name(index)] ?? `c${index}`;
      parts.push(draw("path", { class: `level ${kind}`, d: `M${LEFT} ${bottom}${line}V${bottom}` }));
      const of = histogram?.channels[index];
      if (of) legend.push(make("li", {}, make("span", { class: `swatch ${kind}` }), `${name(index)}: mean ${number(of.mean, 1)}`));
    });
    const channels = histogram?.channels ?? [];
    const summary = `Histogram. ${shown.filter((index) => channels[index]).map((index) => `${name(index)}: mean ${number(channels[index].mean, 1)}, from ${channels[index].minimum} to ${channels[index].maximum}`).join("; ")}`;
    return { parts, summary, legend };
  }

  asTable() {
    const { histogram } = this.numbers;
    const rows = (histogram?.channels ?? []).map((of, index) => [
      channelName(histogram.format, index), number(of.minimum), number(of.median), number(of.maximum), number(of.mean, 1), number(of.stddev, 1),
      `${number(100 * of.saturated_low, 1)} %`, `${number(100 * of.saturated_high, 1)} %`]);
    return table("Levels of the newest frame", ["Channel", "Lowest", "Median", "Highest", "Mean", "Deviation", "Black", "White"], rows);
  }
}

const periodText = (of) => (of.period_m == null ? `${number(of.period_lines)} lines` : `${number(of.period_m, 3)} m`);

/// "26 % from the left, from 12.31 m to 15.45 m"
function placesText(of) {
  const first = of.places[0];
  const [left, right] = of.across.map((share) => number(100 * share));
  const metres = (line) => (line * of.period_m) / of.period_lines;
  const along = (line) => (first.metres == null ? `line ${number(line)}` : `${number(metres(line), 2)} m`);
  return `${left === right ? left : `${left} to ${right}`} % from the left, from ${along(of.first_line)} to ${along(of.last_line)}`;
}

/// "Repeat: 6 times, every 0.628 m, 26 % from the left, from 12.31 m to 15.45 m"
const repeatText = (of) => `${of.is_active ? "Repeat" : "Ended repeat"}: ${number(of.count)} times, every ${periodText(of)}, ${placesText(of)}`;

/// The defects of a repeat, circled and connected, with count and period. A bar stands for those of a wide damage.
function repeatedRow(of, xOf, yOf, width) {
  const [top, bottom] = of.across.map(yOf);
  const isWide = bottom - top > 2 * RING;
  const points = of.places.map((place) => [xOf(place), isWide ? (top + bottom) / 2 : yOf(place.across)].map((at) => at.toFixed(1)));
  const [x, y] = points.at(-1);
  const height = isWide ? bottom - top : 2 * RING;
  const ring = ([cx, cy]) => draw("rect", { x: cx - RING, y: cy - height / 2, width: 2 * RING, height, rx: RING });
  return draw("g", { class: of.is_active ? "repeat" : "repeat ended" },
    draw("title", {}, repeatText(of)),
    draw("polyline", { points: points.map((at) => at.join()).join(" ") }),
    points.map(ring),
    draw("text", { x, y: y < 40 ? Number(y) + 24 : y - 14, "text-anchor": x > width / 2 ? "end" : "start" }, `${number(of.count)} times, every ${periodText(of)}`));
}

/// Where on the web the defects are: along it to the right, across it downwards. Repeats are connected.
export class RollPlot extends Plot {
  constructor(classes) {
    super("Roll map", 3, classes);
  }

  picture(width, height) {
    const { web, marks, repeats } = this.numbers;
    if (marks.length === 0) {
      const summary = `No defects on web ${web}`;
      return { parts: [draw("text", { class: "empty", x: width / 2, y: height / 2, "text-anchor": "middle" }, summary)], summary, legend: [] };
    }
    const inMetres = marks.every((of) => of.metres != null);
    const at = (of) => (inMetres ? of.metres : of.line);
    const bottom = height - BOTTOM;
    // Defects of a repeat may be older than the oldest mark.
    const places = [...marks, ...repeats.flatMap((of) => of.places)].map(at);
    const first = Math.min(...places);
    const last = Math.max(...places, first + (inMetres ? 0.1 : 10));
    const text = (value) => (inMetres ? `${number(value, 2)} m` : `line ${number(value)}`);
    const totals = new Map();
    for (const of of marks) totals.set(of.class, (totals.get(of.class) ?? 0) + 1);
    const names = this.classes.learn(totals);
    const index = (of) => indexIn(names, of.class);
    const parts = [
      draw("rect", { class: "web", x: LEFT, y: TOP, width: width - LEFT, height: bottom - TOP }),
      draw("text", { x: LEFT - 6, y: TOP + 10, "text-anchor": "end" }, "left"),
      draw("text", { x: LEFT - 6, y: bottom, "text-anchor": "end" }, "right"),
      draw("text", { x: LEFT, y: height - 5 }, text(first)),
      draw("text", { x: width, y: height - 5, "text-anchor": "end" }, text(last)),
    ];
    const scale = (width - LEFT - 16) / (last - first);
    const x = (of) => LEFT + 8 + (at(of) - first) * scale;
    const y = (of) => TOP + of.across * (bottom - TOP);
    parts.push(...repeats.map((of) => repeatedRow(of, x, (across) => y({ across }), width)));
    for (const of of marks) {
      const r = Math.min(7, 3 + Math.sqrt(of.area) / 8);
      parts.push(shape(index(of), x(of), y(of), r));
    }
    const count = (name) => marks.filter((of) => names[index(of)] === name).length;
    const legend = names.map((name, place) => [name, place]).filter(([name]) => count(name))
      .map(([name, place]) => key(place, `${name} ${number(count(name))}`));
    legend.push(...repeats.map((of) => make("li", { class: "repeat-text" }, repeatText(of))));
    const found = `Web ${web}: ${number(marks.length)} defects from ${text(first)} to ${text(last)}: ${countsText(Object.fromEntries(totals))}`;
    const summary = [found, ...repeats.map(repeatText)].join(". ");
    return { parts, summary, legend };
  }

  asTable() {
    const rows = this.numbers.marks.slice(0, 100).map((of) =>
      [of.class, of.metres == null ? `line ${number(of.line)}` : `${number(of.metres, 3)} m`, `${number(100 * of.across)} %`, number(of.area)]);
    const defects = table(`Defects of web ${this.numbers.web}, the newest first`, ["Class", "Position", "Across, from the left", "Area, px"], rows);
    const repeats = this.numbers.repeats.map((of) => [periodText(of), number(of.count), placesText(of), of.is_active ? "goes on" : "ended"]);
    if (repeats.length === 0) return defects;
    return make("div", {}, table(`Repeats of web ${this.numbers.web}`, ["Period", "Turns", "Place", "State"], repeats), defects);
  }
}
