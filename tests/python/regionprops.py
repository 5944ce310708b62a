#!/usr/bin/python3
"""Compares the defects that clpitchthreshold lists with scikit-image's regionprops of the masks that it sends.

Defects are planted in a woven pattern. The picture is sent as one frame and as the strips of a web.
Needs python3-gi, python3-numpy and python3-skimage. Exits with 0 on success, 77 if one of them is missing, else
with a traceback.
"""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))
try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstApp", "1.0")
    from gi.repository import GLib, Gst, GstApp  # noqa: F401  (GstApp gives the elements their methods)
    import numpy as np
    from defect_records import defects, value
    from skimage.measure import label, regionprops
except (ImportError, ValueError) as error:
    print(error)
    sys.exit(77)

WIDTH, HEIGHT = 640, 480
PITCH_X, PITCH_Y = 8, 5
STRIPS = (7, 100, HEIGHT)
INSPECTION = (
    f"pitch-x={PITCH_X} pitch-y={PITCH_Y} multiples=<1> min-contrast=0 threshold=30 edge-margin=0 "
    "limits=limits,max-defects=100000"
)


def picture():
    """A woven pattern with defects of many shapes."""
    x, y = np.arange(WIDTH), np.arange(HEIGHT)[:, np.newaxis]
    frame = 60 + 4 * (x % PITCH_X) + 3 * (y % PITCH_Y)
    ring = np.abs(np.hypot(x - 500, y - 98) - 20) < 2
    noise = np.random.default_rng(3).random((HEIGHT, WIDTH)) < 0.3
    planted = [
        (60, np.hypot(x - 60, y - 98) < 3.3),
        (60, ring),
        (-50, (x - 200) ** 2 / 400 + (y - 300) ** 2 / 36 < 1),
        # Lines: steep over all strips, flat, along a row, along a column, a single pixel.
        (90, np.abs(x - 250 - y / 3) < 1),
        (-45, (np.abs(y - 420 + x / 4) < 1) & (x < 180)),
        (70, (y == 203) & (x > 20) & (x < 150)),
        (70, (x == 320) & (y > 380)),
        (70, (x == 100) & (y == 20)),
        # A hook, of which the strips see two ends before they meet.
        (80, (np.abs(x - 550) < 2) & (y > 150) & (y < 290)),
        (80, (np.abs(x - 590) < 2) & (y > 190) & (y < 290)),
        (80, (np.abs(y - 290) < 2) & (x > 548) & (x < 592)),
        (100, noise & (x > 450) & (y > 340)),
    ]
    for level, marked in planted:
        frame = frame + level * marked
    return np.clip(frame, 0, 255).astype(np.uint8)


def inspect(frame, rows, elements):
    """The mask of all strips, and their defects with rows counted from the first strip's."""
    pipeline = Gst.parse_launch(
        f"appsrc name=in format=time ! clpitchthreshold {INSPECTION} {elements} ! "
        "video/x-bitmask ! appsink name=out sync=false"
    )
    source, sink = pipeline.get_by_name("in"), pipeline.get_by_name("out")
    source.set_caps(Gst.Caps.from_string(
        f"video/x-raw,format=GRAY8,width={WIDTH},height={rows},framerate=100/1"
    ))
    pipeline.set_state(Gst.State.PLAYING)
    for at in range(0, HEIGHT - rows + 1, rows):
        strip = frame[at : at + rows].tobytes()
        source.push_buffer(Gst.Buffer.new_wrapped_bytes(GLib.Bytes.new(strip)))
    source.end_of_stream()
    masks, found = [], []
    while sample := sink.pull_sample():
        buffer = sample.get_buffer()
        packed = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.uint8)
        masks.append(np.unpackbits(packed.reshape(rows, -1), axis=1)[:, :WIDTH])
        fields = buffer.get_custom_meta("GstClDefectMeta").get_structure()
        first = value(fields, "first-line")
        assert not fields.get_value("overflow")
        found += [(first, defect) for defect in defects(fields)]
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message:
        sys.exit(message.parse_error()[0].message)
    return np.concatenate(masks), found


def sides(pixels):
    """Pixel sides on the boundary of a region, holes included."""
    padded = np.pad(pixels, 1).astype(int)
    return int(sum(np.abs(np.diff(padded, axis=axis)).sum() for axis in (0, 1)))


def compare(first, defect, region):
    """Checks a defect of the strip whose row 0 is the web's row `first`."""
    what = (first, defect, region.bbox)
    assert defect["boundary_length"] == sides(region.image), what
    # scikit-image names pixels by their index, the element by the place of their centre.
    row, column = region.centroid
    centroid = (defect["centroid_x"], defect["centroid_y"] + np.float64(first))
    # Records hold f32, whose rounding is relative to the coordinates within the strip.
    assert np.allclose(centroid, (column + 0.5, row + 0.5), rtol=0, atol=HEIGHT * 2.0**-23), what
    major, minor = (float(defect[name]) for name in ("major_axis", "minor_axis"))
    # f32 again: relative to the larger axis, whose square the moments are.
    near = 2.0**-21 * (1 + major**2)
    assert abs(major**2 - region.axis_major_length**2) <= near, what
    assert abs(minor**2 - region.axis_minor_length**2) <= near, what
    # regionprops measures from the rows' axis towards the columns'. Opposite directions are the same, and
    # a round region has none.
    turn = 2 * (float(defect["orientation"]) - (np.pi / 2 - region.orientation))
    assert abs((major**2 - minor**2) * np.sin(turn)) <= near, what
    # Where both variances are equal, scikit-image 0.19 has the other diagonal.
    if region.inertia_tensor[0, 0] != region.inertia_tensor[1, 1]:
        assert (major**2 - minor**2) * np.cos(turn) >= -near, what


def place(first, defect):
    """Box and area, as regionprops has them."""
    x, y = int(defect["x"]), first + int(defect["y"])
    return (y, x, y + int(defect["height"]), x + int(defect["width"])), int(defect["area"])


def main():
    Gst.init(None)
    frame = picture()
    counts = {}
    for rows in STRIPS:
        for elements in ("line-scan=true",) if rows < HEIGHT else ("line-scan=true", ""):
            mask, found = inspect(frame, rows, elements)
            regions = regionprops(label(mask, connectivity=2))
            theirs = {(region.bbox, int(region.area)): region for region in regions}
            assert len(found) == len(regions) == len(theirs), (rows, len(found), len(regions))
            for first, defect in found:
                compare(first, defect, theirs[place(first, defect)])
            counts[rows, elements] = len(found)
            over_seams = sum(defect["y"] < 0 for _, defect in found)
            assert (over_seams > 0) == (rows < HEIGHT), rows
    assert min(counts.values()) > 100, counts
    print(f"defects equal regionprops: {counts}")


main()
