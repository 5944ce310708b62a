"""Writes docs/benchmarks.md, a page of ratios, from the lab's tables."""

import re

import kept

HEAD = """# Benchmarks

Written by `lab/bench` from the lab's tables (`lab/figures/benchmarks.md`), which have every time and say how each
section is measured; do not edit. `lab/README.md` says how to repeat a run on your machine.

- A ratio is the speed of the first divided by that of the second: `ours to cv2` of 2 means half of OpenCV's time. Ratios
  come from medians of rounds that take turns. Before a row is timed, the results of all contestants are compared: bins
  and masks byte for byte, Gaussians sample for sample.
- CPU: the time of the whole operator, with launch and wait, for a frame in memory. GPU: the device's time, for a frame on
  the device.
- cv2: OpenCV. CUB, NPP, CV-CUDA: NVIDIA's libraries. `read limit`, `copy limit`: a kernel that only reads, or copies, the
  frame.
- "Pipelines in a process": frames/s of all pipelines together, each with the inspection chain.
- `lowest` and `highest` of all rows of a section: sizes, pictures and memory layouts. `panel` is a drawn display panel with
  noise, one of these pictures; an empty cell means that the section has no such row.
- Frames of "Growth with the frame" are panels in one channel of 8 bits.
"""

PANELS = ["1080p GRAY, panel", "4096x3072 GRAY, panel", "7728x4354 RGB, panel"]
# lab/figures/then-and-now.md has these.
PUBLISHED = ("Published ", "Work-groups ", "Steps of the published")
GROWTH = "Growth with the frame: "
# In whole: what a pipeline reaches.
WHOLE = ("Inspection chain", "Pipelines in a process")


def grid_of(lines):
    """The cells of the first table; without its line of dashes."""
    rows = [line for line in lines if line.startswith("|")]
    return [[word.strip() for word in row.strip().strip("|").split("|")] for row in rows if set(row) - set("|- ")]


def ratios_of(lines):
    """Name of each ratio, and its figures by row."""
    grid = grid_of(lines)
    found = {}
    for column, name in enumerate(grid[0] if grid else []):
        cells = {row[0]: re.fullmatch(r"\*\*([\d.]+)\*\*", row[column]) for row in grid[1:]}
        figures = {title: match[1] for title, match in cells.items() if match}
        # Beside plain code of one thread a ratio says little, and a share says what "ours to limit" does.
        says_little = " less " in name or name.endswith("to sequential") or re.match("ours to .* limit$", name)
        if figures and not says_little:
            found[name] = figures
    return found


def written(grid):
    lines = ["| " + " | ".join(line) + " |" for line in grid]
    return [lines[0], "|---" * len(grid[0]) + "|", *lines[1:]]


def device(title, body):
    """The lines of a device: its ratios, what a chain reaches, and the ratios by the frame's size."""
    head, sections = kept.parts("\n".join(body), "### ")
    facts = {row[0]: row[1] for row in grid_of(head) if row[0]}
    facts = [facts[key] for key in ("device", "OpenCL", "versions", "measured") if key in facts]
    grid = [["section", "ratio", "lowest", "highest", *PANELS]]
    growth = {}
    for section, lines in sections.items():
        for name, figures in ratios_of(lines).items():
            if section.startswith(GROWTH):
                growth[f"{section.removeprefix(GROWTH)}: {name}"] = figures
            elif not section.startswith(PUBLISHED):
                ordered = sorted(figures.values(), key=float)
                panels = [figures.get(panel, "") for panel in PANELS]
                grid.append([section, name, ordered[0], ordered[-1], *panels])
    lines = [f"## {title}", "", "; ".join(facts) + "."]
    if len(grid) > 1:
        lines += ["", *written(grid)]
    for section in WHOLE:
        if section in sections:
            lines += ["", f"### {section}, frames/s", "", *written(grid_of(sections[section]))]
    if growth:
        sizes = list(dict.fromkeys(size for figures in growth.values() for size in figures))
        rows = [[name, *(figures.get(size, "") for size in sizes)] for name, figures in growth.items()]
        lines += ["", "### Growth with the frame", "", *written([["", *sizes], *rows])]
    return lines


def document(tables):
    """The page, from the text of the lab's tables."""
    _, blocks = kept.parts(tables, "## ")
    lines = HEAD.splitlines()
    for title, body in blocks.items():
        lines += ["", *device(title, body)]
    return "\n".join(lines) + "\n"
