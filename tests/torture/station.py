"""A station under test, and what clients of its page send. For the rows that start a station."""

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.request

from verdicts import give_up

WORK = pathlib.Path(os.environ["CLINSPECT_TORTURE_WORK"])
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
# Builds the program below TARGET.
BUILD = ["cargo", "build", "--locked", "--quiet", "--manifest-path", "station/Cargo.toml", "--target-dir", TARGET, "--bins"]
# Where the page stands, and clients of the page ask.
HOST = "127.0.0.1"


def start(command, **more):
    """A process that ends with this one."""
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], **more)


def processor_time(folder):
    """Name and processor time, s, of the process or thread with this folder in /proc."""
    name, fields = (folder / "stat").read_text(encoding="utf-8").split("(", 1)[1].rsplit(")", 1)
    ticks = sum(int(field) for field in fields.split()[11:13])
    return name, ticks / os.sysconf("SC_CLK_TCK")


class Station:
    """A station that runs; its page is at `port`.

    `profile` is the folder of the program in target/, `wrapper` a command that executes its arguments.
    """

    def __init__(self, name, config, profile, wrapper=()):
        file = WORK / f"{name}.toml"
        file.write_text(f'listen = "{HOST}:0"\n{config}', encoding="utf-8")
        self.log = WORK / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = start([*wrapper, TARGET / profile / "clinspect-station", file], stdout=log, stderr=log)
        self.folder = pathlib.Path(f"/proc/{self.process.pid}")
        self.port = self._wait(self._find_port, 30)

    def _find_port(self):
        for line in self.log.read_text(encoding="utf-8").splitlines():
            if "http://" in line:
                return int(line.rstrip("/ ").rsplit(":", 1)[1])
        return None

    def _wait(self, what, seconds):
        """Waits until `what` gives something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := what():
                return found
            time.sleep(0.2)
        return give_up(f"nothing after {seconds} s: {self.log.read_text(encoding='utf-8')}")

    def cameras(self):
        """The numbers of each camera."""
        # Not the proxy of the environment.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{HOST}:{self.port}/api/cameras", timeout=20) as response:
            return json.load(response)

    def wait_for_frames(self, count):
        """Waits until each camera has inspected so many frames."""
        self._wait(lambda: all(of["frames"] >= count for of in self.cameras()), 180)

    def busy(self):
        """Processor time of the station, s."""
        return processor_time(self.folder)[1]

    def end(self):
        """Stops the station."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


async def send(port, path, *lines):
    """Sends a GET with these lines in its head; returns a reader and a writer."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write("\r\n".join([f"GET {path} HTTP/1.1", f"Host: {HOST}:{port}", *lines, "", ""]).encode())
    return reader, writer


async def parts(port, path):
    """The parts of an endless answer."""
    reader, writer = await send(port, path)
    while data := await reader.read(1 << 16):
        yield data
    writer.close()
