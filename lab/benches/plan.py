"""The parts of rows.py: pictures, sizes, settings, contestants."""

from dataclasses import dataclass, field

# The pictures of every full table of inputs.
KINDS = [
    "constant 0",
    "constant 128",
    "constant 255",
    "two values, random",
    "two values, alternating",
    "gradient along x",
    "gradient along y",
    "random",
    "panel",
    "photograph 1",
    "photograph 2",
    "half constant, half random",
]
FEW_KINDS = ["constant 128", "random", "panel"]

GREY_HD = (1920, 1080, 1)
GREY_12M = (4096, 3072, 1)
RGB_4K = (3840, 2160, 3)
RGB_34M = (7728, 4354, 3)
LONG_LINES = (16384, 1024, 1)
STRIP_4K = (4096, 1024, 1)
GREY_268M = (16384, 16384, 1)
GROWTH = [(320, 240), (640, 480), (1280, 720), (1920, 1080), (4096, 3072), (8192, 8192), (16384, 16384)]

PITCH = {"pitch-x": 7.35, "threshold": 10}
RECOMMENDED = {
    "pitch-x": 7.35,
    "pitch-y": 7.35,
    "multiples": [1, 4],
    "minimum": True,
    "match-center": True,
    "threshold": 8,
    "inward": True,
    "min-contrast": 5,
}
TEXTURE = {"pitch-x": 7.35, "pitch-y": 7.35, "threshold": 40}
SURFACE = {"threshold": 40}
# The published formula.
PUBLISHED = (
    "clpitchthreshold pitch-x=7.35 pitch-y=0 compare=average match-center=false "
    'multiples="<1>" borders=skip min-contrast=0'
)
CHAIN = (
    "clgaussian kernel-size=5 sigma=0.8 {p} ! clhistogram reports=reports,messages=false {p} ! "
    "clpitchthreshold pitch-x=7.35 pitch-y=7.35 threshold=8 reports=reports,messages=false {p}"
)

# Strips of a web, and the same strips judged alone. No pixel reaches the threshold: the picture is the same
# in all strips, so it jumps at each seam.
WEB_PITCH = ("clpitchthreshold pitch-x=16.35 pitch-y=16.35 threshold=255 reports=reports,messages=false"
             " line-scan={web}")
WEB_CHAIN = ("clgaussian kernel-size=5 sigma=0.8 line-scan={web} ! clhistogram reports=reports,messages=false ! "
             + WEB_PITCH)

PLAIN_CHAIN = f"clgaussian ! clhistogram ! {PUBLISHED} threshold=40"

# Frames per second of a camera, where all cameras send at their own pace.
PACE = 25


@dataclass
class Contestant:
    """A program or library that does a row's job, with settings on top of the row's."""

    label: str
    who: str
    settings: dict = field(default_factory=dict)
    # Largest allowed difference of a sample from the exact result; None: results are not compared.
    tolerance: int | None = 0
    # Samples at each edge that the contestant treats differently; they are not compared.
    edge: int = 0
    # Largest frame in bytes; larger ones would take too long.
    most: int | None = None


@dataclass
class Row:
    title: str
    kind: str
    size: tuple  # width, height, channels
    task: str
    settings: dict = field(default_factory=dict)
    stride: int = 0
    base: int = 0
    # Bytes that count as the row's input; 0 for the whole frame.
    counted: int = 0


@dataclass
class Section:
    title: str
    note: str
    rows: list
    contestants: list
    # Labels of the two contestants whose ratio is shown, or several such pairs; empty: no ratio.
    ratio: tuple = ()
    # How times are shown: rate (GB/s and ms), frames (frames/s), latency (ms), time (ms),
    # cameras (frames/s, how even, latencies), difference (ms, between the two of `ratio`),
    # steps (MB/s), parts (rate, and the time of each part), timeline (a line for each step).
    shown: str = "rate"


def pairs_of(ratio):
    """The pairs of a section's ratios."""
    if not ratio:
        return []
    return [ratio] if isinstance(ratio[0], str) else ratio


def size_name(size):
    names = {1: "GRAY", 3: "RGB"}
    known = {GREY_HD: "1080p GRAY", RGB_4K: "4K RGB", LONG_LINES: "16384-pixel lines GRAY"}
    return known.get(size, f"{size[0]}x{size[1]} {names[size[2]]}")


def by_kind(task, pairs, settings=None):
    rows = []
    for size, kinds in pairs:
        for kind in kinds:
            rows.append(Row(f"{size_name(size)}, {kind}", kind, size, task, dict(settings or {})))
    return rows


def layouts(task, settings=None):
    """The same panel in different memory layouts."""
    width, height = 4001, 3001
    base = dict(settings or {})
    rows = []
    for title, size, stride, offset in [
        ("4001x3001, rows side by side", (width, height, 1), 0, 0),
        ("rows 4096 bytes apart", (width, height, 1), 4096, 0),
        ("rows 8192 bytes apart", (width, height, 1), 8192, 0),
        ("base 1 byte off", (width, height, 1), 0, 1),
        ("base 1 byte off, rows 4097 bytes apart", (width, height, 1), 4097, 1),
        ("1333x3001 RGB, base 5 bytes off", (1333, height, 3), 0, 5),
    ]:
        if size[2] == 3 and task == "pitch_threshold":
            continue
        rows.append(Row(title, "panel", size, task, dict(base), stride, offset))
    if task == "histogram":
        region = [17, 33, 3001, 2001]
        rows.append(
            Row("region 3001x2001 at (17, 33)", "panel", (width, height, 1), task,
                {**base, "region": region}, counted=3001 * 2001)
        )
    return rows


def ours(label="ours", **settings):
    return Contestant(label, "ours", {k.replace("_", "-"): v for k, v in settings.items()})


# PoCL's device of one thread, on frames for which it may be chosen.
ONE_THREAD = {"label": "one thread", "settings": {"device": "cpu:1"}, "most": 3_000_000}
ONE_THREAD_NOTE = "`one thread`: PoCL's device `basic` (docs/tuning.md, \"Small frames\")."


def cpu_peers(task):
    peers = [
        Contestant("cv2, 2 threads", "cv2", {"threads": 2}),
        Contestant("cv2, 1 thread", "cv2", {"threads": 1}),
    ]
    if task != "pitch_threshold":
        # Pillow does not filter the border and rounds differently.
        own = int(task == "gaussian")
        peers.append(Contestant("Pillow", "pillow", tolerance=own, edge=own))
    peers.append(Contestant("numpy", "numpy", most=30_000_000))
    peers.append(Contestant("sequential", "reference", most=13_000_000))
    return peers


def gpu_peers(task):
    if task == "histogram":
        return [
            Contestant("CUB", "cub"),
            Contestant("CV-CUDA", "cv-cuda"),
            Contestant("cv2 (OpenCL)", "cv2-opencl"),
            Contestant("read limit", "limit:read", tolerance=None),
        ]
    if task == "gaussian":
        return [
            Contestant("NPP", "npp", tolerance=None),
            Contestant("CV-CUDA", "cv-cuda", tolerance=None),
            Contestant("cv2 (OpenCL)", "cv2-opencl", tolerance=1),
            Contestant("copy limit", "limit:copy", tolerance=None),
        ]
    return [
        Contestant("one pixel a work-item", "baseline"),
        Contestant("read limit", "limit:read", tolerance=None),
    ]
