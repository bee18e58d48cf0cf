"""One queue in the broker's memory, over entries that a test names, and runs to put into it."""

from __future__ import annotations

import numpy as np

from schemas.layouts.entries import ENTRY_DTYPE
from schemas.rows import RUN_DTYPE, MappedFile
from store_io.broker.queues.queue_state import QueueState
from store_io.broker.releases import Setting, broker_rules

FILE_ENTRIES = 5
FILE_BYTES = FILE_ENTRIES * 20


class Disk:
    """Queue files as lists of (phy_offset, size)."""

    def __init__(self, files: dict[str, list[tuple[int, int]]]):
        self.files = files

    def __call__(self, path: str, first: int, count: int) -> np.ndarray:
        rows = np.zeros(FILE_ENTRIES, ENTRY_DTYPE)
        for i, (phy, size) in enumerate(self.files[path]):
            rows[i]["phy_offset"], rows[i]["size"] = phy, size
        return rows[first : first + count]


def queue(release: str = "5.3.3", *files: list[tuple[int, int]], wrote: int = 0, max_phy: int = -1) -> QueueState:
    """A queue whose files hold these entries, after recover() found `wrote` entries in all."""
    rules = broker_rules(release, {"mappedFileSizeConsumeQueue": Setting(FILE_BYTES, "broker.conf")})
    names = {f"q/{i * FILE_BYTES:020d}": entries for i, entries in enumerate(files)}
    state = QueueState(("T", 0), False, "q", rules, Disk(names))
    state.set_recovered([MappedFile(name, i * FILE_BYTES, FILE_BYTES) for i, name in enumerate(names)], wrote * 20, max_phy)
    return state


def run(queue_offset: int, records: int, first_phy: int, size: int = 10) -> np.void:
    row = np.zeros(1, RUN_DTYPE)[0]
    row["queue_offset"], row["records"], row["messages"] = queue_offset, records, records
    row["first_phy_offset"], row["last_phy_offset"] = first_phy, first_phy + (records - 1) * 100
    row["first_size"] = row["last_size"] = size
    return row
