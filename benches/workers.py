"""The programs that run the contestants."""

import json
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Longest time a program may take to end, s.
PATIENCE = 60


class Worker:
    """A program that answers a JSON line with a JSON line."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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
        if who in ("cub", "npp"):
            return "cuda"
        if who.startswith(("cv2", "pillow", "numpy")):
            return "python"
        return "rust"

    def ask(self, program, **request):
        if program not in self.commands:
            return {"skip": "its program was not built"}
        if program not in self.running:
            self.running[program] = Worker(self.commands[program])
        answer = self.running[program].ask(**request)
        if answer.pop("dead", False):
            del self.running[program]
        return answer

    def end(self):
        for worker in self.running.values():
            worker.end()
