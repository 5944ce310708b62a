"""Writes lab/figures/then-and-now.md: published figures beside today's, from the figures of compare.py."""

from dataclasses import dataclass

import kept
from figures import amount, megabytes, steps_of, time_of
from published import (
    BYTES, COLOUR, GAUSSIAN, GAUSSIAN_GROUPS, GROUPS, LINE, PITCH_STEPS, WARP, lines_read,
)

COST_TITLE = "Cost of OpenCL"
COST = "Published cost of OpenCL"

HEAD = """# Then and now

Written by `lab/bench`; do not edit. The algorithms of this project were published as experiments from
2013 to 2016. Each published figure stands here beside the same experiment today, corrected where
[semantics.md](../../docs/semantics.md) says so, and beside ours, which gives the same result. The lab's
tables ([benchmarks.md](benchmarks.md)) have all variants, and the sections named below say how they work.
`lab/bench --only "TITLE"` repeats a section.

- The CPU's times are those of the call with enqueue and wait; the GPU's, and the times of single steps, are from
  profiling events. Merging on the host is timed by the host.
- `-`: not published, not measured, or the device has no such step.
- "not named": the publication, as we have it, names no hardware. Machines differ: compare how the figures of an
  experiment relate, not figures of different years.
"""

RGB = "7728x4354 RGB, panel"
GREY = "4096x3072 GRAY, panel"
HD = "1080p GRAY, panel"
UNNAMED = "not named"


@dataclass
class Figure:
    """A published figure, and where the same experiment's figure of today is."""

    what: str
    published: str
    section: str
    row: str
    contestant: str
    # Name of a step, `all` for all steps, empty for the whole run.
    step: str = ""
    # Ours: name of its contestant and step; an empty name if we have no such step.
    ours: str = "ours"
    ours_step: str = ""
    # How the figure is shown: time, or MB/s of the frame.
    unit: str = "time"
    hardware: str = UNNAMED


@dataclass
class Experiment:
    title: str
    year: str
    note: str
    figures: list


def pitch(what, published, contestant, step):
    return Figure(what, published, PITCH_STEPS, GREY, contestant, step, "ours", step, "MB/s")


def gaussian(step, section, published, names):
    """A step of the Gaussian: its published times, ms, from buffers and images, and the names of today's variants."""
    kinds = ("buffer, integer", "buffer, float", "image, integer", "image, float")
    return [Figure(f"{step}: {kind}", f"{ms} ms", section, HD, f"{kind}, {name}")
            for kind, ms, name in zip(kinds, published, names) if ms]


PACKED, UNPACKED, ALONE = "threshold, packed", "threshold, unpacked", "comparison alone"
PRIVATE = "private, merged "

