"""Code that the rows in Python share. Import it first: it starts GStreamer.

Rows print PASS or FAIL with figures through `verdict`, and end with `finish`, both of verdicts.py.
"""

import ctypes
import os
import random
import threading
import time

import gi
from verdicts import finish, give_up, verdict  # noqa: F401

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import GLib, GObject, Gst, GstVideo  # noqa: E402, F401

Gst.init(None)

MINUTES = int(os.environ.get("CLINSPECT_TORTURE_MINUTES", "1"))
# Each element, the three in a row, and the overlay of their results.
CHAINS = {
    "clgaussian": "clgaussian",
    "clhistogram": "clhistogram",
    "clpitchthreshold": "clpitchthreshold pitch-x=4",
    "chain": "clgaussian ! clhistogram ! clpitchthreshold pitch-x=4",
    # No bar: it shows the frame's number, and frames are compared with each other.
    "overlay": "clhistogram ! clpitchthreshold pitch-x=4 output=frame ! inspectoverlay show-verdict=false",
}
# Longest time for a state change, s.
STATE_LIMIT_S = 2.0


def need_device():
    """Ends the row as skipped if no device opens."""
    pipeline = Gst.parse_launch("videotestsrc num-buffers=1 ! clgaussian ! fakesink")
    pipeline.set_state(Gst.State.PLAYING)
    message = wait_for_end(pipeline, 60)
    pipeline.set_state(Gst.State.NULL)
    if message is None or message.type != Gst.MessageType.EOS:
        print("SKIP no device:", describe(message), flush=True)
        os._exit(77)


class Watchdog:
    """Ends the row with FAIL if a step takes too long; `step` begins a new step."""

    def __init__(self, limit_s):
        self._limit_s = limit_s
        self._what = "start"
        self._since = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()

    def step(self, what):
        """Begins a step with this name."""
        self._what = what
        self._since = time.monotonic()

    def _watch(self):
        while True:
            time.sleep(0.2)
            if time.monotonic() - self._since > self._limit_s:
                give_up(f"{self._what}: no end within {self._limit_s} s")


def resources():
    """Resident memory in KiB, file descriptors and threads of this process.

    Before the measurement, free memory of the C library is returned to the system, and idle threads
    that GLib keeps for half a second get time to end.
    """
    time.sleep(1)
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status if ":" in line)
    return {
        "rss": int(fields["VmRSS"].split()[0]),
        "fds": len(os.listdir("/proc/self/fd")),
        "threads": int(fields["Threads"]),
    }


def grown(before, after):
    """The growth of each resource."""
    return {name: after[name] - before[name] for name in before}


def wait_for_end(pipeline, limit_s):
    """The EOS or ERROR message, or None."""
    kinds = Gst.MessageType.EOS | Gst.MessageType.ERROR
    return pipeline.get_bus().timed_pop_filtered(int(limit_s * Gst.SECOND), kinds)


def describe(message):
    """A message as text."""
    if message is None:
        return "nothing on the bus"
    if message.type == Gst.MessageType.ERROR:
        error, detail = message.parse_error()
        return f"{message.src.get_name()}: {error.message} ({detail})"
    return message.type.first_value_nick


def play(pipeline, limit_s=20):
    """Sets a pipeline to PLAYING, or ends the row."""
    pipeline.set_state(Gst.State.PLAYING)
    result, state, _ = pipeline.get_state(int(limit_s * Gst.SECOND))
    if result != Gst.StateChangeReturn.SUCCESS or state != Gst.State.PLAYING:
        give_up(f"PLAYING: {result.value_nick}: {describe(wait_for_end(pipeline, 0))}")


def formats_of(line):
    """Raw formats that every element of a chain accepts; the output may be a mask or a frame."""
    taken = None
    for element in line.split("!"):
        factory = Gst.ElementFactory.find(element.split()[0])
        for template in factory.get_static_pad_templates():
            # Skips the mask pad.
            frames = template.presence == Gst.PadPresence.ALWAYS
            if frames and template.direction == Gst.PadDirection.SINK:
                values = template.get_caps().get_structure(0).get_list("format")[1]
                names = [values.get_nth(i) for i in range(values.n_values)]
                taken = names if taken is None else [n for n in taken if n in names]
    return taken


def found(sample):
    """A chain's result for a frame: the pixels without padding, the counts and the marked pixels."""
    buffer, caps = sample.get_buffer(), sample.get_caps()
    data = buffer.extract_dup(0, buffer.get_size())
    if caps.get_structure(0).get_name() == "video/x-raw":
        data = _rows(data, GstVideo.VideoInfo.new_from_caps(caps))
    result = [bytes(data)]
    if histogram := buffer.get_custom_meta("GstClHistogramMeta"):
        result.append(histogram.get_structure().get_value("bins-data").get_data())
    if defects := buffer.get_custom_meta("GstClDefectMeta"):
        fields = defects.get_structure()
        result += [fields.get_uint64(name) for name in ("judged-pixels", "defect-pixels")]
    return result


def _rows(data, info):
    """The samples of a frame, component by component."""
    kinds = info.finfo
    samples = bytearray()
    for c in range(kinds.n_components):
        # Subsampled sizes round up.
        width = -(-info.width >> kinds.w_sub[c])
        height = -(-info.height >> kinds.h_sub[c])
        step, deep = kinds.pixel_stride[c], (kinds.depth[c] + 7) // 8
        first = info.offset[kinds.plane[c]] + kinds.poffset[c]
        for y in range(height):
            begin = first + y * info.stride[kinds.plane[c]]
            row = data[begin : begin + (width - 1) * step + deep]
            for byte in range(deep):
                samples += row[byte::step]
    return samples


class Feed:
    """`appsrc ! line ! appsink`, frame by frame."""

    def __init__(self, line):
        self.pipeline = Gst.parse_launch(
            "appsrc name=in format=time max-bytes=0 ! "
            f"{line} ! appsink name=out sync=false wait-on-eos=false"
        )
        self.source = self.pipeline.get_by_name("in")
        self.sink = self.pipeline.get_by_name("out")
        self._bytes = None
        self._number = 0

    def start(self):
        """Sets the pipeline to PLAYING; it gets there with the first frame."""
        self.pipeline.set_state(Gst.State.PLAYING)

    def change(self, pixel_format, size):
        """Sets format and size of the next frames."""
        info = GstVideo.VideoInfo.new()
        info.set_format(GstVideo.VideoFormat.from_string(pixel_format), *size)
        self.source.set_property("caps", info.to_caps())
        self._bytes = random.Random(1).randbytes(info.size)

    def push(self):
        """Sends a frame of noise."""
        buffer = Gst.Buffer.new_wrapped(self._bytes)
        buffer.pts = self._number * 10 * Gst.MSECOND
        self._number += 1
        return self.source.emit("push-buffer", buffer)

    def pull(self, limit_s=20):
        """A sample and None, or None and the problem."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            sample = self.sink.emit("try-pull-sample", 20 * Gst.MSECOND)
            if sample is not None:
                return sample, None
            message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
            if message is not None:
                return None, describe(message)
        return None, "no frame came out"

    def stop(self):
        """Stops the pipeline; returns the time it took, s."""
        begin = time.monotonic()
        self.pipeline.set_state(Gst.State.NULL)
        return time.monotonic() - begin
