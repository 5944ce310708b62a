# Triggers the first camera of a station, as a PLC does: python3 plc.py HOST PORT COUNT.
# For tests without a PLC (docs/machine.md, Commission); never beside a PLC that writes the same camera.
import sys
import time

from pymodbus.client import ModbusTcpClient

ENABLE, TRIGGER, RESULT_ACK, CLEAR = 1, 2, 4, 16
READY, TRIGGER_ACK, RESULT_VALID = 2, 8, 16
OUTCOMES = ["no outcome", "pass", "fail", "none", "late", "lost", "fault"]


class Lost(Exception):
    """The station is silent, or has started again."""


class Station:
    def __init__(self, host, port):
        self.plc = ModbusTcpClient(host, port=port)
        self.beat = 0
        self.epoch = None
        if not self.plc.connect():
            raise Lost("no connection")

    def exchange(self, bits):
        """Writes the bits and a heartbeat, and reads the camera."""
        self.beat = (self.beat + 1) % 65536
        try:
            written = self.plc.write_registers(0, [bits, 0, 0, 0, self.beat])
            read = self.plc.read_input_registers(0, count=29)
        except Exception as why:
            raise Lost(why) from why
        if written.isError() or read.isError():
            raise Lost(written if written.isError() else read)
        words = read.registers
        epoch = words[20] << 16 | words[21]
        if self.epoch not in (None, epoch):
            raise Lost("another epoch")
        self.epoch = epoch
        return words

    def wait(self, bits, is_set=0, is_not=0):
        """Writes the bits until the station's bits are as wanted."""
        for _ in range(1000):
            words = self.exchange(bits)
            if words[0] & is_set == is_set and words[0] & is_not == 0:
                return words
            time.sleep(0.01)
        raise Lost(f"register 0 is {words[0]:#06x}, error {words[9]}")

    def trigger(self):
        """Triggers once. Returns number and outcome."""
        self.wait(ENABLE, READY, TRIGGER_ACK | RESULT_VALID)
        words = self.wait(ENABLE | TRIGGER, TRIGGER_ACK)
        number = words[2] << 16 | words[3]
        words = self.wait(ENABLE, RESULT_VALID)
        result, outcome = words[4] << 16 | words[5], words[6]
        self.wait(ENABLE | RESULT_ACK, 0, RESULT_VALID)
        if result != number:
            raise Lost(f"result {result} instead of {number}")
        return number, OUTCOMES[outcome]


host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
station = epoch = None
while count > 0:
    try:
        if station is None:
            station = Station(host, port)
            words = station.exchange(0)
            station.exchange(ENABLE | CLEAR)
            if epoch not in (None, station.epoch):
                print("the station started again: earlier triggers have no result")
            epoch = station.epoch
        number, outcome = station.trigger()
        print(f"frame {number}: {outcome}")
        count -= 1
    except Lost as why:
        print(f"lost ({why}); the piece is rejected")
        station = None
        time.sleep(1)
