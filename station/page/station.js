// The station's page: follows the verdicts' stream and keeps a card for each camera.

import { NO_ANSWER, ask, askJson } from "./ask.js";
import { Card } from "./card.js";
import { openFailure } from "./dialogs.js";
import { clock, plural, say } from "./dom.js";
import { Pictures } from "./pictures.js";
import * as plc from "./plc.js";
import { confirmCommand, logIn } from "./questions.js";
import * as recipes from "./recipes.js";
import { openRecordings } from "./verdicts.js";

/// The station sends a sign of life every two seconds.
const OLD_AFTER_MS = 6000;
const RETRY_MS = 3000;
const HISTORY_EVERY_MS = 10_000;
/// A failure asks for the history at once, but not more often than this.
const HISTORY_PACE_MS = 1000;
/// Changes of a verdict are read out at most so often.
const ANNOUNCE_EVERY_MS = 4000;

const find = (id) => document.getElementById(id);
const main = find("cameras");
const cards = new Map();
const pictures = new Pictures();

let session = { reading: false, writing: "off", logged_in: false, has_token: false };
let isFresh = false;
/// When the station was last found not to answer.
let lostAt = null;
/// Ends what [`follow`] waits for.
let interrupt = () => {};
let isAskedAgain = false;

document.documentElement.classList.toggle("wall", new URLSearchParams(location.search).has("wall"));
if (document.documentElement.classList.contains("wall")) {
  find("wall").href = location.pathname;
  say(find("wall"), "Leave wall screen");
}

const actions = {
  announce,
  mayWrite: () => session.writing === "allowed",
  confirm: confirmCommand,
  openFailure,
  openRecordings,
  async command(camera, command) {
    const answer = await ask(`api/cameras/${camera}/command`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ command }),
    });
    if (!answer) return { isDone: false, sentence: NO_ANSWER };
    return { isDone: answer.ok, sentence: answer.ok ? JSON.parse(answer.text).answer : answer.text };
  },
};

// Read out one change at a time: a line that fails often would talk without end.
let announcedAt = 0;
const announcements = new Map();
function announce(name, text) {
  announcements.set(name, text);
}
setInterval(() => {
  if (announcements.size === 0 || performance.now() - announcedAt < ANNOUNCE_EVERY_MS || !isFresh) return;
  announcedAt = performance.now();
  say(find("announcements"), [...announcements].map(([name, text]) => `${name}: ${text}`).join(". "));
  announcements.clear();
}, 500);

/// Follows the station for the page's whole life, one step after the other: so there is never a
/// second stream, whatever people do meanwhile.
async function follow() {
  for (;;) {
    isAskedAgain = false;
    // A hidden page needs no verdicts, and its connections are some of the few that a browser has.
    if (document.hidden) await pause();
    else {
      await connect();
      if (!document.hidden) await pause(RETRY_MS);
    }
  }
}

/// Waits so long, or until [`again`]; without a time, until [`again`].
async function pause(ms) {
  if (isAskedAgain) return;
  await new Promise((done) => {
    interrupt = done;
    if (ms) setTimeout(done, ms);
  });
}

/// Connects again now: the rights or the visibility have changed.
function again() {
  isAskedAgain = true;
  interrupt();
}

/// Asks what this browser may do, and for the token if it may not read; then follows the verdicts.
async function connect() {
  const answer = await ask("api/session");
  if (!answer?.ok) return lost(answer?.text);
  session = JSON.parse(answer.text);
  find("log-in").hidden = !session.has_token || session.logged_in;
  find("log-out").hidden = !session.logged_in;
  if (!session.reading) {
    find("old").hidden = true;
    say(find("summary"), "Log in to see the results");
    while (!await logIn(false));
    return again();
  }
  for (const card of cards.values()) if (card.now) card.showCommands();
  showSetUp();
  recipes.refresh(actions.mayWrite());
  plc.refresh();
  if (!isAskedAgain) await listen();
}

/// Follows the verdicts until the stream ends or is silent, or [`again`].
function listen() {
  return new Promise((ended) => {
    const stream = new EventSource("events");
    let silence = null;
    const end = () => {
      stream.close();
      clearTimeout(silence);
      setFresh(false);
      ended();
    };
    const fail = () => { end(); lost(); };
    const wait = () => {
      clearTimeout(silence);
      silence = setTimeout(fail, OLD_AFTER_MS);
    };
    const hear = (take) => (event) => { wait(); setFresh(true); take(JSON.parse(event.data)); };
    stream.addEventListener("cameras", hear(setCameras));
    stream.addEventListener("camera", hear(update));
    stream.addEventListener("alive", hear(() => {}));
    stream.onerror = fail;
    interrupt = end;
    wait();
  });
}

