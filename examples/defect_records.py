"""Reads the defects of a GstClDefectMeta; the other Python examples import it.

docs/metas.md describes the fields. Results of version 1 have shorter records and fewer fields.
"""
import numpy as np

# The 64-byte records of defects-data.
RECORD = np.dtype([
    ("x", "<i4"), ("y", "<i4"), ("width", "<u4"), ("height", "<u4"), ("area", "<u4"),
    ("centroid_x", "<f4"), ("centroid_y", "<f4"),
    ("mean_difference", "<f4"), ("peak_difference", "<f4"), ("polarity", "<i4"),
    ("id", "<u4"), ("class", "<u2"), ("flags", "<u2"),
    ("major_axis", "<f4"), ("minor_axis", "<f4"), ("orientation", "<f4"),
    ("boundary_length", "<u4"),
])
assert RECORD.itemsize == 64
# Records of version 1 are the first bytes of those of version 2.
BYTES_OF_VERSION_1 = 40

OTHER, PATTERN_MISSING = 0, 65535
# The level is in bits 8 to 12 of a record's flags.
LEVEL_SHIFT, LEVEL_MASK = 8, 31


def value(fields, name, default=0):
    """A field of a meta, or the default if the meta is of an earlier version."""
    return fields.get_value(name) if fields.has_field(name) else default


def defects(fields):
    """The defects of a meta as an array of records."""
    # An empty list has no bytes.
    data = fields.get_value("defects-data").get_data() or b""
    if value(fields, "version") > 1:
        return np.frombuffer(data, RECORD)
    old = np.frombuffer(data, np.uint8).reshape(-1, BYTES_OF_VERSION_1)
    padded = np.pad(old, ((0, 0), (0, RECORD.itemsize - BYTES_OF_VERSION_1)))
    return np.frombuffer(padded.tobytes(), RECORD)


def class_name(fields, defect):
    """The name of a defect's class; None if the element has no classes and the pattern is there."""
    names = value(fields, "classes", None)
    number = int(defect["class"])
    if names is None and number == OTHER:
        return None
    names = names.split(";") if names else []
    if number == PATTERN_MISSING:
        return "pattern-missing"
    return names[number - 1] if OTHER < number <= len(names) else "other"


def level(defect):
    """The finest level that marks a pixel of a defect: 0 = single pixels, 1 and more = a coarser level."""
    return int(defect["flags"]) >> LEVEL_SHIFT & LEVEL_MASK


def semu(fields, defect):
    """The visibility of a defect as SEMU (SEMI D31-1102); None if it is unknown."""
    mm_x, mm_y = value(fields, "mm-per-pixel-x"), value(fields, "mm-per-pixel-y")
    mean = value(fields, "mean-level")
    if not (mm_x > 0 and mm_y > 0 and mean > 0) or int(defect["class"]) == PATTERN_MISSING:
        return None
    percent = 100 * abs(float(defect["mean_difference"])) / mean
    area = int(defect["area"]) * mm_x * mm_y
    return percent / (1.97 / area**0.33 + 0.72)


def position(fields, defect):
    """The place of the upper left corner of a defect's box: in mm across and in m along the web."""
    column, row = int(defect["x"]), value(fields, "first-line") + int(defect["y"])
    mm_x, mm_y = value(fields, "mm-per-pixel-x"), value(fields, "mm-per-pixel-y")
    if not (mm_x > 0 or mm_y > 0):
        return f"{column},{row}"
    across = f"{column * mm_x:.1f} mm" if mm_x > 0 else f"column {column}"
    metres = row * mm_y / 1000
    along = f"{metres:.2f} m" if abs(metres) >= 1 else f"{1000 * metres:.1f} mm"
    return f"{across}, {along if mm_y > 0 else f'row {row}'}"
