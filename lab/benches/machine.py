"""Describes the machine that the figures come from."""

import datetime
import os
import platform
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent


def cpu_name():
    try:
        text = Path("/proc/cpuinfo").read_text()
        names = [line.split(":", 1)[1].strip() for line in text.splitlines()
                 if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def describe(workers, options):
    versions, devices = {}, []
    for program in workers.commands:
        about = workers.ask(program, op="hello").get("about", {})
        versions.update(about.get("versions", {}))
        devices += about.get("devices", [])
    wanted = [d for d in devices if d["gpu" if options.gpu else "cpu"]]
    release = Path("/etc/os-release")
    system = ""
    if release.exists():
        fields = dict(l.split("=", 1) for l in release.read_text().splitlines() if "=" in l)
        system = fields.get("PRETTY_NAME", "").strip('"')
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "CPU": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{pages / 2**30:.0f} GiB",
        "system": f"{system}, Linux {platform.release()}",
        "device": (wanted or devices or [{"name": "none"}])[0],
        "GPU": output_of("nvidia-smi", "--query-gpu=name,driver_version,memory.total",
                         "--format=csv,noheader"),
        "versions": versions,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "commit": options.commit
        or output_of("git", "-C", str(HERE), "rev-parse", "--short", "HEAD"),
    }
