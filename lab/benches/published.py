"""The published experiments, repeated: sections of rows.py."""

from plan import (
    FEW_KINDS, GREY_12M, GREY_HD, PITCH, RGB_34M, RGB_4K, Contestant, Row, Section, by_kind, ours,
)

COLOUR = "Published colour histogram, corrected"
COLOUR_GROUPS = "Work-groups of the published colour histogram"
BYTES = "Published histogram256, corrected"
GAUSSIAN = "Published 3x3 Gaussian, corrected"
GAUSSIAN_GROUPS = "Work-groups of the published Gaussian"
PITCH_STEPS = "Steps of the published pitch comparison"

# Of the Gaussian; a work-item computes a sample.
GROUPS = ["1x32", "8x8", "16x8", "16x16", "32x4", "32x8", "64x4", "driver"]
# Work-items that read together, and bytes that memory delivers together.
WARP, LINE = 32, 128


def baseline(label, variant="", tolerance=0, **settings):
    options = {k.replace("_", "-"): v for k, v in settings.items()}
    return Contestant(label, "baseline", {"variant": variant, **options}, tolerance)


def in_image(contestant, gpu):
    """The contestant, on a CPU for small frames only: PoCL takes seconds to read images."""
    if not gpu:
        contestant.most = GREY_HD[0] * GREY_HD[1]
    return contestant


