#!/usr/bin/python3
"""Reads metas that this script makes with examples/defect_records.py: both versions, classes, positions.

Exits with 0 on success, 77 if gi or numpy is missing, else with a traceback.
"""
import pathlib
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))
try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import GLib, Gst
    from defect_records import class_name, defects, level, position, semu
except (ImportError, ValueError) as error:
    print(error)
    sys.exit(77)

# The bytes of docs/metas.md: x, y, width, height, area; centroid, differences; polarity; id; class,
# flags; axes, orientation; boundary length.
SHAPE = struct.pack("<2i3I4fi", 248, -20, 7, 60, 77, 8.5, -0.25, -17.5, -30, -1)
LABEL = struct.pack("<I2H3fI", 9, 2, 0x203, 10, 2.5, -0.75, 96)
OLD = struct.pack("<2i3I4fi", 12, 40, 7, 60, 77, 8.5, -0.25, -17.5, -30, -1)


def meta(text, data):
    """The structure of a meta with these fields and records."""
    fields = Gst.Structure.new_from_string(f"GstClDefectMeta, {text}")
    fields.set_value("defects-data", GLib.Bytes.new(data))
    return fields


def main():
    Gst.init(None)
    classes = "classes=(string)\"hole;scratch\", first-line=(guint64)2072420"
    web = meta(f"version=(uint)2, {classes}", (SHAPE + LABEL) * 2)
    first, second = defects(web)
    assert first == second
    expected = (248, -20, 7, 60, 77, 8.5, -0.25, -17.5, -30, -1, 9, 2, 0x203, 10, 2.5, -0.75, 96)
    assert first.tolist() == expected, first
    assert (class_name(web, first), position(web, first)) == ("scratch", "248,2072400")
    assert (level(first), semu(web, first)) == (2, None)
    for number, name in ((0, "other"), (1, "hole"), (3, "other"), (65535, "pattern-missing")):
        assert class_name(web, {"class": number}) == name, number
    for mm_x, mm_y, wanted in (
        (0.05, 0.05, "12.4 mm, 103.62 m"),
        (0.05, 0, "12.4 mm, row 2072400"),
        (0, 0.05, "column 248, 103.62 m"),
    ):
        web.set_value("mm-per-pixel-x", float(mm_x))
        web.set_value("mm-per-pixel-y", float(mm_y))
        assert position(web, first) == wanted, position(web, first)

    web.set_value("mm-per-pixel-x", 1 / 7)
    web.set_value("mm-per-pixel-y", 1 / 11)
    assert semu(web, first) is None
    web.set_value("mean-level", 175.0)
    # 77 px are 1 mm²; 10 % over 1.97 + 0.72.
    assert abs(semu(web, first) - 10 / 2.69) < 1e-9, semu(web, first)
    assert semu(web, {"class": 65535}) is None
    plain = meta("version=(uint)2, mm-per-pixel-x=0.5, mm-per-pixel-y=0.25", b"")
    assert len(defects(plain)) == 0
    assert position(plain, {"x": 3, "y": 90}) == "1.5 mm, 22.5 mm"
    assert class_name(plain, {"class": 0}) is None
    assert class_name(plain, {"class": 65535}) == "pattern-missing"

    old = meta("version=(uint)1", OLD * 3)
    assert [d.tolist() for d in defects(old)] == [(12, 40) + expected[2:10] + (0,) * 7] * 3
    assert position(old, defects(old)[0]) == "12,40" and class_name(old, defects(old)[0]) is None
    assert len(defects(meta("version=(uint)1", b""))) == 0
    print("both versions are read")


main()
