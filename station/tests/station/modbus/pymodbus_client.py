"""A PLC of two cameras, with pymodbus: the first camera has a trigger, the second one has none."""

import sys
import time

from pymodbus.client import ModbusTcpClient

ENABLE, TRIGGER, RESULT_ACK, RECIPE_REQUEST, CLEAR = 1, 2, 4, 8, 16
ONLINE, READY, BUSY, TRIGGER_ACK, RESULT_VALID, PASS = 1, 2, 4, 8, 16, 32
OVERRUN, RECIPE_FAILED = 256, 1024

plc = ModbusTcpClient("127.0.0.1", port=int(sys.argv[1]))
assert plc.connect()


def read(camera):
    answer = plc.read_input_registers(100 * camera, count=29)
    assert not answer.isError(), answer
    return answer.registers


def write(camera, words):
    answer = plc.write_registers(100 * camera, words)
    assert not answer.isError(), answer


def long(words, first):
    return words[first] << 16 | words[first + 1]


def wait(camera, is_set, is_not=0):
    for _ in range(2000):
        words = read(camera)
        if words[0] & is_set == is_set and words[0] & is_not == 0:
            return words
        time.sleep(0.005)
    raise AssertionError(f"{is_set} {is_not} {words}")


# A trigger in the write that enables is refused.
write(0, [ENABLE | TRIGGER])
assert read(0)[9] == 10 and read(0)[11] == 1
write(0, [ENABLE | CLEAR])
assert read(0)[9] == 0 and read(0)[11] == 0

numbers = []
for part in range(1, 11):
    write(0, [ENABLE])
    wait(0, READY, TRIGGER_ACK | RESULT_VALID)
    write(0, [ENABLE | TRIGGER, 0, 0, part, part])
    words = wait(0, TRIGGER_ACK)
    number = long(words, 2)
    words = wait(0, RESULT_VALID)
    assert long(words, 4) == number, words
    assert words[0] & PASS and words[6] == 1, words
    # The same words in holding registers, all at one time.
    mirror = plc.read_holding_registers(1000, count=29).registers
    assert mirror[4:8] == words[4:8]
    write(0, [ENABLE | RESULT_ACK])
    assert read(0)[0] & (RESULT_VALID | TRIGGER_ACK) == 0
    numbers.append(number)
assert numbers == sorted(set(numbers)), numbers
assert plc.read_holding_registers(0, count=5).registers == [ENABLE | RESULT_ACK, 0, 0, 10, 10]

# One register, as some PLCs write; and a recipe where there is none.
assert not plc.write_register(0, ENABLE).isError()
assert not plc.write_register(1, 3).isError()
assert not plc.write_register(0, ENABLE | RECIPE_REQUEST).isError()
words = wait(0, RECIPE_FAILED)
assert words[9] == 13, words

# The second camera overruns, and no result comes twice.
write(1, [ENABLE])
wait(1, OVERRUN | RESULT_VALID)
seen = []
for _ in range(9):
    words = wait(1, RESULT_VALID)
    seen.append(long(words, 4))
    write(1, [ENABLE | RESULT_ACK])
    wait(1, 0, RESULT_VALID)
    write(1, [ENABLE])
assert seen == sorted(set(seen)), seen

# Wrong addresses and functions get exceptions, and the connection stays.
assert plc.read_input_registers(29, count=1).isError()
assert plc.read_input_registers(200, count=29).isError()
assert plc.read_coils(0, count=1).isError()
assert plc.write_register(1000, 1).isError()
assert not plc.read_input_registers(0, count=29).isError()
print("done")
