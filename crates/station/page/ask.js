// Requests to the station. None waits for ever: one that hangs would stop all that come after it.

const ANSWER_WITHIN_MS = 10_000;

export const NO_ANSWER = "The station does not answer.";

/// The station's answer, `{ ok, text }`; null if none comes in time.
export async function ask(path, options = {}) {
  try {
    const response = await fetch(path, { ...options, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    return { ok: response.ok, text: (await response.text()).trim() };
  } catch {
    return null;
  }
}

/// The JSON of the answer; null if the station refuses or does not answer.
export async function askJson(path) {
  const answer = await ask(path);
  return answer?.ok ? JSON.parse(answer.text) : null;
}
