// The station's page: follows the verdicts' stream and keeps a card for each camera.

import { Card } from "./card.js";
import { confirmCommand, logIn, openFailure } from "./dialogs.js";
import { plural, say } from "./dom.js";
import { Pictures } from "./pictures.js";

/// The station sends a sign of life every two seconds.
const OLD_AFTER_MS = 6000;
const RETRY_MS = 3000;
const HISTORY_EVERY_MS = 10_000;
/// A failure asks for the history at once, but not more often than this.
const HISTORY_PACE_MS = 1000;
/// Changes of a verdict are read out at most so often.
const NEWS_EVERY_MS = 4000;

const find = (id) => document.getElementById(id);
const main = find("cameras");
const cards = new Map();
const pictures = new Pictures();

let session = { reading: false, writing: "off", logged_in: false, has_token: false };
let stream = null;
let heardAt = 0;
let isFresh = false;

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
  async command(camera, command) {
    const response = await fetch(`/api/cameras/${camera}/command`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ command }),
    }).catch(() => null);
    if (!response) return { isDone: false, sentence: "The station does not answer." };
    if (!response.ok) return { isDone: false, sentence: (await response.text()).trim() };
    return { isDone: true, sentence: (await response.json()).answer };
  },
};

// Read out one change at a time: a line that fails often would talk without end.
let newsAt = 0;
const news = new Map();
function announce(name, text) {
  news.set(name, text);
}
setInterval(() => {
  if (news.size === 0 || performance.now() - newsAt < NEWS_EVERY_MS || !isFresh) return;
  newsAt = performance.now();
  say(find("news"), [...news].map(([name, text]) => `${name}: ${text}`).join(". "));
  news.clear();
}, 500);

/// What this browser may do; asks for the token if it may not read.
async function connect() {
  const response = await fetch("/api/session").catch(() => null);
  if (!response?.ok) {
    if (response) tell((await response.text()).trim());
    setTimeout(connect, RETRY_MS);
    return;
  }
  session = await response.json();
  find("log-in").hidden = !session.has_token || session.logged_in;
  find("log-out").hidden = !session.logged_in;
  if (!session.reading) {
    say(find("summary"), "Log in to see the results");
    while (!await logIn(false));
    connect();
    return;
  }
  for (const card of cards.values()) if (card.now) card.showCommands();
  listen();
}

function listen() {
  stream?.close();
  stream = null;
  // A hidden page needs no verdicts, and its connections are some of the few that a browser has.
  if (document.hidden) return;
  stream = new EventSource("/events");
  const heard = () => { heardAt = performance.now(); setFresh(true); };
  stream.addEventListener("cameras", (event) => { heard(); setCameras(JSON.parse(event.data)); });
  stream.addEventListener("camera", (event) => { heard(); update(JSON.parse(event.data)); });
  stream.addEventListener("alive", heard);
  stream.onerror = () => {
    stream?.close();
    stream = null;
    setTimeout(() => { if (!stream) connect(); }, RETRY_MS);
  };
}

function setFresh(fresh) {
  if (fresh === isFresh) return;
  isFresh = fresh;
  if (fresh) find("old").hidden = true;
  else tell(`The station does not answer since ${new Date().toLocaleTimeString()}. The page shows old results and tries again.`);
  for (const card of cards.values()) card.setFresh(fresh);
  summarise();
}

function tell(text) {
  say(find("old"), text);
  find("old").hidden = false;
}

setInterval(() => {
  if (isFresh && !document.hidden && performance.now() - heardAt > OLD_AFTER_MS) setFresh(false);
}, 500);

document.addEventListener("visibilitychange", () => {
  heardAt = performance.now();
  if (session.reading) listen();
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
    card.rollDue = 0;
    card.setFresh(true);
    cards.set(name, card);
  }
  for (const name of names) main.append(cards.get(name).element);
  main.dataset.count = names.length;
  arrange();
}

function update(now) {
  const card = cards.get(now.name);
  if (!card) return;
  if (now.newest_failure !== card.now?.newest_failure) {
    card.historyDue = Math.min(card.historyDue, (card.historyAt ?? -Infinity) + HISTORY_PACE_MS);
  }
  const isChanged = now.status !== card.now?.status;
  card.update(now);
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
  const text = !isFresh ? "No connection" : running === all.length ? `${plural(all.length, "camera")} running` : `${running} of ${plural(all.length, "camera")} running`;
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
    const path = `/api/cameras/${card.name}`;
    const history = await get(`${path}/history`);
    if (history) card.updateHistory(history);
    if (card.now?.is_web) {
      const roll = await get(`${path}/roll`);
      if (roll) card.updateRoll(roll);
    }
  }
})();

async function get(path) {
  const response = await fetch(path).catch(() => null);
  return response?.ok ? response.json() : null;
}

find("log-in").addEventListener("click", async () => {
  if (await logIn(true)) connect();
});
find("log-out").addEventListener("click", async () => {
  await fetch("/api/session", { method: "DELETE" }).catch(() => null);
  location.reload();
});

connect();
