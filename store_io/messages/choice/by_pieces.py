"""Chooses the tasks that read some segments: each segment whole, or in pieces if cores would wait for the longest task.

A piece has the messages of a range of physical offsets. Its task walks the segment from its start with all checks, and makes rows
of its own messages alone. So the pieces give the rows of the whole segment whatever its bytes are: tasks know nothing of one
another, and only that walk proves how records continue after damage, or whether a record lies in another record's body. The walk
takes a fraction of the time that rows take, so later pieces of a segment are shorter than earlier ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.base.failed_reads import can_do_without
from store_io.messages.lost.segment_loss import SegmentLoss
from store_io.messages.message_filter import ALL, MessageFilter, Range
from store_io.messages.scans import MessageScan
from store_io.source.byte_source import StoreLocation, open_source

LEAST_BYTES = 64 << 20  # of a piece
ENOUGH = 4  # segments a core: they keep all cores at work to the end
TASK_BYTES = 8 << 20  # that are read in the time that a task takes to start
WORTH_IT = 0.95  # of the time without more pieces


@dataclass(frozen=True)
class ScanPart:
    """The part that one task reads: the messages of a segment in a range of physical offsets. Picklable.

    begin: position of a message that was found there, before which nothing is read; plausible: whether that was after damage.
    """

    file: MappedFile
    phy_offsets: Range = ALL
    loss: SegmentLoss | None = None
    begin: int = 0
    plausible: bool = False

    @property
    def bytes(self) -> tuple[int, int]:
        """Return (the physical offset at which the part begins, its size)."""
        low, high = self.phy_offsets
        low = self.file.start if low is None else low
        return low, (self.file.start + self.file.size if high is None else high) - low

    def scan(self, every: MessageScan) -> MessageScan:
        """Return the scan of this part. every: that of no segment yet."""
        wanted = every.wanted.narrowed(MessageFilter(phy_offsets=self.phy_offsets))
        return replace(every, wanted=wanted, begin=self.begin, plausible=self.plausible).of(self.file, self.loss)


def written_bytes(location: StoreLocation, files: Sequence[MappedFile], cores: int) -> list[int] | None:
    """Return how much of each file holds data, for `parts_of`. A broker allocates its last segment long before it is written.

    Nothing is read. None if the bytes lie on another machine: each piece of a segment would fetch the bytes before it once more.
    """
    sizes = [file.size for file in files]
    if cores > 1 and 0 < len(files) < ENOUGH * cores:
        last = max(range(len(files)), key=lambda number: files[number].start)
        with suppress(StoreError), can_do_without("the file's size is taken then"):
            with open_source(location).open(files[last].path) as file:
                if file.descriptor() is None:
                    return None
                sizes[last] = min(file.size, file.allocated)
    return sizes


def parts_of(files: Sequence[MappedFile], written: Sequence[int] | None, cores: int, columns: int) -> list[ScanPart]:
    """Return the tasks, those that take longest first.

    written: how much of each file holds data; None: no file is cut.
    columns: the number of columns that are made; one column takes about as long as the walk.
    """
    walk = 1 / (1 + columns)
    edges = [[0, size] for size in written or [file.size for file in files]]
    if written is not None and len(files) < ENOUGH * cores:
        least = _makespan(edges, walk, cores)
        for count in range(2, cores + 1):
            tried = [_edges(size, count, walk) for size in written]
            if tried == edges:
                break
            span = _makespan(tried, walk, cores)
            if span < WORTH_IT * least:
                edges, least = tried, span
    found = []
    for file, own in zip(files, edges, strict=True):
        for number, (low, high) in enumerate(pairwise(own)):
            first, last = number == 0, number == len(own) - 2
            bounds = None if first else file.start + low, None if last else file.start + high
            found.append((-_cost(low, high, walk), file.start, file.path, ScanPart(file, bounds)))
    return [part for *_, part in sorted(found, key=lambda one: one[:3])]


def _edges(size: int, count: int, walk: float) -> list[int]:
    """Return the edges of so many pieces that take equally long, or of fewer if the last one would be too short."""
    while count > 1:
        left = 1 - walk
        longest = size * walk / (1 - left**count)
        if longest * left ** (count - 1) >= LEAST_BYTES:
            lengths = [longest * left**number for number in range(count)]
            return [0, *(int(sum(lengths[:number])) for number in range(1, count)), size]
        count -= 1
    return [0, size]


def _cost(low: int, high: int, walk: float) -> float:
    return walk * low + high - low + TASK_BYTES


def _makespan(edges: Sequence[Sequence[int]], walk: float, cores: int) -> float:
    """Return how long these pieces take on so many cores, in bytes of which rows are made."""
    costs = sorted((_cost(low, high, walk) for own in edges for low, high in pairwise(own)), reverse=True)
    busy = [0.0] * min(cores, len(costs))
    for cost in costs:
        heapq.heapreplace(busy, busy[0] + cost)
    return max(busy, default=0.0)
