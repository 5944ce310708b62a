// The dialog of a failed frame. The browser's own dialog element keeps the focus inside, closes with
// Escape and gives the focus back.

import { NO_ANSWER, ask } from "./ask.js";
import { countsText, dayAndClock, number, plural, say, table } from "./dom.js";
import { Judging, NOT_RECORDED } from "./verdicts.js";

const find = (selector) => document.querySelector(selector);

const failure = find("#failure");
const judging = new Judging(failure.querySelector("[data-picture]"));
let shown = { camera: "", frames: [], frame: null, mayWrite: false };

/// Opens a failed frame, `{ id, time }`; `frames` are those that can be leafed through, the newest
/// first. `mayWrite` is whether this browser may say what it thinks of them.
export function openFailure(camera, frames, frame, mayWrite) {
  shown = { camera, frames, frame, mayWrite };
  if (!failure.open) failure.showModal();
  fillFailure(shown);
}

function step(by) {
  const frame = shown.frames[shown.frames.indexOf(shown.frame) + by];
  if (frame) openFailure(shown.camera, shown.frames, frame, shown.mayWrite);
}

failure.querySelector("[data-newer]").addEventListener("click", () => step(-1));
failure.querySelector("[data-older]").addEventListener("click", () => step(1));
failure.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});

async function fillFailure(mine) {
  const { camera, frames, frame: { id, time, no_picture: why } } = mine;
  const place = frames.indexOf(mine.frame);
  failure.querySelector("[data-newer]").disabled = place <= 0;
  failure.querySelector("[data-older]").disabled = place < 0 || place + 1 >= frames.length;
  say(find("#failure-title"), `Failed frame of ${camera}`);
  const text = failure.querySelector("[data-text]");
  const image = failure.querySelector("[data-picture]");
  const area = failure.querySelector("[data-table]");
  image.alt = `Failed frame of camera ${camera} with its defects marked`;
  // Nothing of another frame stands below this title, not even until the answer comes.
  image.removeAttribute("src");
  say(text, "Loading …");
  area.replaceChildren();
  judging.set(null);
  image.hidden = Boolean(why);
  if (!why) image.src = `failures/${camera}/${id}.jpg?${encodeURIComponent(time)}`;
  const answer = await ask(`api/cameras/${camera}/failures/${id}`);
  if (shown !== mine) return;
  if (!answer?.ok) {
    say(text, answer?.text ?? NO_ANSWER);
    return;
  }
  const { report, recording } = JSON.parse(answer.text);
  const of = report.inspections.at(-1);
  judging.set({
    path: `api/cameras/${camera}/failures/${id}/verdict`,
    size: [of?.width ?? 1, of?.height ?? 1],
    said: recording?.said,
    isFailed: true,
    mayWrite: mine.mayWrite,
    why: recording ? null : NOT_RECORDED,
  });
  const defects = report.inspections.flatMap((of) => of.defects.map((defect) => ({ ...defect, element: of.element })));
  const recipe = report.recipe ? `, recipe ${report.recipe.name} (${report.recipe.hash})` : "";
  const told = report.sequence ? `, number ${report.sequence} of epoch ${report.epoch}: ${report.outcome}` : "";
  const overflow = report.inspections.some((of) => of.overflow) ? " There are more defects than listed." : "";
  say(text, `Frame ${number(report.frame)}, ${dayAndClock(report.time)}${recipe}${told}. ${plural(defects.length, "defect")}: ${countsText(count(defects))}.${overflow}${why ? ` No picture: ${why}.` : ""}`);
  area.replaceChildren(defectTable(defects, report.inspections.length > 1));
}

function count(defects) {
  const counts = {};
  for (const { class: name } of defects) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function defectTable(defects, hasElements) {
  const inMillimetres = defects.some((of) => of.x_mm != null);
  const heads = ["Class", "x, px", "y, px", "Size, px", "Area, px", "Mean difference", "Peak difference"];
  if (inMillimetres) heads.push("x, mm", "y, m");
  if (hasElements) heads.push("Element");
  const rows = defects.map((of) => {
    const row = [of.class, number(of.x), number(of.y), `${of.width} × ${of.height}`, number(of.area), number(of.mean_difference, 1), number(of.peak_difference, 1)];
    if (inMillimetres) row.push(of.x_mm == null ? "" : number(of.x_mm, 2), of.y_m == null ? "" : number(of.y_m, 3));
    if (hasElements) row.push(of.element);
    return row;
  });
  return table("Defects, the largest first", heads, rows);
}
