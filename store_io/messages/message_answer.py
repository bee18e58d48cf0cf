"""Answers a question from the copy: its messages in the order of the log, read here or by tasks that run elsewhere.

Small logs, and whatever names a place, are read in this process. Tasks run in waves, a few segments at a time in the order of the
log: a limit ends the search early, and no more than one wave's bounded answers are held. ConsumeQueue entries may leave segments
out; if they prove wrong, the whole log is read. The last messages are looked for from the log's end back: first their places,
then what lies from the first to the last of them in each segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from schemas.advice import Gap
from schemas.sources import BODY_COLUMNS
from store_io.base.errors import StoreError, Unreadable
from store_io.base.tasks import HERE, OfScan, PartlyRead, Workers
from store_io.messages.choice.by_pieces import ScanPart
from store_io.messages.choice.by_queues import QueueChoice, choose_by_queues
from store_io.messages.message_filter import Contents
from store_io.messages.message_rows import message_schema
from store_io.messages.message_search import search
from store_io.messages.question import ByQueues, MessageSearch, Tell
from store_io.messages.scans import MessageScan
from store_io.wording.gaps import gap_text

TASK_ROWS, TASK_BYTES = 10_000, 8 << 20  # that a task brings back at most; what is more is read here
WAVE_BYTES = 64 << 20  # that all tasks of a wave bring back at most
PLACE = "phy_offset"
INNER_MOST = 1 << 15  # messages of an inner batch, which share its place
PLACES_BYTES = 256 << 20  # of places that the tasks of a wave bring back at most; one task alone may bring back more
GROWTH, MOST_TIMES = 2, 16  # each wave is so many times as large as the one before, up to so many times the first
DAMAGED = "they lead to messages that lie inside of damage"
_T = TypeVar("_T")


def answer(asked: MessageSearch, tell: Tell, workers: Workers = HERE) -> Iterator[pa.RecordBatch]:
    """Yield the messages as batches of the question's columns, perhaps with further ones.

    More than the limit may come. Each narrowing is reported before the messages that were found with it.
    """
    return _Answer(asked, tell, workers).batches()


class _Answer:
    """One answer."""

    def __init__(self, asked: MessageSearch, tell: Tell, workers: Workers):
        self._search, self._question, self._tell, self._workers = asked, asked.question, tell, workers

    def batches(self) -> Iterator[pa.RecordBatch]:
        parts = sorted(self._search.parts(self._tell), key=lambda part: (part.file.start, part.file.path))
        question = self._question
        if question.last is not None:
            return self._last(parts, question.last)
        if question.whole_log or question.at is not None:
            return self._read(parts)
        return self._by_queues(parts)

    # ---- which parts -------------------------------------------------------------------------------------------------

    def _by_queues(self, parts: list[ScanPart]) -> Iterator[pa.RecordBatch]:
        """Yield the messages of these segments, or of what ConsumeQueue entries leave of them."""
        log = sorted(self._search.segments, key=lambda file: (file.start, file.path))
        choice = choose_by_queues(self._search.store, self._question.wanted, log, self._question.enough)
        if choice.refused:
            self._tell(ByQueues(len(parts), len(parts), choice.refused))
        if choice.ends is None or not choice.narrows([part.file for part in parts]):
            yield from self._read(parts)
            return
        ends = choice.ends
        kept = [replace(part, phy_offsets=(None, ends[part.file.path])) for part in parts if part.file.path in ends]
        columns, held = self._question.columns, None
        bodies = not set(BODY_COLUMNS).isdisjoint(columns)  # too large to be held: read once more
        if choice.enough:
            held = _held(choice, self._read(kept, (PLACE,) if bodies else tuple(dict.fromkeys((*columns, PLACE)))))
            if not held:
                self._tell(ByQueues(len(parts), len(parts), DAMAGED))
                yield from self._read(parts)
                return
        self._tell(ByQueues(len(kept), len(parts)))
        yield from self._read(kept) if held is None or bodies else held

    def _last(self, parts: list[ScanPart], most: int) -> Iterator[pa.RecordBatch]:
        """Yield the last `most` messages of these segments, or all if there are no more."""
        looks, above = last_parts(zip(reversed(parts), self._places(parts, most), strict=False), most)
        return without_first(self._read(looks), above)

    # ---- reading them ------------------------------------------------------------------------------------------------

    def _scan(self, part: ScanPart, columns: tuple[str, ...] | None = None) -> MessageScan:
        scan = part.scan(self._search.scan)
        return scan if columns is None else replace(scan, columns=columns, decompress=False)

    def _read(self, parts: Sequence[ScanPart], columns: tuple[str, ...] | None = None) -> Iterator[pa.RecordBatch]:
        """Return the messages of these parts. columns: other ones than the question has, none of a body."""
        question, contents = self._question, self._question.contents
        scans = [self._scan(part, columns) for part in parts]
        if question.at is None and len(parts) > 1 and question.limit is not None:
            at_once = self._workers.at_once(sum(part.bytes[1] for part in parts))
            if at_once:
                return self._in_waves(scans, question.limit + 1, at_once)
        return (batch for scan in scans for batch in search(scan, contents))

    def _in_waves(self, scans: Sequence[MessageScan], left: int, at_once: int) -> Iterator[pa.RecordBatch]:
        """Yield messages wave by wave, until there are `left` of them.

        A wave grows while nothing is found, so that a rare message costs few of them.
        """
        contents = self._question.contents
        for wave in waves(scans, at_once):
            room = min(TASK_BYTES, WAVE_BYTES // len(wave))
            tasks = [SearchTask(scan, contents, min(left, TASK_ROWS), room) for scan in wave]
            for scan, found in zip(wave, self._run(tasks), strict=True):
                known = 0
                for batch in pa.ipc.open_stream(found.stream):
                    known += batch.num_rows
                    yield batch
                left -= known
                if not found.whole and left > 0:  # what a task did not bring back is read here, batch by batch
                    for batch in without_first(search(scan, contents), known):
                        left -= batch.num_rows
                        yield batch
                if left <= 0:
                    return

    def _places(self, parts: Sequence[ScanPart], most: int) -> Iterator[LastPlaces]:
        """Yield the places of each segment, from the last one back. A large search runs elsewhere, after the last segment."""
        tasks = [LastTask(self._scan(part), self._question.contents, most) for part in reversed(parts)]
        at_once = self._workers.at_once(sum(part.file.size for part in parts[:-1])) if len(tasks) > 2 else 0
        if not at_once:
            yield from (task.run() for task in tasks)
            return
        yield tasks[0].run()
        for wave in waves(tasks[1:], at_once, max(1, PLACES_BYTES // (8 * most))):
            yield from self._run(wave)

    def _run(self, tasks: Sequence[SearchTask] | Sequence[LastTask]) -> list[Any]:
        """Run the tasks elsewhere. Raises StoreError if one has failed, or has not read all that it wanted to read."""
        results = self._workers.run(tasks, "searching")
        for result in results:
            if isinstance(result, PartlyRead):
                raise Unreadable.again(next(iter(result.failed.values())))
            if isinstance(result, Gap):
                raise StoreError(f"a task failed: {gap_text(result)}")
        return results


def _held(choice: QueueChoice, batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return as many messages as are enough, or none.

    There are none if a message before the last of these is missing to which an entry leads.
    """
    held: list[pa.RecordBatch] = []
    found: list[int] = []
    for batch in batches:
        held.append(batch)
        found += batch.column(PLACE).to_pylist()
        if len(found) >= choice.enough:
            last = found[choice.enough - 1]
            return held if {place for place in choice.named if place <= last}.issubset(found) else []
    return []


