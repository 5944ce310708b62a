"""What stands beside a station under test: simulated cameras, a broker, clients of its page, a network of their own."""

import asyncio
import json
import pathlib
import socket
import subprocess
import sys
import time

from station import HOST, WORK, parts, send, start

FAKE = "arv-fake-gv-camera-0.8"
# A packet socket receives no loopback traffic; without the right to one, as in the service, aravis uses UDP.
UNPRIVILEGED = ["capsh", "--drop=cap_net_raw", "--", "-c", 'exec "$0" "$@"']


def start_camera(address, serial):
    """A simulated GigE Vision camera."""
    start([FAKE, "-i", address, "-s", serial], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def free_port():
    with socket.socket() as any_port:
        any_port.bind((HOST, 0))
        return any_port.getsockname()[1]


class Broker:
    """A mosquitto, and a subscriber whose session it keeps."""

    def __init__(self):
        self.port = free_port()
        folder = WORK / "broker"
        folder.mkdir()
        self.config = WORK / "mosquitto.conf"
        self.config.write_text(
            f"listener {self.port} {HOST}\nallow_anonymous true\npersistence true\n"
            f"persistence_location {folder}/\nautosave_interval 1\nmax_queued_messages 0\nuser root\n",
            encoding="utf-8",
        )
        self.run()
        # Until the broker listens.
        time.sleep(1)
        self.lines = WORK / "results"
        with open(self.lines, "wb") as lines:
            self.subscriber = start(
                ["mosquitto_sub", "-h", HOST, "-p", str(self.port), "-t", "#", "-v", "-q", "1", "-c", "-i", "line"],
                stdout=lines,
            )
        # The broker writes the subscription to its file once a second.
        time.sleep(3)

    def run(self):
        self.process = start(["mosquitto", "-c", str(self.config)], stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def frames(self, camera):
        """Numbers of the frames that came from a camera."""
        topic = f"clinspect/{camera}/result "
        with open(self.lines, encoding="utf-8") as lines:
            return {json.loads(line[len(topic) :])["frame"] for line in lines if line.startswith(topic)}


async def read(port, path):
    """Reads an endless answer."""
    async for _ in parts(port, path):
        pass


async def ask(port, path, seconds):
    """Asks again and again."""
    while True:
        reader, writer = await send(port, path, "Connection: close")
        await reader.read()
        writer.close()
        await asyncio.sleep(seconds)


async def clients(port, pages, cameras):
    """Pages as a browser opens them, and what Prometheus asks."""
    tasks = [ask(port, "/metrics", 1)]
    for page in range(pages):
        camera = cameras[page % len(cameras)]
        tasks += [read(port, "/events"), ask(port, f"/api/cameras/{camera}/history", 5)]
        # A page shows the live pictures of all cameras.
        tasks += [read(port, f"/live/{name}") for name in cameras]
    await asyncio.gather(*tasks)


class Clients:
    """A process with clients of the page."""

    def __init__(self, port, pages, cameras):
        command = ["nice", "-n", "19", sys.executable, __file__, str(port), str(pages), *cameras]
        self.process = start(command)
        time.sleep(1)

    def end(self):
        is_whole = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        return is_whole


def in_own_network(program):
    """Runs a program in a network namespace, with the argument `inside`.

    The sockets get the receive buffers that the package sets.
    """
    settings = pathlib.Path("station/packaging/sysctl.conf").read_text(encoding="ascii").splitlines()
    settings = [line.replace(" ", "") for line in settings if line and not line.startswith("#")]
    names = [setting.split("=")[0] for setting in settings]
    before = subprocess.run(["sysctl", *names], check=True, capture_output=True, text=True).stdout.splitlines()
    subprocess.run(["sysctl", "-qw", *settings], check=True)
    try:
        return subprocess.run(["unshare", "--net", sys.executable, program, "inside"], check=False).returncode
    finally:
        subprocess.run(["sysctl", "-qw", *(line.replace(" ", "") for line in before)], check=True)


if __name__ == "__main__":
    asyncio.run(clients(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
