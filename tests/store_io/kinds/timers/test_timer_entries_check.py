"""Entries of timers in RocksDB against their messages."""

from __future__ import annotations

import numpy as np

from store_io.kinds.timers.timer_records import TIMER_ROW
from store_io.kinds.timers.timer_table import TIMER_ENTRY
from store_io.kinds.timers.timer_units_check import WrongUnit, entry_faults
from store_io.model import log_map as lm
from store_io.model.log_map import LogMap

LOG = LogMap(np.array([0]), np.array([lm.MESSAGE]), 0, 1000, 900, 1000)


def test_an_entry_that_is_wrong_in_all_ways_is_one() -> None:
    rows, entries = np.zeros(2, TIMER_ROW), np.zeros(3, TIMER_ENTRY)
    rows["phy_offset"], rows["out_time"], rows["size"], rows["unique"] = (100, 200), (50, 60), (7, 8), (1, 2)
    entries["phy_offset"], entries["time"] = (100, 200, 300), (51, 60, 70)
    entries["size"], entries["unique"] = 9, (3, 2, 1)
    found = entry_faults(entries, rows, LOG, None)
    assert found.wrong_count == 3 and found.wrong == [
        WrongUnit(51, 100, "size 7, time 50, its message's unique key", "size 9, time 51, another one"),
        WrongUnit(60, 200, "size 8", "size 9"),
        WrongUnit(70, 300, "a timer message at physical offset 300", "none there"),
    ]
