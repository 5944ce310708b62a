#!/usr/bin/python3
"""Reads both metas and both messages in a Python application, and checks them with numpy.

Exits with 0 on success, 77 if gi, numpy or an OpenCL device is missing, else with a traceback.
"""
import sys

try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstApp", "1.0")
    from gi.repository import Gst, GstApp  # noqa: F401  (GstApp gives appsink its methods)
    import numpy as np
except (ImportError, ValueError) as error:
    print(error)
    sys.exit(77)

WIDTH, HEIGHT, FRAMES = 61, 33, 6
PITCH, THRESHOLD = 7.5, 12.0
LINE = f"""
    videotestsrc num-buffers={FRAMES} pattern=smpte
    ! video/x-raw,format=GRAY8,width={WIDTH},height={HEIGHT},framerate=10/1
    ! clhistogram name=h bins=64 reports=reports,interval=0,message-bins=true ! tee name=t
    t. ! queue ! appsink name=frames sync=false
    t. ! queue ! clpitchthreshold name=p pitch-x={PITCH} pitch-y=0 threshold={THRESHOLD} reports=reports,interval=0
       compare=average match-center=false multiples=<1> borders=skip min-contrast=0
       ! appsink name=masks sync=false
"""


def pixels(buffer):
    """A frame as an array, rows without their padding."""
    stride = (WIDTH + 3) // 4 * 4
    ok, info = buffer.map(Gst.MapFlags.READ)
    assert ok
    rows = np.frombuffer(info.data, np.uint8).reshape(HEIGHT, stride)[:, :WIDTH].copy()
    buffer.unmap(info)
    return rows


def packed(buffer):
    """A packed mask as an array of 0 and 1."""
    ok, info = buffer.map(Gst.MapFlags.READ)
    assert ok
    rows = np.frombuffer(info.data, np.uint8).reshape(HEIGHT, -1)
    mask = np.unpackbits(rows, axis=1)[:, :WIDTH]
    buffer.unmap(info)
    return mask


def compare(frame):
    """compare=average of docs/semantics.md, along x."""
    distance = round(256 * PITCH)
    whole, fraction = distance >> 8, distance & 255
    margin = whole + (fraction > 0)
    samples = frame.astype(np.int64)
    x = np.arange(margin, WIDTH - margin)
    left = (256 - fraction) * samples[:, x - whole] + fraction * samples[:, x - margin]
    right = (256 - fraction) * samples[:, x + whole] + fraction * samples[:, x + margin]
    mask = np.zeros_like(frame)
    difference = 2 * 256 * samples[:, x] - (left + right)
    mask[:, x] = abs(difference) >= 2 * round(256 * THRESHOLD)
    return mask, x.size * HEIGHT


def structure(buffer, name):
    """The fields of the first meta of that name."""
    meta = buffer.get_custom_meta(name)
    assert meta is not None, name
    return meta.get_structure()


def array(fields, name):
    ok, values = fields.get_array(name)
    assert ok, name
    return [values.get_nth(i) for i in range(values.n_values)]


def check_histogram(fields, frame):
    assert fields.get_value("version") == 1
    assert fields.get_value("element") == "h"
    assert fields.get_value("format") == "GRAY8"
    assert (fields.get_value("width"), fields.get_value("height")) == (WIDTH, HEIGHT)
    bins = np.frombuffer(fields.get_value("bins-data").get_data(), "<u4")
    expected = np.bincount(frame.ravel() >> 2, minlength=64)
    np.testing.assert_array_equal(bins, expected)
    levels = (frame >> 2).astype(float) * 4
    assert array(fields, "count") == [WIDTH * HEIGHT]
    assert array(fields, "minimum") == [levels.min()]
    assert array(fields, "maximum") == [levels.max()]
    np.testing.assert_allclose(array(fields, "mean"), levels.mean(), rtol=1e-12)
    np.testing.assert_allclose(array(fields, "stddev"), levels.std(), rtol=1e-9)
    return bins


def check_defects(fields, marked, judged):
    assert fields.get_value("element") == "p"
    assert fields.get_value("pitch-x") == PITCH
    assert fields.get_value("threshold") == THRESHOLD
    ok, pixels = fields.get_uint64("defect-pixels")
    assert ok and pixels == marked
    ok, pixels = fields.get_uint64("judged-pixels")
    assert ok and pixels == judged
    assert fields.get_string("verdict") == ("fail" if marked else "pass")


def main():
    Gst.init(None)
    pipeline = Gst.parse_launch(LINE)
    frames, masks = pipeline.get_by_name("frames"), pipeline.get_by_name("masks")
    bus = pipeline.get_bus()
    if pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE:
        message = bus.pop_filtered(Gst.MessageType.ERROR)
        print(message.parse_error()[0].message)
        sys.exit(77)
    marked = []
    for number in range(FRAMES):
        buffer = frames.pull_sample().get_buffer()
        frame = pixels(buffer)
        fields = structure(buffer, "GstClHistogramMeta")
        assert fields.get_uint64("frame-number") == (True, number)
        check_histogram(fields, frame)

        buffer = masks.pull_sample().get_buffer()
        mask, judged = compare(frame)
        np.testing.assert_array_equal(packed(buffer), mask)
        marked.append((int(mask.sum()), judged))
        fields = structure(buffer, "GstClDefectMeta")
        assert fields.get_uint64("frame-number") == (True, number)
        check_defects(fields, *marked[-1])
        # The mask also carries the histogram of its frame.
        check_histogram(structure(buffer, "GstClHistogramMeta"), frame)
    assert any(count for count, _ in marked)

    counts = {"clhistogram": 0, "clpitchthreshold": 0}
    while message := bus.pop_filtered(Gst.MessageType.ELEMENT):
        fields = message.get_structure()
        name = fields.get_name()
        ok, number = fields.get_uint64("frame-number")
        assert ok and number == counts[name], name
        counts[name] += 1
        ok, time = fields.get_clock_time("timestamp")
        assert ok and time == number * Gst.SECOND // 10
        if name == "clpitchthreshold":
            check_defects(fields, *marked[number])
        else:
            assert fields.has_field("bins-data") and array(fields, "count") == [WIDTH * HEIGHT]
    assert set(counts.values()) == {FRAMES}, counts
    pipeline.set_state(Gst.State.NULL)
    print(f"{FRAMES} frames are right")


main()
