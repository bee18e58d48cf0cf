"""The timer store of `timers`, as a broker has it with timers in RocksDB: keys and values packed here byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.damage import remove
from tests.support.stores.builders import Record
from tests.support.stores.rocksdb_stores import write_database
from tests.support.stores.timers import BEGIN, Timers, TimerStore, timer_store

CONF = "timerRocksDBEnable=true\n"


def timer_key(time: int, unique: str) -> bytes:
    return struct.pack(">q", time) + unique.encode()


def timer_value(size: int, phy_offset: int) -> bytes:
    return struct.pack(">iq", size, phy_offset)


@dataclass
class KeyedTimers:
    """`write` makes it, after its parts were changed at will. entries: (time, unique key) -> (size, physical offset).

    more: keys and values as they are.  offset, read_time: the two checkpoints; None: not stored.
    """

    timers: TimerStore
    entries: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    more: dict[bytes, bytes] = field(default_factory=dict)
    offset: int | None = 0
    read_time: int | None = BEGIN

    @property
    def root(self) -> Path:
        return self.timers.root

    @property
    def conf(self) -> str:
        return self.timers.conf + CONF

    def put(self, record: Record) -> None:
        properties = record.properties
        self.entries[int(properties["TIMER_OUT_MS"]), properties["UNIQ_KEY"]] = record.size, record.at

    def pairs(self) -> Iterable[tuple[bytes, bytes]]:
        for (time, unique), (size, phy_offset) in self.entries.items():
            yield timer_key(time, unique), timer_value(size, phy_offset)
        yield from self.more.items()
        for key, value in ((b"sys_topic_scan_offset_checkpoint", self.offset), (b"timeline_checkpoint", self.read_time)):
            if value is not None:
                yield key, struct.pack(">q", value)

    def write(self) -> KeyedTimers:
        write_database(self.root / "rocksdbstore", {"timer": self.pairs(), "trans": ()})
        return self


def keyed_timers(root: Path, release: str = "5.4.0", clean: bool = True) -> KeyedTimers:
    """The same messages; every one that waits has an entry, and of those that were delivered the last one still has its own."""
    made = timer_store(root, release, clean=clean)
    taken = made.timers.queue_offset
    for name in ("timerlog", "timerwheel", "config/timercheck"):
        remove(root / name)
    Timers(read_time=made.timers.read_time).write(root)
    keyed = KeyedTimers(made, offset=taken, read_time=made.timers.read_time)
    for record in (*made.waiting, made.due[-1]):
        keyed.put(record)
    return keyed