EXPERIMENTS = [
    Experiment(
        "Colour histogram", "2015",
        "A picture of 7728x4354 RGB, a table per work-item; today's picture is a synthetic panel. Our "
        "figure is for counting and merging together.",
        [
            Figure("OpenCL part: counting", "0.9 s", COLOUR, RGB, PRIVATE + "on the host", "count", ""),
            Figure("merging on the host", "18 s", COLOUR, RGB, PRIVATE + "on the host", "merge", ""),
            Figure("merged on the device, in all", "2.5 s", COLOUR, RGB, PRIVATE + "by the last group"),
            Figure("the same with groups of 768", "-", COLOUR, RGB, PRIVATE + "by the last 768"),
            Figure("Python's imaging library", "1.5 s", COLOUR, RGB, "Pillow"),
            Figure("counting and merging on the host", "-", COLOUR, RGB, PRIVATE + "on the host"),
            Figure("merging by a work-item a bin", "-", COLOUR, RGB, PRIVATE + "by a work-item a bin",
                   "merge", ""),
            Figure("merging by many work-items a bin", "-", COLOUR, RGB, PRIVATE + "by many", "merge", ""),
        ],
    ),
    Experiment(
        "histogram256 with byte counters in local memory", "not named",
        "From a cookbook, after a sample of AMD; it names no times. The frame size is not known; today's is 4096x3072 GRAY. A work-item counts at most 255 pixels.",
        [Figure(f"{layout} layout, {merge}", "-", BYTES, GREY, f"{layout}, {merge}")
         for layout in ("banked", "plain") for merge in ("merged by one", "merged by all")],
    ),
    Experiment(
        "Pitch comparison and threshold", "2013",
        "MB/s of the frame, whatever a step moves. The frame size is not known; today's is 4096x3072 "
        "GRAY. Published were a figure per step and one for all; which is which follows from the "
        "figures: a packed mask is an eighth of the bytes.",
        [
            pitch("upload", "6144 MB/s", PACKED, "upload"),
            pitch("kernel, mask packed", "2097 MB/s", PACKED, "kernel"),
            pitch("download, mask packed", "49188 MB/s", PACKED, "download"),
            pitch("all steps, mask packed", "1285 MB/s", PACKED, "all"),
            pitch("kernel, before packing", "3085 MB/s", UNPACKED, "kernel"),
            pitch("download, before packing", "6330 MB/s", UNPACKED, "download"),
            pitch("all steps, before packing", "1406 MB/s", UNPACKED, "all"),
            pitch("kernel, comparison alone", "-", ALONE, "kernel"),
        ],
    ),
    Experiment(
        "Gaussian 3x3", "2016",
        "One pixel per work-item; a kernel on one target, step by step. The frame size is not known; today's is "
        "1080p GRAY, in which every variant is measured on both devices. The published steps follow each other. "
        "Today's variants are one expression in groups of 16x16, except for what their row says; beside the "
        "published shift, which came before the single expression, stand nine statements.",
        [
            *gaussian("start, four divisions", GAUSSIAN, ("92.324", "118.247", "216.713", "128.237"),
                      ["four divisions"] * 4),
            *gaussian("one division", GAUSSIAN, ("", "", "179.58", "128.587"), ["one division"] * 4),
            *gaussian("shift (integer), native_divide (float)", GAUSSIAN,
                      ("85.172", "118.32", "165.95", "127.517"), ["nine statements", "native_divide"] * 2),
            *gaussian("one expression", GAUSSIAN, ("", "", "142.94", ""), ["shift"] * 4),
            *gaussian("centre first", GAUSSIAN, ("", "", "143.567", "128.01"),
                      ["centre first", "native_divide, centre first"] * 2),
            *gaussian("groups of 32x4, not NULL", GAUSSIAN_GROUPS, ("90.7", "108.25", "143.9", "125.238"),
                      ["32x4"] * 4),
        ],
    ),
]


def cell_of(figures, section, row, contestant):
    for candidate in (figures or {}).get("sections", []):
        if candidate["title"] != section:
            continue
        for line in candidate["rows"]:
            if line["title"] == row:
                return line["cells"].get(contestant, {}), line.get("bytes", 0)
    return {}, 0


def value(figures, figure, contestant, step):
    cell, count = cell_of(figures, figure.section, figure.row, contestant)
    if "error" in cell:
        return "**fault**"
    if not step:
        ns = time_of(cell)
    elif step == "all":
        ns = max((s["end_ns"] for s in steps_of(cell)), default=None)
    else:
        # A step that happens several times counts as a whole; a small result is no frame.
        named = [s for s in steps_of(cell) if s["name"] == step and s["moved"] * 100 >= count]
        ns = sum(s["ns"] for s in named) or None
    if ns is None:
        return "-"
    return amount(ns) if figure.unit == "time" else f"{megabytes(count, ns)} MB/s"


def written(grid):
    lines = ["| " + " | ".join(line) + " |" for line in grid]
    lines.insert(1, "|---" * len(grid[0]) + "|")
    return lines


def experiment_table(experiment, cpu, gpu):
    grid = [["", "published", "hardware", "year", "same on the CPU", "same on the GPU",
             "ours on the CPU", "ours on the GPU"]]
    for figure in experiment.figures:
        same = [value(f, figure, figure.contestant, figure.step) for f in (cpu, gpu)]
        ours = [value(f, figure, figure.ours, figure.ours_step) for f in (cpu, gpu)]
        grid.append([figure.what, figure.published, figure.hardware, experiment.year, *same, *ours])
    return written(grid)


def group_table(cpu, gpu):
    """The Gaussian's work-groups beside the lines of memory that they read."""
    grid = [["work-items of a group", "lines read", "CPU, integer", "CPU, float", "GPU, integer",
             "GPU, float"]]
    for group in GROUPS:
        times = []
        for figures in (cpu, gpu):
            for arithmetic in ("integer", "float"):
                label = f"buffer, {arithmetic}, {group}"
                cell, _ = cell_of(figures, GAUSSIAN_GROUPS, GREY, label)
                ns = time_of(cell)
                times.append("-" if ns is None else amount(ns))
        lines = "-" if group == "driver" else str(lines_read(group))
        name = "NULL: the driver chooses" if group == "driver" else group
        grid.append([name, lines, *times])
    return written(grid)


