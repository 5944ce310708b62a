"""How figures are read and written."""


def amount(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            value = ns / size
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
    return f"{ns:.0f} ns"


def rate(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def time_of(cell):
    return cell.get("device_ns", cell.get("wall_ns"))


def megabytes(count, ns):
    """MB/s, or a dash for a step without a duration."""
    return f"{count * 1e3 / ns:.0f}" if ns else "-"


def frame_rate(count, step):
    """MB/s of a frame of `count` bytes; a dash for a step that moves only a small result."""
    return megabytes(count, step["ns"]) if step["moved"] * 100 >= count else "-"


def steps_of(cell):
    """The steps of a run, if the contestant reports them."""
    about = cell.get("about")
    return about.get("steps", []) if isinstance(about, dict) else []
