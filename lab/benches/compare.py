"""Measures all contestants side by side and writes the figures as JSON.

Each row is run in interleaved rounds, so that a disturbance of the machine affects all contestants;
figures are medians. The results of a row are compared before it is timed. `lab/bench` calls this;
`report.py` makes the tables.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import rows
from machine import describe
from plan import pairs_of
from then_and_now import COST
from workers import Workers


class Cell:
    """One contestant's part of a row."""

    def __init__(self, number, contestant):
        self.number = number
        self.contestant = contestant
        self.program = Workers.of(contestant.who)
        # Medians of the rounds; `single` holds every run.
        self.wall, self.device, self.single = [], [], []
        self.about = None
        self.problem = {}
        self.inner = 1
        self.rounds = 1

    def failed(self, answer):
        for key in ("error", "skip"):
            if key in answer:
                self.problem = {key: " ".join(str(answer[key]).split())[:300]}
                return True
        return False

    def figures(self, row):
        if self.problem:
            return self.problem
        wall = float(np.median(self.wall))
        out = {"wall_ns": round(wall), "runs": self.rounds * self.inner}
        best = wall
        if self.device:
            best = float(np.median(self.device))
            out["device_ns"] = round(best)
        counted = row.counted or row.size[0] * row.size[1] * row.size[2]
        out["gb_per_s"] = round(counted / best, 3)
        if row.settings.get("latency"):
            out["p99_ns"] = round(float(np.percentile(self.single, 99)))
        if self.about:
            out["about"] = self.about
        return out


def without(settings, *keys):
    return {k: v for k, v in settings.items() if k not in keys}


def on_device(pipeline, device):
    """The pipeline, with the property `device` set on each of our elements."""
    parts = []
    for part in pipeline.split(" ! "):
        words = part.split(" ", 1)
        if words[0].startswith("cl"):
            words.insert(1, f'device="{device}"')
        parts.append(" ".join(words))
    return " ! ".join(parts)


