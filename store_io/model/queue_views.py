"""Each queue seen from both sides: the entries that its messages should have, and those on disk.

Input are the summaries of all scans; nothing is read here. Ranges are entry numbers or bytes, half-open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schemas.layouts import consumequeue_layout
from schemas.layouts.store_names import BATCH_QUEUES
from schemas.rows import MATCH_MISSING, RUN_LMQ, RUN_QUEUE, MappedFile, QueueKey, QueueSummary, SegmentSummary
from store_io.base.packed import PackedMap, keys_of
from store_io.base.ranges import Ranges, intersect, subtract, total, union
from store_io.broker.loading import queue_folder
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.log.scan.stored_runs import StoredSummary
from store_io.model.queue_runs import Beginning, QueueRuns, StoreRuns, beginnings, matched, stored_runs, stretches


@dataclass(slots=True)
class QueueView:
    """One queue seen from both sides. Entry numbers; for a BatchConsumeQueue `missing` counts from the last matched entry.

    begins_again: the places at which its offsets do; the earlier messages that are in no queue are not `missing`.
    summaries: those of all queues that were scanned. A view holds none itself, as there may be a million of both.
    """

    key: QueueKey
    batch: bool
    folder: str
    files: tuple[MappedFile, ...] = ()
    summaries: Mapping[QueueKey, QueueSummary] = field(default_factory=dict, repr=False)
    runs: QueueRuns = field(default_factory=QueueRuns)
    covered: Ranges = field(default_factory=list)
    missing: Ranges = field(default_factory=list)
    leftover: Ranges = field(default_factory=list)
    begins_again: list[Beginning] = field(default_factory=list)
    deleted_topic: bool = False
    keyed: bool = False  # its entries are in RocksDB: a key is an entry's place, there are no files
    of_other_kind: bool = False  # config/topics.json wants the other kind of queue: a start refuses, nothing is compared
    lmq: bool = False

    @property
    def summary(self) -> QueueSummary | None:
        """Return the summary of its files, or entries; None if they were not scanned."""
        return self.summaries.get(self.key)

    @property
    def unit(self) -> int:
        return consumequeue_layout.BATCH_ENTRY_BYTES if self.batch else consumequeue_layout.ENTRY_BYTES

    def earlier_from(self) -> np.ndarray:
        """Return for each run the queue offset from which on its messages are of an earlier life.

        These messages are in no queue. The value is far above all offsets for the other runs.
        """
        rows = self.runs.rows
        found = np.full(len(rows), np.iinfo(np.int64).max)
        if self.begins_again:
            positions, absent = self.runs.positions, rows["match"] == MATCH_MISSING
            if self.keyed and self.summary is not None:  # the later life set the queue's end back: no consumer gets past it
                absent |= rows["queue_offset"] >= self.summary.used_end
            absent &= rows["kind"] == RUN_QUEUE
            for position, queue_offset in self.begins_again:
                before = absent & (positions < position)
                if self.batch:  # of a run that is so in part, nobody knows which of its batches are
                    before &= rows["queue_offset"] >= queue_offset
                found[before] = np.minimum(found[before], queue_offset)
        return found

    def earlier_messages(self) -> int:
        """Return how many messages that are."""
        rows, start = self.runs.rows, self.earlier_from()
        inside = rows["queue_offset"] + rows["records"] > start
        if not inside.any():
            return 0
        rows = rows[inside]
        before = np.maximum(start[inside] - rows["queue_offset"], 0)
        return int((rows["messages"] - before).sum())


@dataclass(frozen=True)
class KnownQueues:
    """The facts that disk and config/ show about queues.

    summaries: of those that were scanned.
    topics: configured ones; None: not known.
    batch_topics: those of type BatchCQ.
    lmq_expected: a broker puts entries in multi-dispatch queues.
    database: the folder of the queues' database; "" if they are in files.
    light_database: the folder of the light queues' database, if the other queues are in files.
    """

    summaries: Mapping[QueueKey, QueueSummary] = field(default_factory=dict)
    files: Mapping[QueueKey, tuple[MappedFile, ...]] = field(default_factory=dict)
    folders: Mapping[QueueKey, str] = field(default_factory=dict)
    batch_topics: frozenset[str] = frozenset()
    topics: frozenset[str] | None = None
    lmq_expected: bool = False
    database: str = ""
    light_database: str = ""

    def database_of(self, key: QueueKey) -> str:
        return self.light_database if self.light_database and key[0].startswith(LMQ_PREFIX) else self.database

    @property
    def there(self) -> Mapping[QueueKey, object]:
        """Return the queues of which anything is there."""
        if self.light_database:
            return dict.fromkeys([*self.folders, *(key for key in self.summaries if key[0].startswith(LMQ_PREFIX))])
        return self.summaries if self.database else self.folders


def queue_views(
    segments: Sequence[SegmentSummary], known: KnownQueues, read_in_part: bool = False
) -> PackedMap[QueueKey, QueueView]:
    """Return every queue that the log or the disk knows, with its matched, missing and unmatched entry numbers.

    read_in_part: some segments were not read; see `narrow_to_read`.
    """
    there = known.there
    topics_there = {topic for topic, _ in there} if known.topics is not None else set()
    stored = any(isinstance(segment, StoredSummary) for segment in segments)
    runs = (stored_runs if stored else StoreRuns(segments).by_queue)(segments, known.lmq_expected, there)

    def view(key: QueueKey) -> QueueView:
        batch = key[0] in known.batch_topics
        database = known.database_of(key)
        folder = database or known.folders.get(key) or queue_folder(batch, key)
        of_other_kind = folder.startswith(BATCH_QUEUES + "/") != batch
        found = QueueView(key, batch != of_other_kind, folder, known.files.get(key, ()), known.summaries)
        found.of_other_kind, found.keyed = of_other_kind, bool(database)
        found.deleted_topic = known.topics is not None and key[0] not in known.topics and key[0] not in topics_there
        if not of_other_kind:
            found.runs = runs.of(key)
            # A light queue whose name has "/" gets none in files (recovery.md 7.3), and may get some in RocksDB.
            _match(found, known.lmq_expected and (found.keyed or "/" not in key[0]))
        if read_in_part:
            narrow_to_read(found)
        return found

    def reopened(key: QueueKey, closed: tuple[Any, ...]) -> QueueView:
        batch, folder, covered, missing, leftover, again, deleted_topic, keyed, of_other_kind, lmq = closed
        own = QueueRuns() if of_other_kind else runs.of(key)
        files = known.files.get(key, ())
        return QueueView(
            key, batch, folder, files, known.summaries, own, covered, missing, leftover, again, deleted_topic, keyed,
            of_other_kind, lmq,
        )  # fmt: skip

    return PackedMap.of(((key, view(key)) for key in keys_of(there, runs)), _closed, reopened, _file_count)


def _file_count(view: QueueView) -> int:
    return len(view.files)


def _closed(view: QueueView) -> tuple[Any, ...]:
    """Return the view without what it shares with the others."""
    kinds = view.deleted_topic, view.keyed, view.of_other_kind, view.lmq
    return view.batch, view.folder, view.covered, view.missing, view.leftover, view.begins_again, *kinds


def _match(view: QueueView, lmq_expected: bool) -> None:
    covered, missing = [], []
    awaited = 0
    rows = view.runs.rows
    if len(rows):
        lmq, records = rows["kind"] == RUN_LMQ, rows["records"]
        view.lmq = bool(lmq.any())
        led_to = matched(rows)
        absent = (rows["match"] == MATCH_MISSING) & ~(lmq & (not lmq_expected))
        if view.batch:
            absent &= ~never_put(rows)
        firsts, counts = rows["queue_offset"], records
        if len(rows) > 1:
            steps = rows["messages"] if view.batch or view.keyed else records  # as many offsets as an inner batch takes up
            view.begins_again = beginnings(rows, view.runs.positions, steps, view.batch, view.keyed)
            if view.begins_again:
                earlier = view.earlier_from()
                absent &= earlier > firsts
                counts = np.where(earlier < firsts + records, earlier - firsts, records)
        entry = rows["delta"] if view.batch else rows["queue_offset"] + rows["delta"]  # wraps, as in Java
        covered = stretches(entry[led_to], records[led_to])
        if view.batch:
            awaited = int(records[absent].sum())
        else:
            missing = stretches(firsts[absent], counts[absent])
    view.covered = union(covered)
    if awaited:
        end = view.covered[-1][1] if view.covered else 0
        missing.append((end, end + awaited))
    view.missing = union((a, b) for a, b in missing if a >= 0)
    summary = view.summary
    if summary is not None:
        used = union(summary.used)
        # Very many ranges come as one, over what a missing file would hold; a file whose name is negative holds nothing.
        held = union((f.start // view.unit, (f.start // view.unit) + f.size // view.unit) for f in view.files)
        expired = [(0, summary.expired_end)] if summary.expired_end else []
        unmatched = subtract(subtract(used, view.covered), expired)
        view.leftover = unmatched if view.keyed else intersect(unmatched, held)


def never_put(rows: np.ndarray) -> np.ndarray:
    """Return batches for which no broker makes an entry: their base or their number is negative (BatchConsumeQueue)."""
    never: np.ndarray = (rows["queue_offset"] < 0) | (rows["messages"] < 0)
    return never


def narrow_to_read(view: QueueView) -> None:
    """Keep as unmatched only the entries that cannot lead to segments that were not read."""
    # Entries before that of the first message that was read lead to segments that were not read.
    known = [*view.covered[:1], *view.missing[:1]]
    if view.batch and not view.covered and view.missing and view.summary is not None:
        # Nothing says where in a BatchConsumeQueue its messages belong but those before them.
        count, end = total(view.missing), view.summary.used_end
        view.missing, known = [(end, end + count)], []
    view.leftover = intersect(view.leftover, [(min(known)[0], 1 << 62)]) if known else []
