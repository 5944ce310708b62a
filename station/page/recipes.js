// The recipe in force, the switch to another one, who changed what, and the way back.

import { NO_ANSWER, ask, askJson } from "./ask.js";
import { confirmCommand } from "./questions.js";
import { dayAndClock, linesOf, make, number, plural, say, table } from "./dom.js";

/// Changes from elsewhere, such as the command line, are seen so soon if no camera runs.
const REFRESH_MS = 10_000;

const find = (id) => document.getElementById(id);
const choice = find("recipe-choice");
const button = find("recipe-switch");

let mayWrite = false;
/// Name and hash of the recipe that the newest results name.
let seen = "";
let isAsking = false;
let isAskedAgain = false;
let isSwitching = false;

/// Asks the station and shows its recipes; `isAllowed` tells whether this browser may switch.
export async function refresh(isAllowed = mayWrite) {
  mayWrite = isAllowed;
  isAskedAgain = true;
  if (isAsking) return;
  isAsking = true;
  while (isAskedAgain) {
    isAskedAgain = false;
    const answer = await askJson("api/recipes");
    if (answer) show(answer);
  }
  isAsking = false;
}

/// A result of a camera names this recipe.
export function follow(recipe) {
  const id = recipe ? `${recipe.name} ${recipe.hash}` : "";
  if (id === seen) return;
  seen = id;
  refresh();
}

setInterval(() => { if (!document.hidden && !find("recipes").hidden) refresh(); }, REFRESH_MS);

function show({ active, problem, recipes, changes }) {
  find("recipes").hidden = recipes.length === 0 && !active && !problem;
  say(find("recipe"), active?.name ?? "none");
  find("recipe").title = active ? `Hash ${active.hash}` : "";
  find("recipe-problem").hidden = !problem;
  if (problem) say(find("recipe-problem"), problem);
  const others = recipes.filter((of) => !(of.is_active && of.hash === active?.hash));
  choice.hidden = button.hidden = !mayWrite || others.length === 0;
  fillChoice(others);
  find("versions").hidden = !mayWrite || recipes.length === 0;
  fillVersions(recipes, active);
  find("changes").hidden = changes.length === 0;
  find("changes").querySelector("div").replaceChildren(changesTable(changes));
}

/// The recipes that one can switch to. What was chosen stays chosen.
function fillChoice(recipes) {
  const text = (of) => {
    const name = of.number ? `${of.name}, number ${of.number}` : of.name;
    if (of.mistakes.length > 0) return `${name} (${plural(of.mistakes.length, "mistake")})`;
    return of.is_active ? `${name} (changed)` : name;
  };
  const names = recipes.map(text).join();
  if (choice.dataset.names === names) return;
  choice.dataset.names = names;
  const before = choice.value;
  choice.replaceChildren(...recipes.map((of) => make("option", {
    value: of.name,
    disabled: of.mistakes.length > 0,
    title: of.mistakes.join("; "),
  }, text(of))));
  if (recipes.some((of) => of.name === before)) choice.value = before;
}

function changesTable(changes) {
  const what = { switch: "Switch", save: "Save", restore: "Way back" };
  const rows = changes.map((of) => [
    dayAndClock(of.time),
    of.who,
    what[of.action] ?? of.action,
    of.from ?? "",
    of.hash ? `${of.to}, ${of.hash}` : of.to,
    `${number(of.milliseconds)} ms`,
    of.result,
  ]);
  return table("The newest first", ["Time", "Who", "Change", "From", "To", "Took", "Result"], rows);
}

const versions = find("versions");
const versionsOf = find("versions-of");

/// The recipes that may have earlier versions, the one in force first.
function fillVersions(recipes, active) {
  const names = recipes.map((of) => of.name).sort((a, b) => (b === active?.name) - (a === active?.name));
  const seen = [active?.name, ...recipes.map((of) => of.hash)].join();
  if (versions.dataset.seen === seen) return;
  versions.dataset.seen = seen;
  const before = versions.open && versionsOf.value;
  versionsOf.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
  if (names.includes(before)) versionsOf.value = before;
  showVersions();
}

async function showVersions() {
  const name = versionsOf.value;
  if (!versions.open || !name) return;
  const answer = await askJson(`api/recipes/${name}/versions`);
  if (!answer || name !== versionsOf.value) return;
  const list = answer.versions.map((of) => make("li", {},
    make("p", {}, `Until ${dayAndClock(of.until)}, version ${of.hash}. The save then changed: `,
      make("button", { type: "button", onclick: () => goBack(name, of) }, "Go back to this")),
    make("pre", { class: "text", tabindex: 0, role: "region", "aria-label": `What the save of ${dayAndClock(of.until)} changed` },
      of.changes.length ? linesOf(of.changes) : "Only files, such as a model or a mask.")));
  versions.querySelector("ol").replaceChildren(...list);
  if (!list.length) say(find("versions-answer"), `${name} was not saved over yet.`);
  else if (versions.dataset.of !== name) say(find("versions-answer"), "");
  versions.dataset.of = name;
}

versions.addEventListener("toggle", showVersions);
versionsOf.addEventListener("change", showVersions);

async function goBack(name, { id, until }) {
  const text = "Its limits, regions and models become what they were. What it is now stays in this list, so you can come back. "
    + "If the recipe is in use, the cameras switch to it at once.";
  if (!(await confirmCommand(`Make ${name} what it was until ${dayAndClock(until)}?`, text, "Go back"))) return;
  const answer = await ask(`api/recipes/${name}/back`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ version: id }),
  });
  const done = answer?.ok ? JSON.parse(answer.text) : null;
  const used = done?.milliseconds != null ? " The cameras use it since now." : "";
  const told = done && (done.problem ? `${name} is what it was, but the cameras are not switched: ${done.problem}` : `${name} is what it was.${used}`);
  say(find("versions-answer"), told ?? answer?.text ?? NO_ANSWER);
  versions.dataset.of = name;
  await refresh();
  await showVersions();
}

button.addEventListener("click", async () => {
  const name = choice.value;
  if (!name || isSwitching) return;
  const text = "All cameras judge by this recipe then, or all stay with the present one.";
  if (!(await confirmCommand(`Switch to ${name}?`, text, "Switch"))) return;
  isSwitching = true;
  button.disabled = true;
  say(find("recipe-answer"), `Switching to ${name} …`);
  const answer = await ask("api/recipe", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name }),
  });
  isSwitching = false;
  button.disabled = false;
  const took = answer?.ok ? `Switched in ${number(JSON.parse(answer.text).milliseconds)} ms` : null;
  say(find("recipe-answer"), took ?? answer?.text ?? NO_ANSWER);
  await refresh();
});
