"""The rows of a query: messages as the copy holds them, read in this process or through Spark.

Small stores, and whatever names a place, are read in this process. Large ones go through Spark, a few segments at a time in the
order of the log, so that a limit ends the search early and the driver never holds more than one wave's bounded answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.cli.stores import StoreArgument
from jobs.messages.last_messages import first_of_last, waves, without_first
from jobs.messages.message_query import Query, say
from jobs.report.texts.text import printable
from jobs.runtime.spark_start import LazySpark
from schemas.rows import MappedFile, Row
from schemas.sources import BODY_COLUMNS
from store_io.base.crc import checksum
from store_io.messages.choice.by_queues import QueueChoice, choose_by_queues
from store_io.messages.choice.by_tables import needed, skipped_sentence
from store_io.messages.lost.sendable import resend_scan
from store_io.messages.message_filter import Contents, MessageFilter
from store_io.messages.message_search import SearchTask, run_search, search
from store_io.messages.open_store import OpenStore, open_store, segments_at
from store_io.messages.scans import MessageScan
from store_io.source.byte_source import StoreLocation

if TYPE_CHECKING:  # what shows a broker's view audits; it is loaded where that is asked for
    from jobs.runtime.session import Session
    from store_io.messages.lost.lost_places import LostPlaces

TASK_ROWS, TASK_BYTES = 10_000, 8 << 20  # that a task brings back at most; what is more is read here
WAVE_BYTES = 64 << 20  # that all tasks of a wave bring back at most
PLACE = "phy_offset"
SENTENCE = 500  # letters of a reason


def copy_rows(store: StoreArgument, query: Query, spark: LazySpark, places: LostPlaces | None = None) -> Iterator[Row]:
    """Yield the copy's messages, by physical offset.

    places: the messages that a start takes, if the query asks for them.
    """
    for batch in copy_batches(store, query, spark, places):
        yield from query.redaction.batch(batch).select(list(query.columns)).to_pylist()


def copy_batches(
    named: StoreArgument, query: Query, spark: LazySpark, places: LostPlaces | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the copy's messages as batches, nothing hidden, perhaps with further columns."""
    location = StoreLocation(named.path, named.parts)
    store = open_store(location, named.release, named.broker_conf)
    segments = sorted(store.segments(), key=lambda f: (f.start, f.path))
    choice = QueueChoice()
    if not query.scan and query.at is None and query.last is None:
        choice = choose_by_queues(store, query.wanted, segments, query.most)
    if query.trust_clock:
        kept = segments_at(store, query.wanted.store_times)
        segments = [f for f in segments if f in kept]
    segments = [f for f in segments if query.wanted.may_be_in(f.start, f.size)]
    if query.tables is not None:
        segments = _needed(store, segments, query.tables, named.release, query.wanted)
    scan = MessageScan(
        location, "", 0, 0, query.columns, query.wanted, query.body != "none", query.lost, store.rules, only_lost=query.lost
    )
    scan = resend_scan(scan) if query.resend else scan
    if query.offset_id is not None and "offset_msg_id" not in scan.columns:
        scan = replace(scan, columns=(*scan.columns, "offset_msg_id"))
    above = 0
    if query.last is not None:
        first, above = first_of_last(_Scans(scan, places).of, query.contents, segments, query.last, spark)
        later = MessageFilter(phy_offsets=(first, None))
        segments = [f for f in segments if later.may_be_in(f.start, f.size)]
        scan = replace(scan, wanted=scan.wanted.narrowed(later))
    batches = _chosen(_Scans(scan, places), query, segments, choice, spark)
    for batch in without_first(batches, above):
        if query.offset_id is not None and query.offset_id not in batch.column("offset_msg_id").to_pylist():
            other = "has another id: it was stored by another broker, or the id is damaged"
            say(f"the message at physical offset {query.at} {other}")
        yield batch


def _needed(store: OpenStore, segments: list[MappedFile], tables: str, release: str, wanted: MessageFilter) -> list[MappedFile]:
    """The segments that earlier audits do not rule out. Says how many they do."""
    from jobs.tables.earlier_times import earlier_times

    times = earlier_times(tables, store, release)
    kept = needed(segments, times, wanted.store_times)
    say(printable(skipped_sentence(times, len(segments) - len(kept), len(segments)), SENTENCE))
    return kept


