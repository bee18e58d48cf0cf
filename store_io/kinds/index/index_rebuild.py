"""Plans the index files of a new store, and links their entries into the chains of their slots.

The plan has the names of the files, and how many entries they hold. The tasks of a rebuild write the entries raw: a raw entry has
the message's store time in place of the time difference and of the entry before it, which depend on the whole file. A `LinkTask`
goes through one file in order and writes entries, slots and header.
Source: IndexFile.putKey, IndexHeader.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from schemas.advice import Refusal, RefusalKind
from schemas.finding_codes import CATALOGUE, Cure
from schemas.layouts import index_layout
from schemas.layouts.entries import STORED_INDEX_DTYPE
from schemas.layouts.rocksdb_layout import TABLES_FOLDER
from schemas.layouts.store_names import INDEX
from schemas.repair import IndexMade
from store_io.base.compiled.native import kept
from store_io.base.java.java_compat import parse_number
from store_io.broker.loading import is_folder
from store_io.broker.releases import BrokerRules
from store_io.log.entries.index_entries import entry_position
from store_io.repair.derived.kept_rows import RAW_DTYPE
from store_io.repair.derived.rebuild_tasks import keys_of
from store_io.repair.kind_repair import KindRepair, Round
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import REBUILD_INDEX
from store_io.repair.repair_work import Work
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import StoreLocation, name_of, open_source

LINK_ENTRIES = 1 << 18
SLOT_BLOCK = 1 << 18


@dataclass(frozen=True)
class IndexPlan:
    """The plan of a new index.

    paths: its new files, in order; none if the release builds no index, or no message has a key.
    reasons: codes of the findings; without any the index stays as it is.
    """

    paths: tuple[str, ...] = ()
    entries: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def made(self) -> IndexMade:
        """Return what the report says of it."""
        return IndexMade(len(self.paths), self.entries, self.reasons)


class IndexRepair(KindRepair):
    """Index files, made anew as a whole."""

    def unblock(self, work: Work, audit: Audited, refusal: Refusal, reason: str) -> bool:
        if not refusal.path.startswith(f"{INDEX}/"):
            return False
        work.remove(refusal.path, reason, audit.tree)
        if refusal.kind == RefusalKind.INDEX_IS_FOLDER:
            for entry in audit.tree.children(INDEX):
                if is_folder(entry) and entry.path != refusal.path and parse_number(name_of(entry.path), 64) is not None:
                    work.unblock(entry.path, replace(refusal, path=entry.path), audit.tree)
        return True

    def rebuild(self, now: Round) -> Callable[[], None] | None:
        plan = prepare_index(now.work, now.audit)
        if plan.reasons:
            now.made.index = plan.made
        now.targets.index_paths = plan.paths
        return partial(link_index, now.work, plan) if plan.paths else None


def prepare_index(work: Work, audit: Audited) -> IndexPlan:
    """Decide whether the index is made anew; then the old files are removed, and the new ones are there, empty."""
    of_files = (f for f in audit.serious if f.file.partition("/")[0] != TABLES_FOLDER)
    blamed = (f for f in of_files if CATALOGUE[f.code].cure is Cure.REBUILD_INDEX or f.file.partition("/")[0] == INDEX)
    reasons = tuple(sorted({f.code for f in blamed}))
    if not reasons:
        return IndexPlan()
    names = audit.tree.children(INDEX)
    plan = IndexPlan(reasons=reasons)
    if work.rules.builds_index:
        total = sum(map(keys_of, audit.segments))
        count = -(-total // (work.rules.index_max - 1))
        existing = [e.path for e in names if e.kind == "file"]
        plan = IndexPlan(tuple(index_names(existing, count, audit.end_time)), total, reasons)
    kept = {"entries": plan.entries, "files": len(plan.paths)}
    work.steps.add(REBUILD_INDEX, INDEX, reason=", ".join(reasons), kept=kept)
    for entry in names:
        work.writer.remove(entry.path)
    for path in plan.paths:
        work.writer.create(path, work.rules.index_file_bytes)
    return plan


def index_names(existing: Sequence[str], count: int, last_time: int) -> list[str]:
    """Return names for that many index files: ascending, below every name that a broker makes later in any time zone.

    Existing ones are used again; without any they are 14 hours before the last message's time.
    """
    known = sorted(n for n in (name_of(p) for p in existing) if len(n) == 17 and n.isdigit() and n < "3")
    names = known[:count]
    while len(names) < count:
        if names:
            moment = _milliseconds(names[-1]) + 1
        else:
            moment = max(0, last_time - 14 * 3_600_000)
        names.append(_stamp(moment))
    return [f"{INDEX}/{name}" for name in names]


def _stamp(milliseconds: int) -> str:
    text = str(np.datetime64(milliseconds, "ms"))
    return "".join(c for c in text if c.isdigit())[:17]


def _milliseconds(name: str) -> int:
    text = f"{name[:4]}-{name[4:6]}-{name[6:8]}T{name[8:10]}:{name[10:12]}:{name[12:14]}.{name[14:]}"
    try:
        return int(np.datetime64(text, "ms").astype(np.int64))
    except ValueError:
        return 0


def link_index(work: Work, plan: IndexPlan) -> None:
    """Make the chains of the files, whose entries are raw. Raises StoreError."""
    capacity, source = work.rules.index_max - 1, open_source(StoreLocation(work.writer.root))
    tasks, before = [], 0
    for number, path in enumerate(plan.paths):
        count = min(capacity, plan.entries - number * capacity)
        tasks.append(LinkTask(work.writer, work.rules, path, count, before))
        with source.open(path) as file:
            last = file.read(entry_position(work.rules.index_slots, count), index_layout.ENTRY_BYTES)
        before = int(np.frombuffer(last, RAW_DTYPE)["store_time"][0])
    work.run(tasks, "index")


@dataclass(frozen=True)
class LinkTask:
    """One new index file with `count` raw entries. previous_end_time: of the file before, 0 for the first."""

    writer: StoreWriter
    rules: BrokerRules
    path: str
    count: int
    previous_end_time: int

    store: int = 0
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return index_layout.ENTRY_BYTES * self.count

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def run(self) -> None:
        """Make the chains. Raises StoreError."""
        slots = np.zeros(self.rules.index_slots, np.int32)
        used = begin = 0
        with open_source(StoreLocation(self.writer.root)).open(self.path) as file, self.writer.open(self.path) as out:
            for at in range(0, self.count, LINK_ENTRIES):
                many = min(LINK_ENTRIES, self.count - at)
                position = entry_position(self.rules.index_slots, at + 1)
                raw = np.frombuffer(file.read(position, many * index_layout.ENTRY_BYTES), RAW_DTYPE)
                hashes, times = raw["key_hash"].astype(np.int32), raw["store_time"].astype(np.int64)
                if at == 0:
                    first, begin = raw[0], int(times[0])
                seconds, previous = np.empty(many, np.int32), np.empty(many, np.int32)
                used += _link(hashes, times, slots, at + 1, self.previous_end_time, begin, seconds, previous)
                linked = np.empty(many, STORED_INDEX_DTYPE)
                linked["key_hash"], linked["phy_offset"] = hashes, raw["phy_offset"]
                linked["time_difference"], linked["previous"] = seconds, previous
                out.write(position, linked.view(np.uint8))
            for at in range(0, len(slots), SLOT_BLOCK):
                block = slots[at : at + SLOT_BLOCK]
                if block.any():
                    out.write(index_layout.HEADER_BYTES + index_layout.SLOT_BYTES * at, block.astype(">i4").view(np.uint8))
            last = raw[-1]
            header = struct.pack(
                index_layout.HEADER_FORMAT, int(first["store_time"]), int(last["store_time"]), int(first["phy_offset"]),
                int(last["phy_offset"]), used, self.count + 1,
            )  # fmt: skip
            out.write(0, header)


@kept()
def _link(hashes, times, slots, number, first_begin, begin, seconds, previous):  # type: ignore[no-untyped-def]
    """Chain entries from `number` on; how many slots came into use. first_begin: what entry 1's time counts from."""
    used = 0
    for i in range(len(hashes)):
        slot = hashes[i] % len(slots)
        before = slots[slot]
        if before == 0:
            used += 1
        previous[i] = before
        slots[slot] = number + i
        origin = first_begin if number + i == 1 else begin
        difference = times[i] - origin
        count = difference // 1000 if difference >= 0 else 0
        if origin <= 0:
            count = 0
        seconds[i] = min(count, 2147483647)
    return used
