#!/usr/bin/python3
"""Runs the Python lines of docs/metas.md in order: metas of two elements, views, nested regions.

Exits with 0 on success, 77 if gi, numpy or an OpenCL device is missing, else with a traceback.
"""
import ctypes
import pathlib
import re
import struct
import sys

try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstApp", "1.0")
    from gi.repository import GLib, Gst, GstApp  # noqa: F401  (GstApp gives appsink its methods)
    import numpy
except (ImportError, ValueError) as error:
    print(error)
    sys.exit(77)

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "metas.md"
WIDTH, HEIGHT = 160, 120
# The published formula, whose judged pixels are easily counted.
FORMULA = "pitch-y=0 compare=average match-center=false multiples=<1> borders=skip min-contrast=0 output=frame"
LINE = f"""
    videotestsrc num-buffers=2 ! video/x-raw,format=RGB,width={WIDTH},height={HEIGHT} ! clhistogram name=all
    ! clhistogram name=corner roi=<0,0,16,8> ! videoconvert ! video/x-raw,format=GRAY8
    ! clpitchthreshold name=narrow pitch-x=7.5 {FORMULA} ! clpitchthreshold name=wide pitch-x=16 {FORMULA}
    ! appsink name=frames sync=false
"""


def bytes_address(data):
    """The address of a GBytes' own memory."""
    get_data = ctypes.CDLL("libglib-2.0.so.0").g_bytes_get_data
    get_data.argtypes, get_data.restype = [ctypes.c_void_p, ctypes.c_void_p], ctypes.c_void_p
    # The hash of a boxed value is its address.
    return get_data(hash(data), None)


def check_records(scope, records, fields, marked):
    """Runs the lines that unpack records, on version 2 and on the same records of version 1."""
    exec(records, scope)
    defects = scope["defects"]
    assert len(defects) == fields["defect-count"] > 0
    assert [d["id"] for d in defects] == list(range(1, len(defects) + 1))
    for d in defects:
        inside = marked[d["y"] : d["y"] + d["height"], d["x"] : d["x"] + d["width"]]
        assert 0 < d["area"] <= inside.sum() and d["polarity"] in (-1, 0, 1), d
    old = Gst.Structure.new_from_string("GstClDefectMeta, version=(uint)1")
    data = b"".join(scope["RECORD"].pack(*d.values())[:40] for d in defects)
    old.set_value("defects-data", GLib.Bytes.new(data))
    scope["inspection"] = old
    exec(records, scope)
    scope["inspection"] = fields
    for new, old in zip(defects, scope["defects"], strict=True):
        assert list(old.values())[:10] == list(new.values())[:10] and not any(list(old.values())[10:])


def main():
    names, view_bins, records, view_mask, regions = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    Gst.init(None)
    pipeline = Gst.parse_launch(LINE)
    wide = pipeline.get_by_name("wide")
    scope = {"Gst": Gst, "numpy": numpy, "struct": struct, "element": wide}

    exec(regions, scope)
    assert str(wide.get_property("rois")) == "<<0,0,64,64>,<64,64,32,32>>", wide.get_property("rois")
    if pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE:
        message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
        print(message.parse_error()[0].message)
        sys.exit(77)
    buffer = pipeline.get_by_name("frames").pull_sample().get_buffer()

    scope["buffer"] = buffer
    exec(names, scope)
    histograms, inspections = scope["histograms"], scope["inspections"]
    assert list(histograms) == ["all", "corner"], histograms
    assert list(inspections) == ["narrow", "wide"], inspections
    # The buffer keeps its metas.
    assert buffer.get_custom_meta("GstClDefectMeta").get_structure()["element"] == "narrow"

    for name, samples in (("all", WIDTH * HEIGHT), ("corner", 16 * 8)):
        fields = scope["fields"] = histograms[name]
        exec(view_bins, scope)
        bins = scope["bins"]
        # The view ended with its mapping, so only its address is looked at.
        assert bins.ctypes.data == bytes_address(fields["bins-data"]), "bins-data was copied"
        assert bins.shape == (3, 256)
        counted = numpy.frombuffer(fields["bins-data"].get_data(), "<u4").reshape(3, 256)
        assert counted.sum(axis=1).tolist() == [samples] * 3

    # A neighbour is at most 8 px away with pitch 7.5, so 16 columns are not judged.
    judged = {"narrow": (WIDTH - 16) * HEIGHT, "wide": 64 * 48 + 32 * 32}
    for name, pixels in judged.items():
        fields = scope["inspection"] = inspections[name]
        assert fields["judged-pixels"] == pixels, fields.to_string()
        exec(view_mask, scope)
        marked = scope["marked"]
        assert marked.shape == (HEIGHT, WIDTH)
        assert marked.sum() == fields["defect-pixels"] > 0
        assert isinstance(scope["info"].data, memoryview), "the mask was copied"
        check_records(scope, records, fields, marked)
    pipeline.set_state(Gst.State.NULL)
    print("the lines of docs/metas.md work")


main()
