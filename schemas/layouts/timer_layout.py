"""The timer store's files (5.x). Big-endian.

Source: TimerLog, TimerWheel, Slot, TimerCheckpoint, read at 5.0.0, 5.1.4, 5.3.3 and 5.5.0.
"""

import struct

TIMER_TOPIC = "rmq_sys_wheel_timer"  # its queue 0 holds every timer message
TIMER_WHEEL = "timerwheel"
TIMER_CHECK = "config/timercheck"

SLOT_BYTES = 32
SLOTS = 2 * 7 * 86_400  # one of a precision's length each, whatever the precision
WHEEL_BYTES = SLOTS * SLOT_BYTES
UNIT_BYTES = 52
UNIT_HEAD_FORMAT = ">iqi"  # size, position of the unit before it in the same slot, magic
UNIT_HEAD_BYTES = struct.calcsize(UNIT_HEAD_FORMAT)
UNIT_PHY_OFFSET_POSITION = 28
LARGEST_MAGIC = 15
MAGIC_UNIT, MAGIC_ROLL, MAGIC_DELETE = 1, 2, 4
MAGIC_OVERDUE = 8  # no broker writes or looks at it: a repair's unit of a message that was due before
BLANK_MAGIC = 0xCBD43194 - (1 << 32)
LOG_FILE_BYTES = 100 << 20  # by default
PRECISION_MS = 1000  # by default
ROLL_SLOTS = 2 * 86_400  # by default: a message further away is rolled
BLANK_SLOTS = 60
CHECK_BYTES = 4096  # of config/timercheck; a shorter one is extended with zeros
CHECK_FIELDS_FORMAT = ">4q"  # last read time (ms), timer log flushed up to, timer queue offset, the master's
CHECK_FIELDS_BYTES = struct.calcsize(CHECK_FIELDS_FORMAT)
LARGEST_TIME = 253_402_300_799_999  # ms; the end of the year 9999
