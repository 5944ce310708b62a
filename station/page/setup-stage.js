// The picture of a frame with its mask and what a step draws over it; zoom, and places in pixels.

import { draw, make, number, say } from "./dom.js";

const MOST_ZOOM = 16;

/// How marks are shown, and the words for it.
export const LOOKS = [["over", "Marks on the picture"], ["beside", "Marks beside it"], ["plain", "No marks"]];

export class Stage {
  constructor(name) {
    this.size = [4, 3];
    this.zoom = 1;
    this.look = "over";
    this.pictures = make("div", { class: "pictures" });
    this.defects = draw("g", { class: "defects", "aria-hidden": "true" });
    this.layer = draw("g", {});
    this.parts = draw("g", { class: "parts" });
    this.svg = draw("svg", { class: "marks", preserveAspectRatio: "none", role: "group", "aria-label": `${name}: marks` }, this.defects, this.parts, this.layer);
    this.sheet = make("div", { class: "sheet" }, this.pictures, this.svg);
    this.masks = make("div", { class: "pictures" });
    this.beside = make("div", { class: "sheet beside", hidden: true }, this.masks);
    this.note = make("p", { class: "placeholder" }, "Waiting for a picture");
    this.viewport = make("div", { class: "viewport" }, this.sheet, this.beside, this.note);
    const zoomBy = (text, factor, label) => make("button", { type: "button", "aria-label": label, title: label, onclick: () => this.zoomTo(this.zoom * factor) }, text);
    this.fitButton = make("button", { type: "button", title: "The whole picture", onclick: () => this.zoomTo(1) }, "Fit");
    this.tools = make("div", { class: "tools", role: "group", "aria-label": "Zoom" }, zoomBy("−", 1 / 1.5, "Smaller"), this.fitButton, zoomBy("+", 1.5, "Larger"));
    this.viewport.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    new ResizeObserver(() => this.fit()).observe(this.viewport);
    this.sheet.hidden = true;
  }

  /// Screen pixels for one of the picture.
  get scale() {
    return this.sheet.clientWidth / this.size[0] || 1;
  }

  setSize(width, height) {
    if (this.size[0] === width && this.size[1] === height) return;
    this.size = [width, height];
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.viewport.style.setProperty("--shape", width / height);
    this.fit();
  }

  fit() {
    const { width, height } = this.viewport.getBoundingClientRect();
    if (!width || !height) return;
    const [across, down] = this.size;
    const sheets = this.look === "beside" ? 2 : 1;
    // Two sheets are stacked if that makes them larger.
    const row = Math.min(width / sheets / across, height / down);
    const column = Math.min(width / across, height / sheets / down);
    this.viewport.classList.toggle("stacked", sheets === 2 && column > row);
    const scale = Math.max(row, sheets === 2 ? column : row) * this.zoom;
    for (const sheet of [this.sheet, this.beside]) {
      sheet.style.width = `${Math.max(1, Math.floor(across * scale - 1))}px`;
      sheet.style.height = `${Math.max(1, Math.floor(down * scale - 1))}px`;
    }
    this.fitButton.disabled = this.zoom === 1;
    this.onscale?.();
  }

  zoomTo(zoom, at) {
    const before = this.scale;
    const { viewport } = this;
    const box = viewport.getBoundingClientRect();
    const [x, y] = at ? [at.clientX - box.left, at.clientY - box.top] : [box.width / 2, box.height / 2];
    const place = [(viewport.scrollLeft + x) / before, (viewport.scrollTop + y) / before];
    this.zoom = Math.min(MOST_ZOOM, Math.max(1, zoom));
    if (this.zoom < 1.05) this.zoom = 1;
    this.fit();
    viewport.scrollTo(place[0] * this.scale - x, place[1] * this.scale - y);
  }

  onWheel(event) {
    if (event.deltaY > 0 && this.zoom === 1) return;
    event.preventDefault();
    this.zoomTo(this.zoom * (event.deltaY < 0 ? 1.2 : 1 / 1.2), event);
  }

  /// The place of a pointer in pixels of the frame, inside it.
  place(event) {
    const box = this.svg.getBoundingClientRect();
    const [width, height] = this.size;
    const of = (at, from, size, most) => Math.min(most, Math.max(0, Math.round(((at - from) / size) * most)));
    return [of(event.clientX, box.left, box.width, width), of(event.clientY, box.top, box.height, height)];
  }

  /// Shows a frame, its mask and its defects, all of the same frame. False if a newer one came first, or if the
  /// picture does not come.
  async show({ picture, mask, size, defects = [], parts = [], alt }) {
    const round = this.round = (this.round ?? 0) + 1;
    const wanted = [load(picture, alt)];
    const masked = mask && this.look !== "plain" ? load(mask, "") : null;
    if (masked) wanted.push(masked);
    const [image, red] = await Promise.all(wanted);
    if (round !== this.round) return false;
    if (!image) return false;
    this.setSize(...(size ?? [image.naturalWidth, image.naturalHeight]));
    if (this.sheet.hidden) {
      this.sheet.hidden = false;
      this.note.hidden = true;
      this.fit();
    }
    const besideNow = this.look === "beside";
    if (this.beside.hidden === besideNow) {
      this.beside.hidden = !besideNow;
      this.fit();
    }
    this.pictures.replaceChildren(image, ...(red && !besideNow ? [red] : []));
    this.masks.replaceChildren(...(red && besideNow ? [red] : []));
    this.defects.replaceChildren(...(this.look === "plain" ? [] : defects.map((of) => box(of))));
    this.parts.replaceChildren(...(this.look === "plain" ? [] : parts.map((of) => partMark(of, Math.max(...this.size)))));
    return true;
  }

  /// Says why there is no picture.
  say(text) {
    this.sheet.hidden = this.beside.hidden = true;
    this.note.hidden = false;
    say(this.note, text);
  }

  setLook(look) {
    this.look = look;
    this.fit();
  }
}

/// The picture when it can be shown; null if it does not come.
async function load(address, alt) {
  const image = make("img", { src: address, alt, draggable: "false" });
  try {
    await image.decode();
    return image;
  } catch {
    return null;
  }
}

/// The number of a part at its centre, and a line to where the right of the trained part is.
function partMark({ number: n, x, y, angle, verdict, cut }, longest) {
  const radius = longest / 40;
  const [right, down] = [Math.cos, Math.sin].map((of) => of((angle * Math.PI) / 180));
  const title = `Part ${n}: ${cut ? "cut by the edge" : verdict}, ${number(angle, 1)}°`;
  return draw("g", { "data-verdict": verdict }, draw("title", {}, title),
    draw("line", { x1: x + radius * right, y1: y + radius * down, x2: x + 2.5 * radius * right, y2: y + 2.5 * radius * down }),
    draw("circle", { cx: x, cy: y, r: radius }),
    draw("text", { x, y, "text-anchor": "middle", "dominant-baseline": "central", "font-size": 1.2 * radius }, String(n)));
}

/// Defects of a pixel are seen, too.
const box = ({ x, y, width, height, class: name }) =>
  draw("rect", { x: x - 2, y: y - 2, width: width + 4, height: height + 4 }, draw("title", {}, name ?? ""));
