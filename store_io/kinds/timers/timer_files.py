"""Finds the files of a copy's timer store and reads config/timercheck (timer.md 2).

It says whether the release takes these files. config/timercheck says how far the timer store had come; the broker maps 4096 bytes
of it, so a shorter file reads as zeros.
Source: TimerMessageStore (constructor, load), TimerWheel (constructor), TimerLog.load, TimerCheckpoint (constructor),
BrokerController.initializeMessageStore.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from schemas.advice import Cause, Gap, Refusal, RefusalKind
from schemas.layouts import rocksdb_layout
from schemas.layouts import timer_layout as layout
from schemas.layouts.store_names import QUEUES, TIMER_LOG
from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.broker.loading import Tree, load_file_queue
from store_io.broker.releases import BrokerRules
from store_io.kinds.timers.timer_table import TimerEntries, TimerTable, read_timer_table, timer_entries
from store_io.rocksdb.database import DatabaseDamaged, find_database
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing

_SNAPSHOT = re.compile(re.escape(layout.TIMER_WHEEL) + r"\.([0-9]{1,19})")


@dataclass(frozen=True)
class TimerCheck:
    """The fields as the broker reads them; zeros if the file is missing or short.

    size: -1 without a file.
    """

    size: int = -1
    read_time: int = 0  # ms; slots before it were delivered
    flush_position: int = 0  # of the timer log
    queue_offset: int = 0  # of the timer topic's queue 0: messages before it were taken out
    master_offset: int = 0  # the master's; on a master the same

    @property
    def empty(self) -> bool:
        """Say whether it says nothing, so that a start takes everything from the beginning."""
        return not (self.read_time or self.flush_position or self.queue_offset)

    @property
    def odd(self) -> bool:
        """Say whether it holds what no broker writes."""
        offsets = (self.flush_position, self.queue_offset, self.master_offset)
        return not 0 <= self.read_time <= layout.LARGEST_TIME or any(not -1 <= offset < 1 << 62 for offset in offsets)


def read_timer_check(source: ByteSource, listing: StoreListing) -> TimerCheck:
    """Read the timer's checkpoint. Raises StoreError if the file cannot be read."""
    entry = listing.get(layout.TIMER_CHECK)
    if entry is None or entry.kind != "file":
        return TimerCheck()
    with source.open(layout.TIMER_CHECK) as file:
        data = file.read(0, layout.CHECK_FIELDS_BYTES)
        size = file.size
    return TimerCheck(size, *struct.unpack(layout.CHECK_FIELDS_FORMAT, data.ljust(layout.CHECK_FIELDS_BYTES, b"\0")))


@dataclass(frozen=True)
class TimerParts:
    """The files of the timer store.

    files: those of the timer log, as they are mapped.
    wheel: the path of the wheel that is loaded, empty for none.
    refusal: why a broker ends before its store is loaded; late_refusal: after that.
    table: that of timers in RocksDB; None if the release keeps none there.
    """

    files: tuple[MappedFile, ...] = ()
    wheel: str = ""
    wheel_bytes: int = 0
    check: TimerCheck = field(default_factory=TimerCheck)
    flush_position: int = 0
    refusal: Refusal | None = None
    late_refusal: Refusal | None = None
    problem: Gap | None = None
    table: TimerTable | None = None

    @property
    def judged(self) -> bool:
        """Say whether these files can be read and held against each other."""
        return not (self.refusal or self.late_refusal or self.problem)


def timer_parts(source: ByteSource, listing: StoreListing, tree: Tree, rules: BrokerRules) -> TimerParts | None:
    """Return the timer store's files; None if the release knows no timers, or there is no such file.

    Raises nothing over bytes.
    """
    if not rules.knows_timers:
        return None
    files, _, refusal = load_file_queue(tree, TIMER_LOG, rules.timer_file_bytes, rules)
    wheel = listing.get(layout.TIMER_WHEEL)
    queue = f"{QUEUES}/{layout.TIMER_TOPIC}"
    if not files and not refusal and wheel is None and listing.get(layout.TIMER_CHECK) is None and not tree.exists(queue):
        return None
    table = read_timer_table(source, source.list_tree(rocksdb_layout.TABLES_FOLDER)) if rules.timers_in_rocksdb else None
    path, size, flushed = _wheel(listing, rules)
    try:
        check = read_timer_check(source, listing)
    except StoreError as why:
        return TimerParts(tuple(files), path, size, problem=why.gap(), table=table)
    closed = _not_opened(listing, rules)
    if closed:
        gap = Gap(Cause.TIMER_FILE_NOT_OPENED, closed)
        return TimerParts(tuple(files), path, size, check, problem=gap, table=table)
    if table is not None and table.unread:
        return TimerParts(tuple(files), path, size, check, problem=table.unread, table=table)
    wrong = None
    if wheel is not None and wheel.kind == "directory":
        wrong = Refusal(RefusalKind.TIMER_WHEEL_IS_FOLDER, layout.TIMER_WHEEL)
    elif size not in (0, layout.WHEEL_BYTES):
        wrong = Refusal(RefusalKind.TIMER_WHEEL_LENGTH, path, layout.WHEEL_BYTES, size)
    flush_position = max(flushed, 0) if flushed >= 0 else check.flush_position
    return TimerParts(tuple(files), path if size else "", size, check, flush_position, wrong, refusal, table=table)


def unused_entries(source: ByteSource, listing: StoreListing, rules: BrokerRules) -> int:
    """Return how many timers lie in RocksDB although these settings keep timers in files; 0 if that cannot be read."""
    if rules.timers_in_rocksdb or listing.get(rocksdb_layout.TABLES_FOLDER) is None:
        return 0
    database = find_database(source.list_tree(rocksdb_layout.TABLES_FOLDER), rocksdb_layout.TABLES_FOLDER)
    try:
        return sum(len(rows) for rows in timer_entries(source, database, TimerEntries()))
    except DatabaseDamaged:
        return 0


def _not_opened(listing: StoreListing, rules: BrokerRules) -> str:
    """Return a file that a start reads and nothing here opens, or "". A link out of the copy is one."""
    for entry in listing.files:
        read = entry.path in (layout.TIMER_CHECK, layout.TIMER_WHEEL) or rules.timer_snapshots and _SNAPSHOT.fullmatch(entry.path)
        refused = entry.path == layout.TIMER_WHEEL and entry.kind == "directory"  # a broker ends over it
        if read and entry.kind != "file" and not refused:
            return entry.path
    return ""


def _wheel(listing: StoreListing, rules: BrokerRules) -> tuple[str, int, int]:
    """Return (path, size, flush position in its name) of the wheel that is loaded; ("", 0, -1) without one."""
    found = ("", 0, -1)
    for entry in listing.files:
        if entry.kind != "file":
            continue
        if entry.path == layout.TIMER_WHEEL and found[2] < 0:
            found = entry.path, entry.size, -1
        match = _SNAPSHOT.fullmatch(entry.path)
        if match and rules.timer_snapshots and int(match[1]) > found[2]:
            found = entry.path, entry.size, int(match[1])
    return found
