"""examples/inspection.st as a PLC: usage: plc_program.py PROGRAM PORT. Run by outside.rs, which starts the station again
after the line `restart`. Recipe 1 finds defects in each frame, recipe 2 finds none, and there is no recipe 9."""

import sys
import time

from pymodbus.client import ModbusTcpClient
from structured_text import Block

block = Block(open(sys.argv[1]).read())
port = int(sys.argv[2])
plc = None
inputs = [0] * 29
TURN = 0.01


def exchange():
    """Writes the outputs and reads the inputs, as a PLC does in each cycle. Returns whether both were answered."""
    global plc, inputs
    try:
        if plc is None:
            plc = ModbusTcpClient("127.0.0.1", port=port, timeout=1)
            if not plc.connect():
                raise ConnectionError
        answers = [plc.write_registers(0, block.Outputs), plc.read_input_registers(0, count=29)]
        if any(answer.isError() for answer in answers):
            raise ConnectionError
        inputs = answers[1].registers
        return True
    except Exception:
        if plc is not None:
            plc.close()
        plc = None
        return False


def turn(piece=False, part=0, recipe=0):
    link = exchange()
    block(Inputs=inputs, LinkOk=link, Enable=True, Piece=piece, Part=part, Recipe=recipe)
    time.sleep(TURN)


def until(what, holds, seconds=30, **values):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, (what, block.State, block.Code, inputs)
        turn(**values)


def piece(part, recipe):
    """Lets a piece come when the station is ready; returns whether it is good."""
    until("ready", lambda: block.Ready, part=part, recipe=recipe)
    turn(piece=True, part=part, recipe=recipe)
    until("done", lambda: block.Done, piece=True, part=part, recipe=recipe)
    good = block.Good
    turn(part=part, recipe=recipe)
    assert not block.Good and not block.Done
    return good


# The station's own recipe passes every frame.
for part in range(1, 6):
    assert piece(part, 0), inputs
until("recipe 1", lambda: inputs[8] == 1 and block.Ready, recipe=1)
for part in range(6, 11):
    assert not piece(part, 1), inputs
    assert inputs[9] == 0
until("recipe 2", lambda: inputs[8] == 2 and block.Ready, recipe=2)
assert all(piece(part, 2) for part in range(11, 16))

# A recipe that is not there: the one before stays, and it is asked for once.
until("refused", lambda: block.Refused == 9, recipe=9)
until("ready", lambda: block.Ready, recipe=9)
assert inputs[8] == 2 and piece(16, 9) and block.Refused == 9

# The PLC stops for a while: the station says so, and the program begins anew by itself.
time.sleep(1.2)
seen = []
until("lost", lambda: seen.append(inputs[9]) or 11 in seen, recipe=2)
assert piece(17, 2) and inputs[9] == 0

# The station starts again while the piece is in front of the camera: this piece is rejected.
epoch = inputs[20:22]
until("ready", lambda: block.Ready, recipe=2)
print("restart", flush=True)
until("alarm", lambda: block.Alarm, recipe=2)
assert not block.Ready
turn(piece=True, recipe=2)
assert not block.Good
until("ready", lambda: block.Ready, recipe=2, seconds=60)
assert inputs[20:22] != epoch
assert all(piece(part, 2) for part in range(18, 23))
print("done", flush=True)