class Bench:
    def __init__(self, options):
        self.options = options
        self.workers = Workers(options)
        self.scratch = Path(options.scratch)
        self.picture = None
        self.slot = 0
        # Failures and wrong results; a contestant that cannot take part is not a fault.
        self.faults = []

    def draw(self, row):
        """The row's picture in a file; reused while the next row needs the same one."""
        wanted = (row.kind, row.size)
        path = self.scratch / "picture.raw"
        if self.picture != wanted:
            width, height, channels = row.size
            answer = self.workers.ask(
                "rust", op="picture", path=str(path), kind=row.kind, width=width, height=height,
                channels=channels, photographs=self.options.photographs,
            )
            if "error" in answer or "skip" in answer:
                self.picture = None
                return None, answer
            self.picture = wanted
        return path, {}

    def prepare(self, cell, row, path):
        width, height, channels = row.size
        frame = {
            "path": str(path), "width": width, "height": height, "channels": channels,
            "stride": row.stride or width * channels, "base": row.base,
        }
        c = cell.contestant
        if c.most and width * height * channels > c.most:
            cell.problem = {"skip": "too slow at this size"}
            return
        settings = {"device": self.options.device, **row.settings, **c.settings}
        if "side" in settings:
            settings["pipeline"] = settings[settings["side"]]
        settings = without(settings, "side", "own", "theirs")
        if c.who == "cameras":
            settings["seconds"] = self.options.cameras[bool(settings.get("rate"))]
        if "pipeline" in settings:
            settings["pipeline"] = on_device(settings["pipeline"], settings["device"])
        # A limit's name is its task; `fresh` tells which program runs a pipeline.
        who, _, limit = c.who.removesuffix(":fresh").partition(":")
        answer = self.workers.ask(
            cell.program, op="prepare", slot=cell.number, who=who, task=limit or row.task,
            frame=frame, settings=settings,
        )
        if not cell.failed(answer):
            cell.about = answer.get("about")

    def run(self, cell, times):
        answer = self.workers.ask(cell.program, op="run", slot=cell.number, times=times)
        if cell.failed(answer):
            return None
        cell.about = answer.get("about") or cell.about
        return answer

    def settle(self, cell, row):
        """Warms up and chooses the number of runs."""
        if cell.contestant.who == "cameras":
            # A run has its own duration and warms up itself.
            return
        piped = cell.contestant.who == "pipeline" and not row.settings.get("start")
        first = self.run(cell, 16 if piped else 1)
        # The first run allocates and compiles; the second shows the cost. Slow contestants need no
        # second run.
        slow = first and not piped and first["wall"][0] > 3e8
        second = first if slow else first and self.run(cell, 8 if piped else 1)
        if not second:
            return
        cost = max(float(np.median(second["wall"])), 1e3)
        budget = self.options.seconds * 1e9 * (3 if piped else 1)
        runs = budget / cost
        cell.rounds = int(min(max(runs, 1 if self.options.quick else 2), self.options.rounds))
        cell.inner = int(min(max(runs / cell.rounds, 1), 4000 if piped else 50))
        if row.settings.get("latency"):
            # A 99th percentile needs many frames.
            cell.inner = max(cell.inner, 10 if self.options.quick else 40)
            cell.rounds = max(cell.rounds, 3)

    def check(self, cells, row):
        """Compares all results with an exact one: that of the reference, else of the first exact peer."""
        if row.task in ("limit", "pipeline"):
            return
        exact = [c for c in cells if c.contestant.tolerance == 0 and c.contestant.edge == 0]
        trusted = ["reference", "pillow", "numpy", "cv2", "cub", "ours"]
        if row.task == "histogram":
            # cv2 counts in float32, which cannot represent odd numbers above 2^24.
            trusted.remove("cv2")
        exact.sort(key=lambda c: trusted.index(c.contestant.who)
                   if c.contestant.who in trusted else len(trusted))
        if not exact:
            return
        # Float arithmetic is defined to within a rounding of the integer result.
        floating = 1 if row.settings.get("float") else 0
        truth = self.result(exact[0])
        for cell in cells:
            c = cell.contestant
            if cell is exact[0] or c.tolerance is None or cell.problem:
                continue
            result, expected = self.result(cell), truth
            if row.task == "histogram" and c.who.startswith("cv2") and truth is not None:
                expected = truth.view("<u4").astype(np.float32).astype("<u4").view(np.uint8)
            why = differs(result, expected, row, max(c.tolerance, floating), c.edge)
            if why:
                other = exact[0].contestant.label
                cell.problem = {"error": f"the result differs from that of {other}: {why}"}

    def result(self, cell):
        path = self.scratch / "result.raw"
        answer = self.workers.ask(
            cell.program, op="result", slot=cell.number, path=str(path)
        )
        if cell.failed(answer):
            return None
        return np.fromfile(path, np.uint8)

    def measure(self, row, contestants):
        path, problem = self.draw(row)
        cells = []
        for contestant in contestants:
            self.slot += 1
            cell = Cell(self.slot, contestant)
            cells.append(cell)
            if path is None:
                cell.problem = problem
                continue
            self.prepare(cell, row, path)
            if not cell.problem:
                self.settle(cell, row)
        self.check([c for c in cells if not c.problem], row)
        for index in range(max((c.rounds for c in cells if not c.problem), default=0)):
            for cell in cells:
                if cell.problem or index >= cell.rounds:
                    continue
                answer = self.run(cell, cell.inner)
                if answer:
                    cell.wall.append(float(np.median(answer["wall"])))
                    cell.single += answer["wall"]
                    if "device" in answer and self.options.gpu:
                        cell.device.append(float(np.median(answer["device"])))
        for cell in cells:
            if "error" in cell.problem:
                text = f"{row.title}, {cell.contestant.label}: {cell.problem['error']}"
                self.faults.append(text)
                print(f"  FAULT {text}", file=sys.stderr)
            # Memory is released between rows: the largest need several GB.
            if cell.program in self.workers.running:
                self.workers.ask(cell.program, op="drop", slot=cell.number)
        return {c.contestant.label: c.figures(row) for c in cells}


def cost_of(options):
    """The steps of a whole program on the device, by opencl_cost; none if it was not built."""
    if not options.cost or options.only.lower() not in COST.lower():
        return None
    runs = "1" if options.quick else "5"
    command = [options.cost, "--increment", "--json", "--cold-runs", runs, "--device", options.device]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": " ".join(done.stderr.split())[-300:]}
    return json.loads(done.stdout)[0]


