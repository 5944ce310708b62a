// The recipe in force, the switch to another one, and who changed what.

import { NO_ANSWER, ask, askJson } from "./ask.js";
import { confirmCommand } from "./questions.js";
import { dayAndClock, make, number, plural, say, table } from "./dom.js";

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
  const what = { switch: "Switch", save: "Save" };
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