def lines_read(group):
    """Lines of memory that the nine reads of 32 neighbouring work-items touch, inside a frame."""
    width = int(group.split("x")[0])
    rows = max(WARP // width, 1)
    # Within a line: a warp does not cross the end of a line at most positions.
    return 9 * rows


def colour_sections():
    merges = ["on the host", "by the last group", "by a work-item a bin", "by many"]
    private = [baseline(f"private, merged {m}", f"private, merged {m}") for m in merges]
    shared = [baseline(f"global, merged {m}", f"global, merged {m}")
              for m in ("on the host", "by a work-item a bin")]
    # As published: the group that merges has a work-item a bin.
    last_768 = baseline("private, merged by the last 768", "private, merged by the last group", group=768)
    grouped = [
        *private,
        *shared,
        baseline("bytes", "bytes"),
    ]
    return [
        Section(
            COLOUR,
            "`private`: each work-item counts 1024 pixels in a table in private memory. `global`: the "
            "table is in global memory, 768 pixels. Groups of 64. Counting and merging are also timed "
            "apart. `on the host`: the host reads the tables and adds them up, one thread. `by the "
            "last group`: published were the last 768 work-items of the same launch; corrected, "
            "because only the group that ends last may read all tables; `by the last 768`: in groups of 768. "
            "`by a work-item a bin`: a "
            "second launch of 256 work-items a channel. `by many`: our way, 128 work-items a bin and "
            "an atomic addition each. `bytes`: byte counters in local memory, 128 work-items a group.",
            by_kind("histogram", [(GREY_12M, FEW_KINDS), (RGB_34M, [*FEW_KINDS, "photograph 1"])]),
            [ours(), *private, last_768, *shared, baseline("bytes", "bytes"), Contestant("Pillow", "pillow")],
            ("ours", "private, merged by a work-item a bin"),
            shown="parts",
        ),
        Section(
            COLOUR_GROUPS,
            "The contestants of the section before, by the work-items of a group.",
            [Row(f"{group} work-items", "panel", RGB_4K, "histogram", {"group": group})
             for group in (16, 32, 64, 128, 256, 768)],
            grouped,
            shown="parts",
        ),
        Section(
            BYTES,
            "Groups of 128 work-items with byte counters in local memory. A work-item counts 255 "
            "pixels, the most that a byte holds. `banked`: the published layout, counter `v*128 + "
            "4*(lid & 31) + (lid >> 5)`; `plain`: `v*128 + lid`. One work-item or all merge the counters "
            "of their group; the host adds up the groups (`merge`).",
            by_kind("histogram", [(GREY_12M, FEW_KINDS)]),
            [
                ours(),
                baseline("banked, merged by one", "bytes256 banked one"),
                baseline("banked, merged by all", "bytes256 banked"),
                baseline("plain, merged by one", "bytes256 one"),
                baseline("plain, merged by all", "bytes256"),
            ],
            ("ours", "banked, merged by all"),
            shown="parts",
        ),
    ]


def gaussian_sections(gpu):
    pixel = [ours()]
    for memory in ("buffer", "image"):
        for title, words, tolerance in [
            ("integer, one division", "divide", 0),
            ("integer, four divisions", "four", 3),
            ("integer, shift", "shift", 0),
            ("integer, nine statements", "shift statements", 0),
            ("integer, centre first", "shift centre", 0),
            ("float, one division", "divide", 1),
            ("float, four divisions", "four", 1),
            ("float, multiplication", "multiply", 1),
            ("float, nine statements", "multiply statements", 1),
            ("float, centre first", "multiply centre", 1),
            ("float, native_divide", "native", 1),
            ("float, native_divide, centre first", "native centre", 1),
            ("float, floats in memory", "multiply floats", 1),
        ]:
            contestant = baseline(f"{memory}, {title}", words, tolerance,
                                  image=memory == "image", float=title.startswith("float"))
            # These are in then-and-now.md.
            if memory == "image" and words != "divide":
                in_image(contestant, gpu)
            pixel.append(contestant)
    counted = ", ".join(f"{group} {lines_read(group)}" for group in GROUPS if group != "driver")
    grouped = []
    for title, is_float in (("integer", False), ("float", True)):
        tolerance = int(is_float)
        grouped += [baseline(f"buffer, {title}, {group}", group, tolerance, float=is_float)
                    for group in GROUPS]
        grouped += [in_image(baseline(f"image, {title}, {group}", group, tolerance, image=True,
                                      float=is_float), gpu)
                    for group in GROUPS]
    return [
        Section(
            GAUSSIAN,
            "One pixel per work-item in groups of 16x16. The sum is divided by 16, shifted or "
            "multiplied; `four divisions`: corners, the neighbours along each axis and the centre have "
            "a division each, which drops their remainders for integers (up to 3 grey levels lower). "
            "One expression, unless the name says nine statements. `centre first`: the centre is read "
            "first. `floats in memory`: a sample takes four bytes.",
            by_kind("gaussian", [(GREY_HD, ["panel"]), (GREY_12M, ["panel"])]),
            pixel,
        ),
        Section(
            GAUSSIAN_GROUPS,
            "`driver`: the size is NULL. Integers are shifted, floats multiplied. Lines of "
            f"{LINE} bytes that the nine reads of {WARP} neighbouring work-items touch: {counted}.",
            by_kind("gaussian", [(GREY_HD, ["panel"]), (GREY_12M, ["panel"])]),
            [ours(), *grouped],
        ),
    ]


def pitch_sections():
    steps = [
        baseline("comparison alone", "difference", transfers=True),
        baseline("threshold, unpacked", "unpacked", transfers=True),
        baseline("threshold, packed", "packed", transfers=True),
        ours(transfers=True),
    ]
    return [
        Section(
            "Published pitch comparison, corrected",
            "`published`: one pixel per work-item in groups of 64x4, packed through local memory; "
            "`64x1`: in groups of 64x1. `unpacked`: a byte per pixel. `comparison alone`: the difference "
            "in grey levels, a byte per pixel, without a threshold. `with transfers`: the frame comes "
            "from the host and the result goes to the host.",
            by_kind("pitch_threshold", [(GREY_HD, ["panel"]), (GREY_12M, FEW_KINDS)], PITCH),
            [
                ours(),
                baseline("published", "packed"),
                baseline("64x1", "packed 64x1"),
                baseline("unpacked", "unpacked"),
                baseline("comparison alone", "difference"),
                ours("ours, with transfers", transfers=True),
                baseline("published, with transfers", "packed", transfers=True),
            ],
            ("ours", "published"),
        ),
        Section(
            PITCH_STEPS,
            "Each step on the device's clock, from the start of the first one; groups of 64x4. MB/s "
            "count the bytes of the frame, as published, and the bytes that the step reads and writes. "
            "A CPU device reads our frames where they are, so only the count is downloaded.",
            by_kind("pitch_threshold", [(GREY_12M, ["panel"])], PITCH),
            steps,
            shown="timeline",
        ),
    ]


def published_sections(gpu):
    return [*colour_sections(), *gaussian_sections(gpu), *pitch_sections()]
