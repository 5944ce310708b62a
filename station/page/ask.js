// Requests to the station. None waits for ever: one that hangs would stop all that come after it.

const ANSWER_WITHIN_MS = 10_000;

export const NO_ANSWER = "The station does not answer.";

/// The station's answer, `{ ok, status, text }`; null if none comes in time, 10 s or `within` ms.
export async function ask(path, { within = ANSWER_WITHIN_MS, ...options } = {}) {
  try {
    const response = await fetch(path, { ...options, signal: AbortSignal.timeout(within) });
    return { ok: response.ok, status: response.status, text: (await response.text()).trim() };
  } catch {
    return null;
  }
}

/// The JSON of the answer; null if the station refuses or does not answer.
export async function askJson(path) {
  const answer = await ask(path);
  return answer?.ok ? JSON.parse(answer.text) : null;
}

/// A request with a JSON body.
export const send = (path, method, body, options = {}) =>
  ask(path, { ...options, method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
