// Whether a PLC is connected, and which cameras it has enabled.

import { askJson } from "./ask.js";
import { plural, say } from "./dom.js";

const REFRESH_MS = 2000;

const line = document.getElementById("plc");

/// Asks the station; a station without a server for PLCs is not asked again.
export async function refresh() {
  const answer = await askJson("api/plc");
  line.hidden = !answer;
  if (answer) say(line, text(answer));
}

function text({ is_reachable, connections, has_commands, cameras }) {
  if (!is_reachable) return "PLC: cannot connect, the station's address is not there";
  const connected = connections > 0 ? `PLC: ${plural(connections, "connection")}` : "PLC: not connected";
  if (!has_commands) return connected;
  const names = (is) => cameras.filter(is).map((of) => of.camera).join(", ");
  const lost = names((of) => of.is_lost);
  const enabled = names((of) => of.is_enabled);
  return `${connected}, ${lost ? `heartbeat lost at ${lost}` : enabled ? `enabled: ${enabled}` : "no camera enabled"}`;
}

setInterval(() => { if (!document.hidden && !line.hidden) refresh(); }, REFRESH_MS);
