"""Writes the tables of all figures, docs/benchmarks.md and lab/figures/then-and-now.md from figures of machines."""

import argparse
import json
from pathlib import Path

import kept
import ratios
import then_and_now
from figures import amount, frame_rate, megabytes, rate, steps_of, time_of
from plan import pairs_of

HEAD = """# Benchmarks: the tables

Written by `lab/bench`; do not edit. Every figure is the median of interleaved rounds on one
machine: compare ratios within a table, not figures of different machines. Before a row is timed, the
results of all contestants are compared: bins and masks byte for byte, Gaussians sample for sample.

- {what}
- Pictures: `panel` is a synthetic display panel with noise. Photographs (`scripts/photographs`,
  in the order of their names) are mirrored until they fill the frame. All other pictures are drawn
  from fixed seeds.
- Frames stay in place between runs: all contestants read frames that fit a cache from the cache.
- `-`: this contestant does not take part, or not at this size.
"""

WHAT = (
    "GB/s counts input bytes (10⁹); the time is in brackets. CPU: the time of the call with enqueue "
    "and wait, for a frame in memory. GPU: the device's time from profiling events, for a frame on the "
    "device (cv2 reports no device time; its time is that of the call)."
)

# Tables with more columns are transposed.
WIDEST = 9


def steps(cell):
    """Rates by element; a step that moves no bytes is left out."""
    parts = []
    for element, fields in (cell.get("about") or {}).items():
        rates = [f"{name} {fields[name]:.0f}" for name in ("upload", "kernel", "download")
                 if fields.get(name)]
        if rates:
            parts.append(f"{element}: {', '.join(rates)}")
    return "; ".join(parts) or "-"


def parts(cell):
    """The times of the steps, such as counting and merging."""
    steps = steps_of(cell)
    return ", ".join(f"{step['name']} {amount(step['ns'])}" for step in steps if len(steps) > 1)


def of_cameras(cell):
    """Frames/s, and how evenly they are shared, or how long they take."""
    frames = f"{1e9 / cell['wall_ns']:.0f}"
    about = cell.get("about") or {}
    if "fairness" not in about:
        return frames
    if not about["rate"]:
        return f"{frames} (fair {about['fairness']:.2f})"
    passed, read = ([amount(about[f"{prefix}p{percent}-ns"]) for percent in (50, 99)] for prefix in ("", "read-"))
    return f"{frames} ({', '.join(passed)}; mask {', '.join(read)})"


def shown(cell, how, lines=0):
    if time_of(cell) is None:
        return "**fault**" if "error" in cell else "-"
    if how == "frames":
        return f"{1e9 / cell['wall_ns']:.0f}"
    if how == "cameras":
        return of_cameras(cell)
    if how == "lines":
        return f"{1e9 * lines / cell['wall_ns']:.0f}"
    if how == "latency":
        return f"{amount(cell['wall_ns'])} (p99 {amount(cell['p99_ns'])})"
    if how in ("time", "difference"):
        return amount(cell["wall_ns"])
    if how == "steps":
        return steps(cell)
    of_parts = parts(cell) if how == "parts" else ""
    return f"{rate(cell['gb_per_s'])} ({amount(time_of(cell))}{': ' * bool(of_parts)}{of_parts})"


def ratio_of(cells, pair):
    times = [time_of(cells.get(label, {})) for label in pair]
    if None in times:
        return "-"
    return f"**{times[1] / times[0]:.2f}**"


def difference_of(cells, pair):
    times = [cells.get(label, {}).get("wall_ns") for label in pair]
    if None in times:
        return "-"
    less = "-" if times[0] < times[1] else ""
    return f"**{less}{amount(abs(times[0] - times[1]))}**"


def table(section):
    rows = section["rows"]
    # A column without a single figure is left out.
    labels = [
        label for label in section["contestants"]
        if any(time_of(row["cells"].get(label, {})) is not None or
               "error" in row["cells"].get(label, {}) for row in rows)
    ]
    pairs = [pair for pair in pairs_of(section["ratio"]) if all(label in labels for label in pair)]
    limit = next((label for label in labels if label.endswith(" limit")), None)
    differs = section["shown"] == "difference"
    between = "less" if differs else "to"
    heads = [""] + labels + [f"{own} {between} {other}" for own, other in pairs]
    heads += [f"share of {limit}"] * bool(limit)
    grid = [heads]
    for row in rows:
        parts = [row["title"]]
        parts += [shown(row["cells"].get(label, {}), section["shown"], row.get("lines", 0))
                  for label in labels]
        compare = difference_of if differs else ratio_of
        parts += [compare(row["cells"], pair) for pair in pairs]
        if limit:
            parts.append(ratio_of(row["cells"], (labels[0], limit)))
        grid.append(parts)
    if len(heads) > WIDEST:
        grid = [list(column) for column in zip(*grid)]
    lines = ["| " + " | ".join(parts) + " |" for parts in grid]
    lines.insert(1, "|---" * len(grid[0]) + "|")
    return lines


