"""What the rows written in Python share; import it first, it starts GStreamer.

Rows print PASS or FAIL with figures through `verdict`, and end with `finish`.
"""

import os
import sys
import threading
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

Gst.init(None)

MINUTES = int(os.environ.get("CLINSPECT_TORTURE_MINUTES", "1"))
# Each element, and the three in a row.
CHAINS = {
    "clgaussian": "clgaussian",
    "clhistogram": "clhistogram",
    "clpitchthreshold": "clpitchthreshold pitch-x=4",
    "chain": "clgaussian ! clhistogram ! clpitchthreshold pitch-x=4",
}
# Longest time a change of state may take.
STATE_LIMIT_S = 2.0

_failed = False


def verdict(good, text):
    """Prints PASS or FAIL with a text that holds the figures."""
    global _failed
    _failed |= not good
    print("PASS" if good else "FAIL", text, flush=True)


def finish():
    """Ends the row without the interpreter's own clean-up, which is not what is tested."""
    sys.stdout.flush()
    os._exit(1 if _failed else 0)


def give_up(text):
    """Prints FAIL and ends the row."""
    verdict(False, text)
    finish()


def need_device():
    """Ends the row as skipped where no device opens."""
    pipeline = Gst.parse_launch("videotestsrc num-buffers=1 ! clgaussian ! fakesink")
    pipeline.set_state(Gst.State.PLAYING)
    message = wait_for_end(pipeline, 60)
    pipeline.set_state(Gst.State.NULL)
    if message is None or message.type != Gst.MessageType.EOS:
        print("SKIP no device:", describe(message), flush=True)
        os._exit(77)


class Watchdog:
    """Ends the row with FAIL where one step takes too long; each `step` begins a new one."""

    def __init__(self, limit_s):
        self._limit_s = limit_s
        self._what = "start"
        self._since = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()

    def step(self, what):
        """Names the step that begins."""
        self._what = what
        self._since = time.monotonic()

    def _watch(self):
        while True:
            time.sleep(0.2)
            if time.monotonic() - self._since > self._limit_s:
                give_up(f"{self._what}: no end within {self._limit_s} s")


def resources():
    """Resident memory in KiB, file descriptors and threads of this process."""
    with open("/proc/self/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status if ":" in line)
    return {
        "rss": int(fields["VmRSS"].split()[0]),
        "fds": len(os.listdir("/proc/self/fd")),
        "threads": int(fields["Threads"]),
    }


def grown(before, after):
    """How much each resource has grown."""
    return {name: after[name] - before[name] for name in before}


def wait_for_end(pipeline, limit_s):
    """The EOS or ERROR message, or None."""
    kinds = Gst.MessageType.EOS | Gst.MessageType.ERROR
    return pipeline.get_bus().timed_pop_filtered(int(limit_s * Gst.SECOND), kinds)


def describe(message):
    """A message in words."""
    if message is None:
        return "nothing on the bus"
    if message.type == Gst.MessageType.ERROR:
        error, detail = message.parse_error()
        return f"{message.src.get_name()}: {error.message} ({detail})"
    return message.type.first_value_nick


def play(pipeline, limit_s=20):
    """Brings a pipeline to PLAYING, or ends the row."""
    pipeline.set_state(Gst.State.PLAYING)
    result, state, _ = pipeline.get_state(int(limit_s * Gst.SECOND))
    if result != Gst.StateChangeReturn.SUCCESS or state != Gst.State.PLAYING:
        give_up(f"PLAYING: {result.value_nick}: {describe(wait_for_end(pipeline, 0))}")
