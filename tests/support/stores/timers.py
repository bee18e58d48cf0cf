"""A store with timer messages, and the timer files that a broker has with it, byte by byte.

What a unit, a slot and the checkpoint hold is written down here once more; nothing of the product is imported.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.stores import builders
from tests.support.stores.builders import Message, Record, Sizes, Store, StoreBuilder

UNIT_BYTES, SLOT_BYTES = 52, 32
SLOTS = 7 * 86_400 * 2
LOG_BYTES = 5200 + 16
ROLL, DELETE = 2, 4
TOPIC = "rmq_sys_wheel_timer"
BEGIN = 1_700_000_000_000


@dataclass
class Timers:
    """What the timer of a broker holds. units: as bytes, in order; slots: time (s) -> [first, last, number]."""

    file_bytes: int = LOG_BYTES
    log: bytearray = field(default_factory=bytearray)
    slots: dict[int, list[int]] = field(default_factory=dict)
    read_time: int = BEGIN
    queue_offset: int = 0
    flushed: int | None = None  # None: all of the log

    def enqueue(self, record: Record, time: int, write_time: int, magic: int = 1, topic: str = "orders") -> int:
        """A unit for this message: its position in the timer log."""
        room = self.file_bytes - len(self.log) % self.file_bytes
        if room < UNIT_BYTES + 16:
            self.log += struct.pack(">iqI", room, 0, 0xCBD43194).ljust(room, b"\0")
        at, slot = len(self.log), self.slots.setdefault(time // 1000, [-1, -1, 0])
        self.log += struct.pack(
            ">iqiqiqiiq", UNIT_BYTES, slot[1], magic, write_time, time - write_time, record.at, record.size,
            builders.java_hash(topic), 0,
        )  # fmt: skip
        slot[0] = at if slot[0] < 0 else slot[0]
        slot[1], slot[2] = at, slot[2] + (-1 if magic & DELETE else 1)
        return at

    def write(self, root: Path) -> None:
        """The files of the timer store."""
        (root / "timerlog").mkdir(parents=True)
        for start in range(0, len(self.log) or 1, self.file_bytes):
            data = bytes(self.log[start : start + self.file_bytes])
            builders.write_sparse(root / "timerlog" / f"{start:020d}", data, self.file_bytes)
        with open(root / "timerwheel", "wb") as wheel:
            wheel.truncate(SLOTS * SLOT_BYTES)
            for time, (first, last, number) in self.slots.items():
                wheel.seek(time % SLOTS * SLOT_BYTES)
                wheel.write(struct.pack(">qqqii", time, first, last, number, 0))
        (root / "config").mkdir(exist_ok=True)
        flushed = len(self.log) if self.flushed is None else self.flushed
        fields = struct.pack(">7q", self.read_time, flushed, self.queue_offset, self.queue_offset, 0, BEGIN, 1)
        (root / "config" / "timercheck").write_bytes(fields.ljust(4096, b"\0"))


@dataclass
class TimerStore:
    """due: delivered ones with their copies; waiting: the others."""

    store: Store
    timers: Timers
    due: list[Record]
    copies: list[Record]
    waiting: list[Record]

    @property
    def root(self) -> Path:
        return self.store.root

    @property
    def conf(self) -> str:
        return f"{self.store.broker_conf}mappedFileSizeTimerLog={self.timers.file_bytes}\n"


def message(number: int, out_time: int, more: tuple[tuple[str, str], ...] = (), uniq: bool = True) -> Message:
    """A timer message as the broker stores it."""
    properties = (("TIMER_OUT_MS", str(out_time)), ("REAL_TOPIC", "orders"), ("REAL_QID", "0"), *more)
    return Message(
        TOPIC, body=f"timer {number}".encode(), uniq=f"U{number:031d}" if uniq else None, properties=properties,
        born_time=BEGIN - 5,
    )  # fmt: skip


def delivered(number: int, out_time: int, uniq: bool = True) -> Message:
    """Its copy in the real topic."""
    properties = (("TIMER_OUT_MS", str(out_time)), ("TIMER_DEQUEUE_MS", str(out_time + 40)))
    return Message(
        "orders", body=f"timer {number}".encode(), uniq=f"U{number:031d}" if uniq else None, properties=properties,
        born_time=BEGIN - 5,
    )  # fmt: skip


def timer_store(
    root: Path, release: str = "5.3.3", *, due: int = 6, waiting: int = 4, clean: bool = True, uniq: bool = True,
    sizes: Sizes | None = None,
) -> TimerStore:  # fmt: skip
    """A broker's store: some timer messages were delivered, some wait, and other messages lie between."""
    builder, timers = StoreBuilder(release, sizes or Sizes()), Timers()
    first, later = BEGIN // 1000 * 1000 + 2000, BEGIN // 1000 * 1000 + 3_600_000
    times = [first + 1000 * (i // 3) for i in range(due)] + [later + 1000 * (i // 2) for i in range(waiting)]
    taken: list[Record] = []
    for number, time in enumerate(times):
        taken.append(builder.put(message(number, time, uniq=uniq)))
        timers.enqueue(taken[-1], time, BEGIN)
        builder.put(Message("other", body=b"x" * 30))
    builder.clock = first + 10_000
    copies = [builder.put(delivered(number, times[number], uniq=uniq)) for number in range(due)]
    builder.put(Message("other", body=b"y" * 30))
    timers.queue_offset, timers.read_time = len(taken), first + 60_000
    store = builder.write(root, clean=clean)
    timers.write(root)
    return TimerStore(store, timers, taken[:due], copies, taken[due:])
