#!/usr/bin/python3
"""Plots every frame's histogram and defect mask live, read from the metas without a copy.

    GST_PLUGIN_PATH=target/release /usr/bin/python3 examples/live_plot.py
    GST_PLUGIN_PATH=target/release /usr/bin/python3 examples/live_plot.py --save plot.png \\
        v4l2src ! videoconvert ! clhistogram ! clpitchthreshold output=frame

The arguments are a pipeline as for gst-launch-1.0, without a sink. Its frames must carry a
GstClHistogramMeta (clhistogram) and may carry a GstClDefectMeta with the packed mask
(clpitchthreshold output=frame). Without arguments the program inspects a chessboard with one spot.
--save writes the last plot to a PNG and opens no window. Needs python3-gi, python3-gst-1.0,
gir1.2-gst-plugins-base-1.0, python3-numpy and python3-matplotlib.
"""
import argparse
import contextlib
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402, F401  (GstApp gives appsink its methods)
import matplotlib  # noqa: E402
import numpy as np  # noqa: E402
from defect_records import class_name, defects, position  # noqa: E402

# A repeating pattern of pitch 16 px with a bright spot on a dark square.
PATTERN = """
    compositor name=mix sink_1::xpos=170 sink_1::ypos=122
    ! video/x-raw,format=I420,width=320,height=240,framerate=30/1
    ! clhistogram ! clpitchthreshold output=frame ! appsink name=frames
    videotestsrc num-buffers=5 pattern=checkers-8
    ! video/x-raw,format=I420,width=320,height=240,framerate=30/1 ! mix.
    videotestsrc num-buffers=5 pattern=white
    ! video/x-raw,format=I420,width=6,height=4,framerate=30/1 ! mix.
"""
# Names and colours of the channels, by the first letters of the format.
CHANNELS = {"GRAY": ["grey"], "RGB": ["red", "green", "blue"], "YUV": ["luma", "U", "V"]}
COLOURS = {"grey": "0.3", "luma": "0.3", "U": "tab:cyan", "V": "tab:pink"}


@contextlib.contextmanager
def histogram(buffer):
    """A view of the meta's bins, of shape (channels, bins), and the meta's structure."""
    meta = buffer.get_custom_meta("GstClHistogramMeta")
    if meta is None:
        sys.exit("a frame carries no GstClHistogramMeta: put clhistogram into the pipeline")
    fields = meta.get_structure()
    # GLib.Bytes.get_data() copies; a mapping does not. The view ends with the mapping.
    with Gst.Buffer.new_wrapped_bytes(fields["bins-data"]).map(Gst.MapFlags.READ) as info:
        yield np.frombuffer(info.data, "<u4").reshape(fields["channels"], fields["bins"]), fields


@contextlib.contextmanager
def mask(buffer):
    """A view of the packed mask, of shape (height, stride), and the mask's width; None without a mask."""
    meta = buffer.get_custom_meta("GstClDefectMeta")
    packed = meta.get_structure().get_value("mask") if meta else None
    if packed is None:
        yield None
        return
    fields = meta.get_structure()
    width, height = fields["width"], fields["height"]
    with packed.map(Gst.MapFlags.READ) as info:
        yield np.frombuffer(info.data, np.uint8)[: height * ((width + 7) // 8)].reshape(height, -1), width


def listed(buffer):
    """A line about each defect of a frame."""
    meta = buffer.get_custom_meta("GstClDefectMeta")
    fields = meta.get_structure() if meta else None
    return [
        f"{class_name(fields, d) or 'defect'} {d['id']} of {d['area']} px at {position(fields, d)}"
        for d in (defects(fields) if meta else [])
    ]


def names(fields, channels):
    """Names of a format's channels."""
    form = fields.get_string("format")
    kind = "GRAY" if form.startswith("GRAY") else "RGB" if set("RGB") <= set(form.upper()) else "YUV"
    known = CHANNELS[kind] + ["alpha"]
    return known[:channels] if channels <= len(known) else [str(c) for c in range(channels)]


class Plot:
    """A figure of the histogram and, below, the mask."""

    def __init__(self, pyplot):
        self.pyplot = pyplot
        self.figure, (self.counts, self.picture) = pyplot.subplots(
            2, 1, figsize=(6.4, 6.4), height_ratios=(1, 1.2), layout="constrained"
        )
        self.lines, self.image = [], None

    def show(self, bins, fields, marked):
        """Draws a frame; `marked` is the mask as pixels, or None."""
        if len(self.lines) != len(bins):
            self.counts.clear()
            labels = names(fields, len(bins))
            x = np.arange(bins.shape[1])
            self.lines = [
                self.counts.step(x, x, where="mid", label=label, color=COLOURS.get(label, label))[0]
                for label in labels
            ]
            self.counts.set(xlabel="bin", ylabel="samples", yscale="symlog")
            self.counts.legend(loc="upper right")
        for line, channel in zip(self.lines, bins):
            # Matplotlib keeps the array; the view ends with the frame.
            line.set_ydata(channel.copy())
        self.counts.set_ylim(0, 2 * max(1, bins.max()))
        self.counts.set_title(f"frame {fields.get_value('frame-number')}")
        if marked is None:
            self.picture.set_axis_off()
        elif self.image is None or self.image.get_array().shape != marked.shape:
            self.picture.clear()
            self.image = self.picture.imshow(marked, cmap="gray", vmin=0, vmax=1)
            self.picture.set_title("defect mask")
        else:
            self.image.set_data(marked)
        self.figure.canvas.draw()
        self.figure.canvas.flush_events()


def main():
    # A reader that has left, as `head` does, ends the program without a traceback.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", help="write the last plot to this PNG; no window")
    parser.add_argument(
        "pipeline", nargs=argparse.REMAINDER, help="as for gst-launch-1.0, without a sink"
    )
    options = parser.parse_args()
    if options.save:
        matplotlib.use("Agg")
    from matplotlib import pyplot  # after the choice of the backend

    Gst.init(None)
    line = " ".join(options.pipeline)
    pipeline = Gst.parse_launch(f"{line} ! appsink name=frames" if line else PATTERN)
    frames = pipeline.get_by_name("frames")
    # A plot is slower than a camera, so only the newest frame is kept.
    live = not options.save
    frames.set_property("drop", live)
    frames.set_property("max-buffers", 1 if live else 4)
    plot = Plot(pyplot)
    if live:
        pyplot.show(block=False)
    pipeline.set_state(Gst.State.PLAYING)
    while sample := frames.pull_sample():
        buffer = sample.get_buffer()
        with histogram(buffer) as (bins, fields), mask(buffer) as packed:
            marked = None
            if packed is not None:
                rows, width = packed
                marked = np.unpackbits(rows, axis=1, count=width)
            plot.show(bins, fields, marked)
            pixels = "no mask" if marked is None else f"{marked.sum()} pixels marked"
            print(f"frame {fields['frame-number']}: {bins.sum(axis=1).tolist()} samples, {pixels}")
            for line in listed(buffer):
                print(f"  {line}")
    if options.save:
        plot.figure.savefig(options.save)
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message:
        sys.exit(message.parse_error()[0].message)


main()