def cost_table(cpu, gpu):
    costs = [(figures or {}).get("cost") or {} for figures in (cpu, gpu)]
    programs = [cost.get("increment") for cost in costs]
    known = next((p for p in programs if p), None)
    grid = [["", "Core i7-3540M", "HD Graphics 4000", "CPU, empty cache", "CPU, warm cache",
             "GPU, empty cache", "GPU, warm cache"]]

    def milliseconds(fields):
        times = []
        for program in programs:
            line = fields(program) if program else {}
            times += [amount(line[key] * 1e6) if key in line else "-" for key in ("cold_ms", "warm_ms")]
        return times

    for index, step in enumerate(known["steps"] if known else []):
        def line_of(program, at=index):
            return program["steps"][at]

        grid.append([step["step"], "-", "-", *milliseconds(line_of)])
    grid.append(["**all steps**", "13.0 ms", "19.1 ms", *milliseconds(lambda program: program)])
    return written(grid)


def document(all_figures, before):
    """The document; figures of `before` stay where a device, or a section of it, was not measured anew."""
    def first(gpu):
        fitting = [f for f in all_figures if f["gpu"] == gpu and not f.get("pairs")]
        return fitting[0] if fitting else None

    cpu, gpu = first(False), first(True)
    lines = HEAD.splitlines() + ["", "| | today's machine | measured |", "|---|---|---|"]
    for name, figures in (("CPU", cpu), ("GPU", gpu)):
        machine = figures["machine"] if figures else {}
        device = machine.get("device", {}).get("name", "-")
        commit = machine.get("commit") or "unknown"
        when = f"{machine['date']}, commit {commit}" if machine else "-"
        if machine and figures.get("only") and before:
            # Most figures are older; lab/figures/benchmarks.md says when a section was measured.
            device = when = "-"
        lines.append(f"| {name} | {device} | {when} |")
    for experiment in EXPERIMENTS:
        lines += ["", f"## {experiment.title}", "", experiment.note, ""]
        sections = dict.fromkeys(figure.section for figure in experiment.figures)
        lines += ["Sections: " + ", ".join(f"`{title}`" for title in sections) + ".", ""]
        lines += experiment_table(experiment, cpu, gpu)
    lines += [
        "", "### Memory transactions of the Gaussian", "",
        f"The publication counted 9 against 32 memory transactions. `lines read` counts lines of {LINE} "
        f"bytes for the nine reads of {WARP} neighbouring work-items, which execute together: if they "
        "are in one row, a read is one line, and nine reads are 9. If each is in a row of its own, one "
        "read alone is 32 lines. Caches hold lines that several reads share, so the measured times differ "
        "less than the counts, and a CPU, whose work-items run one after the other, does not follow the "
        "count. Floats in memory fill a line with 32 samples and move four times the bytes (section "
        f"`{GAUSSIAN}`).", "",
        f"Section: `{GAUSSIAN_GROUPS}`; from buffers, 4096x3072 GRAY.", "",
        *group_table(cpu, gpu),
        "", f"## {COST_TITLE}", "",
        "Published about 2014, for a Core i7-3540M and its HD Graphics 4000. Today's program is `opencl_cost "
        "--increment` (`lab/opencl_cost`), which increments 2²⁰ integers, in a fresh process: with "
        "an empty compiler cache, and with the cache of the run before. The published number of integers "
        "is not known, and of its figures we have the sums.", "",
        f"Section: `{COST}`.", "",
    ]
    _, sections = kept.parts(before, "## ")
    is_measured = any((figures or {}).get("cost") for figures in (cpu, gpu))
    if is_measured or COST_TITLE not in sections:
        lines += cost_table(cpu, gpu)
    else:
        lines += [line for line in sections[COST_TITLE] if line.startswith("|")]
    for device, figures in (("CPU", cpu), ("GPU", gpu)):
        if not figures or figures.get("only"):
            lines = kept.fill(lines, before, device)
    return "\n".join(lines) + "\n"
