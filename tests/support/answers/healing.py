"""Damaged stores, and what the search for a single change makes of them, without a whole audit for each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from schemas.rows import SegmentSummary
from store_io.audit.audit_store import run_audit
from store_io.audit.healing.changes import DEFAULT_RISK, Healing
from store_io.audit.healing.heal_task import HealTask, all_places, queue_paths, search, search_of
from store_io.audit.healing.judgement import judged
from store_io.audit.healing.witnesses import LogOrder
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_file import BasicFile, ByteFile
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from tests.support.stores import builders
from tests.support.stores.builders import Message, Sizes, StoreBuilder

SIZES = Sizes(segment=16384)
CONTIGUOUS = ("run", "zeros", "moved")  # kinds of `random_damage` in one piece; the others are scattered over a record


def healings(root: Path, release: str, conf: str | None, risk: float = DEFAULT_RISK) -> list[Healing]:
    """What is decided of each damaged record of a store, by a whole audit of it."""
    audit = run_audit(AuditRequest(root.name, StoreLocation(str(root)), release, conf))
    audit.outcome()
    wanted = search_of(audit.copy, StoreLocation(str(root)), audit.rules, audit.segments)
    return [judged(task, each, wanted.order, risk) for task in wanted.tasks for each in search(task, audit.source)]


def varied_store(folder: Path, seed: int, count: int = 120, property_crc: bool = False) -> builders.Store:
    """Messages of several queues, lengths and forms, as producers send them."""
    at = random.Random(seed)
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(count):
        body = at.randbytes(at.choice((0, 1, 20, 100, 300, 700)) if at.random() < 0.6 else at.randrange(2, 500))
        host = at.randbytes(4) + b"\0\0\xc3\x50" if at.random() < 0.8 else at.randbytes(16) + b"\0\0\xc3\x50"
        builder.put(
            Message(
                at.choice(("TopicA", "Orders", "T")), at.randrange(2), body,
                tags=at.choice((None, "a", "red")), keys=at.choice((None, f"k{number}")),
                uniq=f"{at.getrandbits(128):032X}", born_time=1_700_000_000_000 + number, born_host=host,
                properties=(("CLUSTER", "DefaultCluster"),) if at.random() < 0.5 else (), property_crc=property_crc,
            )
        )  # fmt: skip
    return builder.write(folder / "store")


@dataclass
class Damaged:
    """A sound store of which one segment at a time is damaged, searched, and made sound again."""

    store: builders.Store
    risk: float = DEFAULT_RISK
    tasks: list[SegmentTask] = field(default_factory=list)
    summaries: list[SegmentSummary] = field(default_factory=list)

    def __post_init__(self) -> None:
        root = self.store.root
        self.location = StoreLocation(str(root))
        audit = run_audit(AuditRequest("store", self.location, "5.3.3", self.store.broker_conf))
        assert not [f for f in audit.outcome().found.findings if f.severity != "note"]
        self.rules, self.queues = audit.rules, queue_paths(audit.copy)
        self.tasks = [
            SegmentTask(0, s.path, s.base_offset, s.size, self.location, audit.rules, probe=False, digest=False, unclean=True)
            for s in audit.segments
        ]
        self.summaries = [scan_segment(task) for task in self.tasks]
        self.bytes = [(root / task.path).read_bytes() for task in self.tasks]
        self.source = open_source(self.location)

    def records(self, number: int) -> list[builders.Record]:
        return list(builders.walk(self.bytes[number], self.tasks[number].base_offset))

    def search(self, number: int, data: bytes) -> list[Healing]:
        """What is decided of that segment's records when these are its bytes."""
        task = self.tasks[number]
        source = _Patched(self.source, task.path, data)
        summary = scan_segment(task, source)
        summaries = [*self.summaries[:number], summary, *self.summaries[number + 1 :]]
        order = LogOrder(summaries)
        places, _ = all_places(summaries, order)
        of_file = tuple(places.get(task.path, ()))
        if not of_file:
            return []
        heal = HealTask(0, task.path, task.base_offset, self.location, self.rules, of_file, self.queues)
        return [judged(heal, each, order, self.risk) for each in search(heal, source)]


class _Bytes(BasicFile):
    def __init__(self, path: str, data: bytes):
        self.path, self.size, self._data = path, len(data), data

    def _fill(self, position: int, view: memoryview) -> int:
        view[:] = self._data[position : position + len(view)]
        return len(view)


class _Patched(ByteSource):
    """A store in which one file has other bytes."""

    def __init__(self, source: ByteSource, path: str, data: bytes):
        super().__init__(source.location, source._root, source._parts)
        self._path, self._data = path, data

    def open(self, path: str, sparsely: bool = False) -> ByteFile:
        return _Bytes(path, self._data) if path == self._path else super().open(path, sparsely)


def healed(data: bytes, healings: Sequence[Healing]) -> bytes:
    """The segment's bytes with the changes that are made."""
    made = bytearray(data)
    for healing in healings:
        if healing.heals and healing.change is not None:
            at, new = healing.change.position, healing.change.new
            made[at : at + len(new)] = new
    return bytes(made)


def random_damage(at: random.Random, data: bytes, start: int, end: int) -> tuple[str, bytes]:
    """(its kind, the bytes with it): more than one byte of [start, end) and perhaps of what follows is wrong."""
    kind = at.choice(("run", "bytes", "bits", "zeros", "moved"))
    made = bytearray(data)
    if kind == "run":
        low = at.randrange(start, end)
        size = at.randrange(2, 65)
        made[low : low + size] = at.randbytes(min(size, len(made) - low))
    elif kind == "bytes":
        for place in at.sample(range(start, end), at.randrange(2, 9)):
            made[place] ^= at.randrange(1, 256)
    elif kind == "bits":
        for _ in range(at.randrange(2, 17)):
            made[at.randrange(start, end)] ^= 1 << at.randrange(8)
    elif kind == "zeros":
        low = at.randrange(start, end)
        size = min(at.randrange(2, 513), len(made) - low)
        made[low : low + size] = bytes(size)
    else:
        low, size = at.randrange(start, end), at.choice((16, 64, 512))
        other = at.randrange(0, len(made) - size)
        size = min(size, len(made) - low)
        made[low : low + size] = data[other : other + size]
    return kind, bytes(made)
