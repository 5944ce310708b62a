#!/usr/bin/python3
"""Pushes numpy frames into the elements and prints the verdict on each frame.

    GST_PLUGIN_PATH=target/release /usr/bin/python3 examples/push_frames.py
    GST_PLUGIN_PATH=target/release /usr/bin/python3 examples/push_frames.py \\
        clgaussian sigma=1.2 ! clpitchthreshold threshold=15

The frames show a repeating pattern with noise; some have a dark spot. Replace `frames` with your
camera or your files. The arguments are the elements between appsrc and appsink, as for
gst-launch-1.0. Needs python3-gi, python3-gst-1.0, gir1.2-gst-plugins-base-1.0 and python3-numpy.
"""
import argparse
import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import GLib, Gst, GstApp  # noqa: E402, F401  (GstApp gives appsrc its methods)
import numpy as np  # noqa: E402
from defect_records import class_name, defects, level, position  # noqa: E402

WIDTH, HEIGHT = 637, 480
PITCH_X, PITCH_Y = 16.35, 12.0
FRAMES_PER_SECOND = 30
# One frame in this many is bad.
BAD_EVERY = 3
INSPECTION = "clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold"


def frames(count):
    """Frames of a repeating pattern, as arrays of (HEIGHT, WIDTH) uint8; each moves a little."""
    random = np.random.default_rng(1)
    x, y = np.arange(WIDTH), np.arange(HEIGHT)[:, np.newaxis]
    for number in range(count):
        across = np.cos(2 * np.pi * (x - 3.7 * number) / PITCH_X)
        down = np.cos(2 * np.pi * y / PITCH_Y)
        frame = 128 + 30 * across + 20 * down + random.normal(0, 2, (HEIGHT, WIDTH))
        if number % BAD_EVERY == BAD_EVERY - 1:
            frame[(x - 300) ** 2 + (y - 200) ** 2 < 16] -= 60
        yield np.clip(np.rint(frame), 0, 255).astype(np.uint8)


def to_buffer(frame, number):
    """A buffer of GRAY8; GStreamer expects rows padded to a multiple of 4 bytes."""
    padded = np.pad(frame, ((0, 0), (0, -frame.shape[1] % 4)))
    buffer = Gst.Buffer.new_wrapped_bytes(GLib.Bytes.new(padded.tobytes()))
    buffer.pts = number * Gst.SECOND // FRAMES_PER_SECOND
    # Metas and messages use the offset as the frame's number.
    buffer.offset = number
    return buffer


def show(fields):
    """Prints a meta's structure."""
    print(f"frame {fields['frame-number']}: {fields['verdict']}, {fields['defect-count']} defects")
    for d in defects(fields):
        at, place, name = f"{d['x']},{d['y']}", position(fields, d), class_name(fields, d)
        print(
            f"  {d['width']}x{d['height']} px at {at}: "
            f"difference {d['mean_difference']:.1f} levels, id {d['id']}"
            f"{f', class {name}' if name else ''}{f', level {level(d)}' if level(d) else ''}"
            f"{'' if place == at else f', {place}'}"
        )


def fail(pipeline):
    """Ends the program with the pipeline's error."""
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    sys.exit(message.parse_error()[0].message if message else "the pipeline has ended")


def main():
    # A reader that has left, as `head` does, ends the program without a traceback.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=6, help="number of frames [default: 6]")
    parser.add_argument(
        "elements", nargs=argparse.REMAINDER, help=f"elements that inspect [default: {INSPECTION}]"
    )
    options = parser.parse_args()

    Gst.init(None)
    line = " ".join(options.elements) or INSPECTION
    try:
        pipeline = Gst.parse_launch(
            f"appsrc name=in format=time ! {line} ! appsink name=out sync=false"
        )
    except GLib.Error as error:
        sys.exit(error.message)
    source, sink = pipeline.get_by_name("in"), pipeline.get_by_name("out")
    source.set_caps(Gst.Caps.from_string(
        f"video/x-raw,format=GRAY8,width={WIDTH},height={HEIGHT},framerate={FRAMES_PER_SECOND}/1"
    ))
    if pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE:
        fail(pipeline)
    for number, frame in enumerate(frames(options.frames)):
        source.push_buffer(to_buffer(frame, number))
        # Without an answer the pipeline has failed.
        sample = sink.pull_sample()
        if sample is None:
            fail(pipeline)
        meta = sample.get_buffer().get_custom_meta("GstClDefectMeta")
        if meta is None:
            sys.exit("a frame carries no GstClDefectMeta: put clpitchthreshold into the pipeline")
        show(meta.get_structure())
    source.end_of_stream()
    pipeline.set_state(Gst.State.NULL)


main()
