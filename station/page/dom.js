// Makes elements. Texts become text nodes, never markup: names and classes come from outside.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

export const make = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/// Sets a text only if it changed: screen readers and layout notice every change.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function table(caption, heads, rows) {
  return make("table", {},
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell) => make("td", {}, String(cell)))))));
}

/// Lines with + and -: marked by their first letter, and by colour.
export const linesOf = (lines) =>
  lines.map((line) => make("span", { class: { "+": "added", "-": "removed" }[line[0]] ?? "kept" }, `${line}\n`));

export const number = (value, digits = 0) =>
  Number(value).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };

export const clock = (time) => new Date(time).toLocaleTimeString("en", CLOCK);

export const dayAndClock = (time) => `${new Date(time).toLocaleDateString()} ${clock(time)}`;

/// "2 scratch, 1 particle", the most frequent class first.
export const countsText = (counts) =>
  Object.entries(counts ?? {}).sort((a, b) => b[1] - a[1]).map(([name, count]) => `${count} ${name}`).join(", ");

/// "3 parts, 1 failed"
export function partsText({ least, most, found }) {
  const count = (verdict) => found.filter((of) => of.verdict === verdict).length;
  const [failed, cut] = [count("fail"), found.filter((of) => of.cut).length];
  const wanted = found.length < least || found.length > most ? ` instead of ${least === most ? least : `${least} to ${most}`}` : "";
  return `${plural(found.length, "part")}${wanted}${failed ? `, ${failed} failed` : ""}${cut ? `, ${cut} cut by the edge` : ""}`;
}

export const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