function setFresh(fresh) {
  if (fresh === isFresh) return;
  isFresh = fresh;
  lostAt = null;
  if (fresh) find("old").hidden = true;
  // A card is fresh again with its own first summary.
  else for (const card of cards.values()) card.setFresh(false);
  summarise();
}

/// Says that the station does not answer, or its own sentence.
function lost(sentence) {
  lostAt ??= clock(Date.now());
  say(find("old"), sentence ?? `The station has not answered since ${lostAt}. There is no verdict now; counts, plots and failed frames are from before. The page tries again by itself.`);
  find("old").hidden = false;
  summarise();
}

setInterval(() => { for (const card of cards.values()) card.showAge(); }, 500);

document.addEventListener("visibilitychange", () => {
  again();
  arrange();
});

function setCameras(names) {
  for (const [name, card] of cards) {
    if (names.includes(name)) continue;
    card.element.remove();
    cards.delete(name);
  }
  for (const name of names) {
    if (cards.has(name)) continue;
    const card = new Card(name, actions);
    card.historyDue = 0;
    cards.set(name, card);
  }
  for (const name of names) main.append(cards.get(name).element);
  main.dataset.count = names.length;
  arrange();
  showSetUp();
}

/// The way to the set-up, for those who may save what they set up; the whole page if there is no camera.
function showSetUp() {
  const mayWrite = actions.mayWrite();
  find("set-up").hidden = !mayWrite;
  const empty = find("empty");
  empty.hidden = cards.size > 0 || !isFresh;
  empty.querySelector(".buttons").hidden = !mayWrite;
  const canLogIn = session.writing !== "off" && !session.logged_in;
  say(empty.querySelector("[data-text]"), mayWrite
    ? "Choose a camera, show it good pieces, and save. It takes about two minutes."
    : canLogIn ? "Log in to set up a camera." : "To set up cameras on this page, set allow-writing and token-file in the station's file.");
}

function update(now) {
  const card = cards.get(now.name);
  if (!card) return;
  const isChanged = now.status !== card.now?.status;
  if (isChanged || now.newest_failure !== card.now?.newest_failure) {
    card.historyDue = Math.min(card.historyDue, (card.historyAt ?? -Infinity) + HISTORY_PACE_MS);
  }
  card.update(now);
  if (now.status === "running") recipes.follow(now.recipe);
  if (isChanged) {
    summarise();
    // A camera that is back shows pictures at once.
    if (now.status === "running" && card.wasStopped) arrange();
    card.wasStopped = now.status !== "running";
  }
}

function summarise() {
  const all = [...cards.values()];
  const running = all.filter((card) => card.now?.status === "running").length;
  const without = lostAt ? "No connection" : document.hidden ? "Hidden" : "Connecting…";
  const text = !isFresh ? without : all.length === 0 ? "No camera" : running === all.length ? `${plural(all.length, "camera")} running` : `${running} of ${plural(all.length, "camera")} running`;
  say(find("summary"), text);
  find("summary").classList.toggle("trouble", !isFresh || running < all.length);
  document.title = `${text} – Line station`;
}

/// The camera that the address names is shown alone.
function arrange() {
  const wanted = cards.get(decodeURIComponent(location.hash.slice(1)));
  const shown = wanted ? [wanted] : [...cards.values()];
  for (const card of cards.values()) {
    card.element.hidden = !shown.includes(card);
    card.element.classList.toggle("alone", shown.length === 1);
  }
  find("all").hidden = !wanted || cards.size === 1;
  main.dataset.shown = shown.length;
  main.style.setProperty("--columns", Math.ceil(Math.sqrt(shown.length)));
  pictures.show(document.hidden ? [] : shown.map((card) => ({ name: card.name, image: card.image, onpicture: (isShown) => card.onPicture(isShown) })));
  return wanted;
}

addEventListener("hashchange", () => {
  const heading = arrange()?.element.querySelector("h2") ?? main;
  heading.focus();
});

// One request for history at a time.
(async () => {
  for (;;) {
    await new Promise((done) => setTimeout(done, 200));
    if (!isFresh || document.hidden) continue;
    const now = performance.now();
    const card = [...cards.values()].find((of) => !of.element.hidden && of.historyDue <= now);
    if (!card) continue;
    card.historyAt = now;
    card.historyDue = now + HISTORY_EVERY_MS;
    const path = `api/cameras/${card.name}`;
    const history = await askJson(`${path}/history`);
    if (history) card.updateHistory(history);
    const roll = card.now?.is_web ? await askJson(`${path}/roll`) : { web: null };
    if (roll) card.updateRoll(roll);
  }
})();

document.querySelector(".skip").addEventListener("click", (event) => {
  // The address stays: it may name the camera that is shown alone.
  event.preventDefault();
  main.focus();
});

find("log-in").addEventListener("click", async () => {
  if (await logIn(true)) again();
});
find("log-out").addEventListener("click", async () => {
  await ask("api/session", { method: "DELETE" });
  location.reload();
});

follow();