def differs(result, truth, row, tolerance, edge):
    """How a result differs from the truth; empty if it does not."""
    if result is None or truth is None:
        return "there is no result"
    if result.size != truth.size:
        return f"{result.size} bytes instead of {truth.size}"
    if row.task not in ("gaussian", "flat", "unpack"):
        wrong = int((result != truth).sum())
        return f"{wrong} bytes" if wrong else ""
    width, height, channels = row.size
    if row.settings.get("words"):
        result, truth, width = result.view("<u2"), truth.view("<u2"), width // 2
    # Columns of the result for one of the input, and channels of the result.
    columns, channels = row.settings.get("output", (1, channels))
    width = round(width * columns)
    pair = [a.reshape(height, width, channels) for a in (result, truth)]
    if edge:
        pair = [a[edge:-edge, edge:-edge] for a in pair]
    apart = int(np.abs(np.subtract(*pair, dtype=np.int32)).max(initial=0))
    return f"samples by up to {apart}" if apart > tolerance else ""


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", required=True, help="the program bench_worker")
    parser.add_argument("--cuda", help="the program built from peers.cu")
    parser.add_argument("--python", default=sys.executable, help="interpreter with cv2 and Pillow")
    parser.add_argument("--cost", help="the program opencl_cost")
    parser.add_argument("--device", default="cpu", help="cpu, gpu, gpu:1, or part of a name")
    parser.add_argument("--gpu", action="store_true", help="compare with GPU peers")
    parser.add_argument("--photographs", default="", help="folder of PNG photographs")
    parser.add_argument("--commit", default="", help="what was built, where git cannot tell")
    parser.add_argument("--only", default="", help="only sections whose title contains this text")
    parser.add_argument("--pairs", action="store_true",
                        help="only the two contestants of each section's ratio")
    parser.add_argument("--quick", action="store_true", help="fewest rounds")
    parser.add_argument("--tiny", action="store_true", help="tiny frames, to test this program")
    parser.add_argument("--out", required=True, help="JSON file to write")
    options = parser.parse_args()
    options.gpu = options.gpu or options.device.startswith("gpu")
    options.rounds = 3 if options.quick else 9
    options.seconds = 0.04 if options.quick else 0.25
    # Of cameras at full speed, and at their pace: a percentile needs many frames.
    options.cameras = (0.5, 2.0) if options.quick else (2.0, 8.0)
    if options.tiny:
        options.rounds, options.seconds, options.cameras = 1, 0.001, (0.2, 0.4)
    return options


def main():
    options = parse()
    started = time.monotonic()
    sections = rows.tiny_sections() if options.tiny else rows.all_sections(options.gpu)
    done = []
    with tempfile.TemporaryDirectory(prefix="clinspect-bench-") as scratch:
        options.scratch = scratch
        bench = Bench(options)
        about = describe(bench.workers, options)

        def write(cost=None):
            figures = {"machine": about, "gpu": options.gpu, "quick": options.quick,
                       "pairs": options.pairs, "only": options.only,
                       "seconds": round(time.monotonic() - started), "sections": done,
                       "cost": cost, "faults": bench.faults}
            Path(options.out).parent.mkdir(parents=True, exist_ok=True)
            Path(options.out).write_text(json.dumps(figures, indent=1) + "\n")

        for section in sections:
            if options.only.lower() not in section.title.lower():
                continue
            if options.pairs:
                # Frames of other contestants would evict those of the two from the caches.
                compared = {label for pair in pairs_of(section.ratio) for label in pair}
                section.contestants = [c for c in section.contestants if c.label in compared]
            if not section.contestants:
                continue
            measured = []
            for row in section.rows:
                print(f"{time.monotonic() - started:6.0f} s  {section.title}: {row.title}",
                      file=sys.stderr)
                measured.append({
                    "title": row.title, "bytes": row.size[0] * row.size[1] * row.size[2],
                    "lines": row.size[1],
                    "cells": bench.measure(row, section.contestants),
                })
            done.append({
                "title": section.title, "note": section.note, "shown": section.shown,
                "ratio": section.ratio, "contestants": [c.label for c in section.contestants],
                "rows": measured,
            })
            # A run that is cut short leaves what it measured.
            write()
        bench.workers.end()
    cost = cost_of(options)
    if cost and "error" in cost:
        bench.faults.append(f"{COST}: {cost['error']}")
    write(cost)
    if bench.faults:
        sys.exit(f"{len(bench.faults)} contestants failed or gave a wrong result")


if __name__ == "__main__":
    main()
