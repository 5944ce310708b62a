"""How rows in Python tell their results: PASS or FAIL with figures through `verdict`, and `finish` at the end."""

import os
import sys

_failed = False


def verdict(good, text):
    """Prints PASS or FAIL with a text that contains the figures."""
    global _failed
    _failed |= not good
    print("PASS" if good else "FAIL", text, flush=True)


def finish():
    """Ends the row without the interpreter's clean-up, which is not under test."""
    sys.stdout.flush()
    os._exit(1 if _failed else 0)


def give_up(text):
    """Prints FAIL and ends the row."""
    verdict(False, text)
    finish()
