"""The index files in the broker's memory, folded over index runs (recovery.md 8, formats.md 6).

What the plan needs of an index file is its header; entries are materialised elsewhere from the same decisions (`pieces`).
Source: IndexService.load, buildIndex, retryGetAndCreateIndexFile, IndexFile.putKey.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from store_io.broker.releases import BrokerRules


@dataclass(frozen=True)
class IndexHeader:
    """The 40 bytes of an index file as stored; zeros after the end of a shorter file. Times in ms."""

    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_phy_offset: int = 0
    end_phy_offset: int = 0
    hash_slot_count: int = 0
    index_count: int = 0


@dataclass
class IndexPiece:
    """Keys first..last (1-based, of index run `run` of scan `scan`) that were put in one file.

    first_phy, last_phy: physical offsets of the messages of these two keys.
    """

    scan: object
    run: int
    first: int
    last: int
    first_phy: int
    last_phy: int


@dataclass
class IndexFileState:
    """One index file: header values as in the file, and `count` as the broker has it in memory."""

    path: str | None  # None: created now
    most: int
    begin_time: int = 0
    end_time: int = 0
    begin_phy: int = 0
    end_phy: int = 0
    stored_count: int = 0
    start_begin_time: int = 0  # begin_time before the first entry of a new file: what that entry's time difference refers to
    pieces: list[IndexPiece] = field(default_factory=list)

    @property
    def count(self) -> int:
        return max(self.stored_count, 1)

    @property
    def full(self) -> bool:
        return self.count >= self.most


class NeedMarks(Exception):
    """An index file becomes full inside a run: the messages around these keys must be known. `marks`: key numbers."""

    def __init__(self, marks: tuple[int, ...]):
        super().__init__(str(marks))
        self.marks = marks


class IndexState:
    """All index files in order."""

    def __init__(self, rules: BrokerRules):
        self.rules = rules
        self.files: list[IndexFileState] = []

    def current(self) -> IndexFileState:
        """Return the newest file; a new one if there is none or it is full (IndexService.retryGetAndCreateIndexFile)."""
        last = self.files[-1] if self.files else None
        if last is not None and not last.full:
            return last
        made = IndexFileState(None, self.rules.index_max)
        if last is not None and last.end_phy > 0:
            made.begin_phy = made.end_phy = last.end_phy
        if last is not None and last.end_time > 0:
            made.begin_time = made.end_time = last.end_time
        made.start_begin_time = made.begin_time
        self.files.append(made)
        return made

    def threshold(self) -> int:
        """Return records below this stored phy_offset are skipped. Creates the file that buildIndex would create first."""
        return self.current().end_phy

    def put_run(self, scan: object, number: int, run: np.void, marks: dict[tuple[int, int], tuple[int, int]]) -> None:
        """Put all keys of a run that lies at or above `threshold()`. Raises NeedMarks if a file fills up inside it."""
        keys = int(run["keys"])
        if keys == 0:
            return
        needed: list[int] = []
        done = at = 0
        file = self.current()
        room = file.most - file.count
        while at + room < keys:
            at += room
            needed += [at, at + 1] if at else [at + 1]
            room = file.most - 1
            if room <= 0:
                return  # maxIndexNum of 1: nothing ever fits
        if any((number, k) not in marks for k in needed):
            raise NeedMarks(tuple(needed))

        def message_of(key: int) -> tuple[int, int]:
            """Return (physical offset, store time)"""
            if key in (1, keys):
                end = "first" if key == 1 else "last"
                return int(run[f"{end}_key_phy_offset"]), int(run[f"{end}_key_store_time"])
            return marks[number, key]

        while done < keys:
            file = self.current()
            fits = min(file.most - file.count, keys - done)
            first_key, last_key = done + 1, done + fits
            first_phy, first_time = message_of(first_key)
            if file.count <= 1:
                file.begin_phy, file.begin_time = first_phy, first_time
            file.stored_count = file.count + fits
            file.end_phy, file.end_time = message_of(last_key)
            file.pieces.append(IndexPiece(scan, number, first_key, last_key, first_phy, file.end_phy))
            done = last_key
        if file.full and int(run["last_phy_offset"]) > file.end_phy:
            self.current()  # a later record of the run, without keys, makes the next file
