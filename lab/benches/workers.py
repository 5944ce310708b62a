"""The programs that run the contestants."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Variables that name the folders of the compilers' caches.
CACHES = ("POCL_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME")
# Longest time a program may take to end, s.
PATIENCE = 60
# PoCL offers its device of one thread, too; it is `cpu:1`.
POCL_DEVICES = "pthread basic"


class Worker:
    """A program that answers a JSON line with a JSON line."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def ask(self, **request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            # Drivers may print lines of their own.
            while line and not line.startswith("{"):
                line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return {"error": f"the program ended with {self.process.wait()}", "dead": True}
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()


class FreshWorker:
    """A contestant that runs in a new process each time, with empty caches of the compilers."""

    def __init__(self, command):
        self.command = command
        self.prepared = {}

    def ask(self, op, slot, **request):
        if op == "prepare":
            self.prepared[slot] = request
            return {}
        if op != "run":
            return {}
        runs = [self.run(slot) for _ in range(request["times"])]
        failed = [run for run in runs if "wall" not in run]
        return failed[0] if failed else {"wall": [run["wall"][0] for run in runs]}

    def run(self, slot):
        with tempfile.TemporaryDirectory(prefix="clinspect-cache-") as cache:
            worker = Worker(self.command, {**os.environ, **dict.fromkeys(CACHES, cache)})
            answer = worker.ask(op="prepare", slot=slot, **self.prepared[slot])
            if not answer.keys() & {"error", "skip"}:
                answer = worker.ask(op="run", slot=slot, times=1)
            worker.end()
            return answer

    def end(self):
        pass


class Workers:
    """The programs. Each is started once, and again after a crash."""

    def __init__(self, options):
        self.commands = {
            "rust": [str(options.worker)],
            "python": [options.python, str(HERE / "peers.py")],
        }
        if options.cuda:
            self.commands["cuda"] = [str(options.cuda)]
        self.running = {}

    @staticmethod
    def of(who):
        if who == "pipeline:fresh":
            return "fresh"
        if who in ("cub", "npp"):
            return "cuda"
        if who.startswith(("cv2", "cv-cuda", "pillow", "numpy")):
            return "python"
        return "rust"

    def ask(self, program, **request):
        is_fresh = program == "fresh"
        command = self.commands.get("rust" if is_fresh else program)
        if command is None:
            return {"skip": "its program was not built"}
        if program not in self.running:
            env = {"POCL_DEVICES": POCL_DEVICES, **os.environ}
            self.running[program] = FreshWorker(command) if is_fresh else Worker(command, env)
        answer = self.running[program].ask(**request)
        if answer.pop("dead", False):
            del self.running[program]
        return answer

    def end(self):
        for worker in self.running.values():
            worker.end()