def last_parts(found: Iterable[tuple[ScanPart, LastPlaces]], most: int) -> tuple[list[ScanPart], int]:
    """Return what to read for the last `most` messages: parts in the order of the log, how many rows come before these.

    found: one segment after the other from the last one back; no more are asked for than are needed.
    """
    looks: list[ScanPart] = []
    left, above = most, 0
    for part, (places, doubtful) in found:
        taken = places[-left:]
        if len(taken):
            first, end = int(taken[0]), int(taken[-1]) + 1
            above = int((places == first).sum()) - int((taken == first).sum())  # others of the same inner batch
            is_plausible = doubtful is not None and doubtful <= first
            looks.append(replace(part, phy_offsets=(first, end), begin=first - part.file.start, plausible=is_plausible))
        left -= len(taken)
        if left <= 0:
            break
    return looks[::-1], above


def without_first(batches: Iterator[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches without their first `count` rows."""
    for batch in batches:
        if count < batch.num_rows:
            yield batch.slice(count)
        count = max(0, count - batch.num_rows)


def waves(tasks: Sequence[_T], at_once: int, most: int | None = None) -> Iterator[Sequence[_T]]:
    """Yield all tasks, in order, in parts that grow while nobody has enough. The first part has as many as can run at once.

    most: the tasks of one part; None: no other bound than that of growth.
    """
    bound = at_once * MOST_TIMES if most is None else min(at_once * MOST_TIMES, most)
    size, at = min(at_once, bound), 0
    while at < len(tasks):
        yield tasks[at : at + size]
        at, size = at + size, min(size * GROWTH, bound)


# ---- tasks ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SegmentTask(OfScan):
    """A look for messages in one segment. Picklable."""

    scan: MessageScan
    contents: Contents
    store = 0
    not_after = 0.0


class SearchResult(NamedTuple):
    """The first rows found, as an Arrow stream. whole: whether these are surely all."""

    stream: bytes
    whole: bool


@dataclass(frozen=True)
class SearchTask(_SegmentTask):
    """A search of one segment that brings back at most so many rows and bytes of it."""

    most_rows: int
    most_bytes: int

    def run(self) -> SearchResult:
        """Search the segment. Raises as `search`."""
        sink = pa.BufferOutputStream()
        rows = size = 0
        whole = True
        with pa.ipc.new_stream(sink, message_schema(self.scan.columns)) as writer:
            for batch in search(self.scan, self.contents):
                part = batch.slice(0, self.most_rows - rows)
                while part.num_rows and size + part.nbytes > self.most_bytes:  # a batch of large bodies may alone be more
                    part = part.slice(0, part.num_rows // 2)
                writer.write_batch(part)
                rows, size = rows + part.num_rows, size + part.nbytes
                if part.num_rows < batch.num_rows or size >= self.most_bytes:
                    whole = False
                    break
        return SearchResult(sink.getvalue().to_pybytes(), whole)


class LastPlaces(NamedTuple):
    """The places of a segment's last messages.

    places: physical offsets, int64, ascending: one for each row, of the first inner batch that is unpacked all, which share one.
    doubtful: that of the first message in the segment that was found after damage; None without one.
    """

    places: np.ndarray
    doubtful: int | None = None


@dataclass(frozen=True)
class LastTask(_SegmentTask):
    """A search of one segment for the places of its last `most` messages.

    The boundaries of messages are known from a segment's start alone, so the segment is read whole.
    """

    most: int

    def run(self) -> LastPlaces:
        """Return the segment's last messages that match, at least so many if there are. 8 bytes each. Raises as `search`."""
        scan = self.scan
        most = self.most + (INNER_MOST if scan.unpack else 0)
        narrow = replace(scan, columns=(PLACE, "status"), decompress=scan.decompress and scan.unpack)
        held, count, doubtful = [np.zeros(0, np.int64)], 0, None
        for batch in search(narrow, self.contents):
            held.append(batch.column(PLACE).to_numpy())
            count += batch.num_rows
            if doubtful is None and batch.column("status")[0].as_py() != "valid":  # the same for all rows of a batch
                doubtful = int(held[-1][0])
            if count > 2 * most:
                held = [np.concatenate(held)[-most:]]
                count = len(held[0])
        return LastPlaces(np.concatenate(held)[-most:], doubtful)
