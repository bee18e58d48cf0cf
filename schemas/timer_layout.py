"""The timer store's files (5.x), where their form is checked. Big-endian.

Source: TimerLog, TimerWheel, Slot, TimerCheckpoint, read at 5.0.0 and 5.5.0.
"""

import struct

WHEEL_BYTES = 2 * 7 * 86_400 * 32  # slots of a second each for two times seven days; the same for every precision
UNIT_BYTES = 52
UNIT_HEAD_FORMAT = ">iqi"  # size, position of the unit before it in the same slot, magic
UNIT_HEAD_BYTES = struct.calcsize(UNIT_HEAD_FORMAT)
LARGEST_MAGIC = 15
BLANK_MAGIC = 0xCBD43194 - (1 << 32)
CHECK_BYTES = 4096  # of config/timercheck; a shorter one is extended with zeros
CHECK_FIELDS_FORMAT = ">4q"  # last read time (ms), timer log flushed up to, timer queue offset, the master's
CHECK_FIELDS_BYTES = struct.calcsize(CHECK_FIELDS_FORMAT)
LARGEST_TIME = 253_402_300_799_999  # ms; the end of the year 9999
