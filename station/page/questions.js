// The log-in and the confirmation of a command; buttons that close a dialog.

import { NO_ANSWER, ask } from "./ask.js";
import { say } from "./dom.js";

const find = (selector) => document.querySelector(selector);

for (const dialog of document.querySelectorAll("dialog")) {
  dialog.querySelector("[data-close]")?.addEventListener("click", () => dialog.close());
}

const login = find("#login");
const token = find("#token");
let resolveLogin = null;

/// Asks for the token; true if the station took it.
export function logIn(canCancel) {
  login.querySelector("[data-close]").hidden = !canCancel;
  say(login.querySelector(".error"), "");
  token.value = "";
  if (!login.open) login.showModal();
  return new Promise((done) => { resolveLogin = done; });
}

login.addEventListener("cancel", (event) => {
  if (login.querySelector("[data-close]").hidden) event.preventDefault();
});
login.addEventListener("close", () => resolveLogin?.(login.returnValue === "yes"));
login.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const error = login.querySelector(".error");
  // A header takes ASCII only, as a token does.
  const text = token.value.trim().replace(/[^\x21-\x7e]/g, "?");
  const headers = { Authorization: `Bearer ${text}` };
  const answer = await ask("api/session", { method: "POST", headers });
  if (answer?.ok) {
    token.value = "";
    login.close("yes");
    return;
  }
  say(error, answer?.text ?? NO_ANSWER);
  token.select();
});

const confirmation = find("#confirm");

/// Asks whether to go on.
export function confirmCommand(title, text, verb) {
  say(find("#confirm-title"), title);
  say(confirmation.querySelector("[data-text]"), text);
  say(confirmation.querySelector("[value=yes]"), verb);
  confirmation.returnValue = "no";
  confirmation.showModal();
  return new Promise((done) => {
    confirmation.addEventListener("close", () => done(confirmation.returnValue === "yes"), { once: true });
  });
}
