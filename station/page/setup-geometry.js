// Shapes that people draw over a picture: rectangles and polygons in pixels.
//
// A shape is `{ kind, at }`: `at` of a rectangle is x, y, width, height, of a polygon x0, y0, x1, …

import { draw } from "./dom.js";

export const isPolygon = (shape) => shape.kind === "ignore";

/// Corners of a shape as pairs.
export function pointsOf({ kind, at }) {
  if (isPolygon({ kind })) return at.flatMap((x, index) => (index % 2 ? [] : [[x, at[index + 1]]]));
  const [x, y, width, height] = at;
  return [[x, y], [x + width, y], [x + width, y + height], [x, y + height]];
}

/// The rectangle between two corners.
export const rectangle = ([x0, y0], [x1, y1]) => [Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0)];

/// From a place to the line between two points.
function distance([x, y], [x0, y0], [x1, y1]) {
  const length = (x1 - x0) ** 2 + (y1 - y0) ** 2;
  const share = length ? Math.min(1, Math.max(0, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length)) : 0;
  return Math.hypot(x - x0 - share * (x1 - x0), y - y0 - share * (y1 - y0));
}

/// The first point of the edge that is nearest to a place.
export function nearestEdge(shape, place) {
  const points = pointsOf(shape);
  const far = points.map((of, index) => distance(place, of, points[(index + 1) % points.length]));
  return far.indexOf(Math.min(...far));
}

/// Moves a point; the opposite corner of a rectangle stays.
export function movePoint(shape, point, [x, y]) {
  if (isPolygon(shape)) shape.at.splice(2 * point, 2, x, y);
  else shape.at = rectangle(pointsOf(shape)[(point + 2) % 4], [x, y]);
}

/// Moves a shape from where it was, as far as the picture reaches.
export function moveShape(shape, from, [dx, dy], [width, height]) {
  const points = pointsOf({ ...shape, at: from });
  const room = (by, all, most) => Math.min(most - Math.max(...all), Math.max(-Math.min(...all), by));
  const x = room(dx, points.map(([of]) => of), width);
  const y = room(dy, points.map(([, of]) => of), height);
  shape.at = isPolygon(shape) ? from.map((value, index) => value + (index % 2 ? y : x)) : [from[0] + x, from[1] + y, from[2], from[3]];
}

/// A shape as marks that can be chosen, with its points if it is chosen.
export function marksOf(shape, { name, key, isSelected, hasPoints, radius }) {
  const points = pointsOf(shape);
  const text = isPolygon(shape) ? `${points.length} points` : `${shape.at[2]} by ${shape.at[3]} pixels at ${shape.at[0]}, ${shape.at[1]}`;
  const area = draw("path", {
    class: `shape ${shape.kind}${isSelected ? " selected" : ""}`, d: `M${points.map((of) => of.join(" ")).join("L")}z`,
    tabindex: 0, role: "button", "aria-pressed": String(isSelected), "aria-label": `${name}, ${text}`, "data-key": `${key} -1`,
  });
  if (!hasPoints) return [area];
  return [area, ...points.map(([cx, cy], point) => draw("circle", {
    class: "handle", cx, cy, r: radius, tabindex: 0, role: "button", "aria-label": `Point ${point + 1} of ${points.length}, at ${cx}, ${cy}`, "data-key": `${key} ${point}`,
  }))];
}

/// The shape that is being drawn, with a cross where the next point goes.
export function previewOf(drawing, radius) {
  if (!drawing) return [];
  const [x, y] = drawing.cursor;
  const cross = draw("path", { class: "cross", d: `M${x - 3 * radius} ${y}h${6 * radius}M${x} ${y - 3 * radius}v${6 * radius}` });
  if (drawing.from) {
    const [left, top, width, height] = rectangle(drawing.from, drawing.cursor);
    return [draw("rect", { class: "shape new", x: left, y: top, width, height }), cross];
  }
  const dots = drawing.points.map(([cx, cy], index) => draw("circle", { class: index ? "handle" : "handle first", cx, cy, r: radius }));
  const line = [...drawing.points, drawing.cursor].map((of) => of.join(" ")).join("L");
  return [draw("path", { class: "shape new", d: `M${line}` }), ...dots, cross];
}