def timeline(section):
    """A line for each step of each contestant."""
    heads = ["", "start", "end", "duration", "MB/s of the frame", "MB/s moved"]
    grid = [heads, ["---"] * len(heads)]
    for row in section["rows"]:
        for label, cell in row["cells"].items():
            name = f"{row['title']}: {label}"
            steps = steps_of(cell)
            if not steps:
                grid.append([name, shown(cell, "time"), "", "", "", ""])
            for step in steps:
                grid.append([
                    f"{name}, {step['name']}", amount(step["start_ns"]), amount(step["end_ns"]),
                    amount(step["ns"]), frame_rate(row["bytes"], step),
                    megabytes(step["moved"], step["ns"]),
                ])
            if len(steps) > 1:
                total = max(step["end_ns"] for step in steps)
                grid.append([f"{name}, all", amount(0), amount(total), amount(total),
                             megabytes(row["bytes"], total), ""])
    return ["| " + " | ".join(line) + " |" for line in grid]


def about(figures):
    machine = figures["machine"]
    device = machine["device"]
    versions = ", ".join(f"{name} {v}" for name, v in sorted(machine["versions"].items()))
    versions = versions.replace("GStreamer GStreamer", "GStreamer")
    facts = [
        ("device", f"{device['name']}, {device.get('compute-units', '?')} compute units"),
        ("OpenCL", f"{device.get('opencl', '?')}, driver {device.get('driver', '?')}"),
        ("GPU, driver, memory", machine["GPU"]),
        ("CPU", f"{machine['CPU']}, {machine['cores']} cores, {machine['memory']}"),
        ("system", machine["system"]),
        ("versions", versions),
        ("measured", f"{machine['date']}, commit {machine['commit'] or 'unknown'}, "
                     f"{figures['seconds']} s{', --quick' if figures['quick'] else ''}"),
    ]
    return ["| | |", "|---|---|"] + [f"| {k} | {v} |" for k, v in facts if v]


def kind_of(figures):
    """The first word of a device's heading."""
    return ("GPU" if figures["gpu"] else "CPU") + (", pairs alone" if figures.get("pairs") else "")


def block(figures):
    """The lines of a device's block, without its heading."""
    lines = ["", *about(figures)]
    for section in figures["sections"]:
        lines += ["", f"### {section['title']}", ""]
        if section["note"]:
            lines += [section["note"], ""]
        lines += timeline(section) if section["shown"] == "timeline" else table(section)
    if figures["faults"]:
        lines += ["", "### Faults", "", *(f"- {fault}" for fault in figures["faults"])]
    return lines


def measured(lines):
    """When a device's block was measured: the row that `about` writes."""
    row = next((line for line in lines if line.startswith("| measured | ")), "")
    return ",".join(row.removeprefix("| measured | ").split(",")[:2])


def document(all_figures, before):
    """The document; blocks and sections of `before` that were not measured anew stay as they are."""
    _, blocks = kept.parts(before, "## ")
    for figures in all_figures:
        kind, machine = kind_of(figures), figures["machine"]
        old = next((title for title in blocks if title.split(":")[0] == kind), None)
        title = f"{kind}: {machine['device']['name']}"
        whole = kept.incomplete(blocks[old], figures["sections"]) if old else set()
        if figures.get("only") and old:
            sections = [s for s in figures["sections"] if s["title"] not in whole]
            commit = machine["commit"] or "unknown"
            lines = kept.merge_sections(blocks[old], block({**figures, "sections": sections}),
                                        f"{machine['date']}, commit {commit}")
            title = old
        else:
            lines = block(figures)
            if old:
                lines = kept.keep_whole(blocks[old], lines, whole, measured(blocks[old]))
        blocks = {title if name == old else name: body for name, body in blocks.items()}
        blocks[title] = lines
    lines = HEAD.format(what=WHAT).splitlines()
    for title, body in sorted(blocks.items()):
        while body and not body[-1]:
            body.pop()
        lines += ["", f"## {title}", *body]
    return "\n".join(lines) + "\n"


def rewrite(path, document_of):
    """Writes a document that is made from what the file holds now."""
    path = Path(path)
    path.write_text(document_of(path.read_text() if path.exists() else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", required=True, help="file to write all figures to")
    parser.add_argument("--ratios", help="file to write the page of ratios to")
    parser.add_argument("--then", help="file to write the published figures to, beside today's")
    parser.add_argument("figures", nargs="*", help="JSON files of compare.py")
    options = parser.parse_args()
    all_figures = [json.loads(Path(path).read_text()) for path in options.figures]
    rewrite(options.tables, lambda before: document(all_figures, before))
    if options.ratios:
        Path(options.ratios).write_text(ratios.document(Path(options.tables).read_text()))
    # Pairs alone are not all the figures of that document.
    if options.then and not all(figures.get("pairs") for figures in all_figures):
        rewrite(options.then, lambda before: then_and_now.document(all_figures, before))


if __name__ == "__main__":
    main()
