"""A model and references that a full disk does not take: a warning says so, and inspection goes on.

The caller gives this process mounts of its own (`unshare -m`). Prints "both go on" if everything is right.
"""

import os
import subprocess
import sys
import tempfile

try:
    import gi

    gi.require_version("Gst", "1.0")
    from gi.repository import Gst
except (ImportError, ValueError) as missing:
    print(missing)
    sys.exit(77)

Gst.init(None)
SOURCE = "videotestsrc name=source pattern=gradient ! video/x-raw,format=GRAY8,width=320,height=240,framerate=200/1"
# Less than the model (921 kB) and the reference (307 kB) need.
TMPFS = "size=100k"


class Line:
    """A pipeline, its warnings, and the buffers that arrive at its end."""

    def __init__(self, element):
        self.pipeline = Gst.parse_launch(f"{SOURCE} ! {element} ! appsink name=out max-buffers=1 sync=false")
        self.bus = self.pipeline.get_bus()
        self.out = self.pipeline.get_by_name("out")
        self.warnings = []
        self.pipeline.set_state(Gst.State.PLAYING)

    def frame(self):
        """The next buffer."""
        sample = self.out.emit("try-pull-sample", 20 * Gst.SECOND)
        while message := self.bus.pop_filtered(Gst.MessageType.WARNING | Gst.MessageType.ERROR):
            if message.type == Gst.MessageType.ERROR:
                sys.exit(message.parse_error()[0].message)
            self.warnings.append(message.parse_warning()[0].message)
        if sample is None:
            sys.exit("no frame came")
        return sample.get_buffer()

    def told(self):
        """Takes frames until a warning tells of the disk; the last frame."""
        for _ in range(2000):
            frame = self.frame()
            if any("No space left" in text for text in self.warnings):
                return frame
        sys.exit(f"no warning: {self.warnings}")

    def stop(self):
        self.pipeline.set_state(Gst.State.NULL)


def verdict(buffer):
    return buffer.get_custom_meta("GstClDefectMeta").get_structure()["verdict"]


with tempfile.TemporaryDirectory() as folder:
    subprocess.run(["mount", "-t", "tmpfs", "-o", TMPFS, "none", folder], check=True)

    line = Line(f"clreference train-frames=2 threshold=20 output=frame location={folder}/label.npz")
    assert verdict(line.frame()) == "none"
    line.told()
    assert verdict(line.frame()) == "pass", "the model is not in force"
    line.stop()
    assert os.listdir(folder) == [], os.listdir(folder)

    line = Line(f"clflatfield name=flat average-frames=2 location={folder}/light.npz")
    before = line.frame()
    line.pipeline.get_by_name("flat").emit("take-white")
    line.told()
    after = line.frame()
    same = before.extract_dup(0, before.get_size()) == after.extract_dup(0, after.get_size())
    assert same, "a reference that was not saved is in force"
    line.stop()
    assert os.listdir(folder) == [], os.listdir(folder)

    subprocess.run(["umount", folder], check=True)
print("both go on")
