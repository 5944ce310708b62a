#!/usr/bin/python3
"""Prints the defects of every frame, read from the meta that clpitchthreshold attaches.

    GST_PLUGIN_PATH=target/release /usr/bin/python3 examples/print_defects.py
    GST_PLUGIN_PATH=target/release /usr/bin/python3 examples/print_defects.py \\
        v4l2src ! videoconvert ! clpitchthreshold output=frame

The arguments are a pipeline as for gst-launch-1.0, without a sink. Its frames must carry a
GstClDefectMeta, which clpitchthreshold attaches (output=frame keeps the picture); those of several
elements are printed one after the other. Without arguments the program inspects a chessboard with
one spot. Needs python3-gi, gir1.2-gst-plugins-base-1.0 and python3-numpy; print_defects.rs does the
same in Rust.
"""
import argparse
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402, F401  (GstApp gives appsink its methods)
from defect_records import class_name, defects, level, position, semu, value  # noqa: E402

# A repeating pattern of pitch 16 px with a bright spot on a dark square.
PATTERN = """
    compositor name=mix sink_1::xpos=170 sink_1::ypos=122
    ! video/x-raw,format=I420,width=320,height=240,framerate=30/1
    ! clpitchthreshold name=inspect output=frame ! appsink name=frames
    videotestsrc num-buffers=3 pattern=checkers-8
    ! video/x-raw,format=I420,width=320,height=240,framerate=30/1 ! mix.
    videotestsrc num-buffers=3 pattern=white
    ! video/x-raw,format=I420,width=6,height=4,framerate=30/1 ! mix.
"""

# Bits of a defect's flags.
FLAGS = {1: "continued", 2: "cut"}


def structures(buffer, name):
    """The fields of every meta of this name: each element attaches one."""
    # get_custom_meta returns the first meta, so take them one by one off a buffer without pixels.
    rest = buffer.copy_region(Gst.BufferCopyFlags.META, 0, 0)
    while meta := rest.get_custom_meta(name):
        yield meta.get_structure().copy()
        rest.remove_meta(meta.meta)


def describe(fields, d):
    """A line about a defect."""
    place, at = position(fields, d), f"{d['x']},{d['y']}"
    text = (
        f"{d['width']}x{d['height']} at {at}{'' if place == at else f' ({place})'}: area {d['area']}, "
        f"centre {d['centroid_x']:.2f},{d['centroid_y']:.2f}, "
        f"difference {d['mean_difference']:.2f}, peak {d['peak_difference']:.2f}, "
        f"polarity {d['polarity']}"
    )
    if d["id"]:
        text += f", id {d['id']}"
    if name := class_name(fields, d):
        text += f", class {name}"
    if of := level(d):
        text += f", level {of}"
    if (visibility := semu(fields, d)) is not None:
        text += f", {visibility:.1f} SEMU"
    return text + "".join(f", {word}" for bit, word in FLAGS.items() if d["flags"] & bit)


def show(fields):
    """Prints a meta's structure."""
    number, marked, judged = (
        fields.get_value(name) for name in ("frame-number", "defect-pixels", "judged-pixels")
    )
    web, row = value(fields, "web"), value(fields, "first-line")
    strip = f" (web {web}, row {row})" if web or row else ""
    found = defects(fields)
    more = " and more" if fields.get_value("overflow") else ""
    print(
        f"frame {number} by {fields.get_string('element')}{strip}: {fields.get_string('verdict')}, "
        f"{marked} of {judged} judged pixels, {len(found)} defects{more}"
    )
    for d in found:
        print(f"  {describe(fields, d)}")


def main():
    # A reader that has left, as `head` does, ends the program without a traceback.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "pipeline", nargs=argparse.REMAINDER, help="as for gst-launch-1.0, without a sink"
    )
    words = parser.parse_args().pipeline
    Gst.init(None)
    line = " ".join(words) + " ! appsink name=frames" if words else PATTERN
    pipeline = Gst.parse_launch(line)
    frames = pipeline.get_by_name("frames")
    frames.set_property("sync", False)
    pipeline.set_state(Gst.State.PLAYING)
    while sample := frames.pull_sample():
        results = list(structures(sample.get_buffer(), "GstClDefectMeta"))
        if not results:
            sys.exit("a frame carries no GstClDefectMeta: put clpitchthreshold into the pipeline")
        for fields in results:
            show(fields)
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message:
        sys.exit(message.parse_error()[0].message)


main()