@dataclass(frozen=True)
class _Scans:
    """The scan of each segment.

    places: what a start takes; None: not asked.
    choice: how much of each is to be read.
    """

    scan: MessageScan
    places: LostPlaces | None
    choice: QueueChoice = field(default_factory=QueueChoice)

    def of(self, file: MappedFile) -> MessageScan:
        """Return the scan of this segment."""
        loss = None if self.places is None else self.places.of(file.path)
        scan, end = self.scan.of(file, loss), (self.choice.ends or {}).get(file.path)
        return scan if end is None else replace(scan, wanted=scan.wanted.narrowed(MessageFilter(phy_offsets=(None, end))))


def _chosen(
    scans: _Scans, query: Query, segments: list[MappedFile], choice: QueueChoice, spark: LazySpark
) -> Iterator[pa.RecordBatch]:
    """The messages of these segments, or of what ConsumeQueue entries leave of them. Says which of the two."""
    whole = "the whole log is read"
    if choice.refused:
        say(f"the ConsumeQueues do not answer this, and {whole}: {printable(choice.refused, SENTENCE)}")
    if choice.ends is None or not choice.narrows(segments):
        yield from _read(scans, query, segments, spark)
        return
    kept = [f for f in segments if f.path in choice.ends]
    batches = _read(replace(scans, choice=choice), query, kept, spark)
    if choice.enough:
        bodies = not set(BODY_COLUMNS).isdisjoint(scans.scan.columns)  # too large to be held: read once more
        columns = (PLACE,) if bodies else tuple(dict.fromkeys((*scans.scan.columns, PLACE)))
        first = replace(scans, choice=choice, scan=replace(scans.scan, columns=columns, decompress=False))
        held = _held(choice, _read(first, query, kept, spark))
        if not held:
            say(f"the ConsumeQueues do not answer this, and {whole}: they lead to messages that lie inside of damage")
            yield from _read(scans, query, segments, spark)
            return
        batches = batches if bodies else iter(held)
    say(f"answered from the ConsumeQueues: {len(kept)} of {len(segments)} segments read; --scan reads the whole log")
    yield from batches


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


def _read(scans: _Scans, query: Query, segments: list[MappedFile], spark: LazySpark) -> Iterator[pa.RecordBatch]:
    """Return the messages of these segments, read in this process or through Spark."""
    direct = query.at is not None or len(segments) < 2 or query.limit is None
    if not direct and spark.wanted(sum(map(scans.choice.bytes_of, segments))):
        return _through_spark(scans, query, segments, spark.session)
    return (batch for f in segments for batch in search(scans.of(f), query.contents))


def _through_spark(scans: _Scans, query: Query, segments: list[MappedFile], session: Session) -> Iterator[pa.RecordBatch]:
    """Yield messages wave by wave, in log order.

    A wave grows while nothing is found, so that a rare message costs few of them.
    """
    assert query.limit is not None
    context = session.spark.sparkContext
    left = query.limit + 1
    for files in waves(segments, context.defaultParallelism):
        room = min(TASK_BYTES, WAVE_BYTES // len(files))
        tasks = [SearchTask(scans.of(f), query.contents, min(left, TASK_ROWS), room) for f in files]
        answers = context.parallelize(tasks, len(tasks)).map(_search).collect()
        for file, (data, whole) in zip(files, answers, strict=True):
            known = 0
            for batch in pa.ipc.open_stream(data):
                known += batch.num_rows
                yield batch
            left -= known
            if not whole and left > 0:
                for batch in _rest(scans.of(file), query.contents, known):
                    left -= batch.num_rows
                    yield batch
            if left <= 0:
                return


def _rest(scan: MessageScan, contents: Contents, known: int) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a segment that a task did not bring back: they are read here, batch by batch."""
    for batch in search(scan, contents):
        if batch.num_rows > known:
            yield batch.slice(known)
        known = max(0, known - batch.num_rows)


def _search(task: SearchTask) -> tuple[bytes, bool]:
    checksum.trust()
    return run_search(task)
