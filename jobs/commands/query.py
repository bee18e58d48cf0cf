"""query STORE: the messages that meet some conditions, as the copy holds them, or as a broker would serve them after its start.

Small stores, and whatever names a place, are read in this process. Large ones go through Spark, a few segments at a time in the
order of the log, so that a limit ends the search early and the driver never holds more than one wave's bounded answers.
With --lost, or the column of that name, the store is audited first.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.cli.argument_places import absolute, refuse_inside, tables_at
from jobs.cli.message_filters import read_filter, read_number
from jobs.cli.options import Command, single_store
from jobs.cli.stores import StoreArgument
from jobs.cli.terminal import colour_wanted, output_width
from jobs.messages.audited import LazySpark, loss_sentence, places_of, request_of
from jobs.messages.last_messages import MOST as MOST_LAST
from jobs.messages.last_messages import first_of_last, waves, without_first
from jobs.messages.message_arguments import (
    NO_SEGMENT,
    RESEND,
    choice,
    chosen_columns,
    redaction_of,
    refuse_with_resend,
    unknown_topics,
)
from jobs.report.files.json_text import row_line
from jobs.report.texts.query_text import Csv, JsonLines, Table
from jobs.report.texts.text import count_text, printable
from jobs.runtime.output import OutputFailed, write_local
from jobs.tasks.spark_start import leave_pandas_out
from schemas.rows import NAMED, MappedFile, Row
from schemas.sources import BODY_COLUMNS, LOST
from store_io.audit.premises import assumed_sentence
from store_io.base.compiled.code_files import start_quickly
from store_io.base.crc import checksum
from store_io.base.errors import UsageError
from store_io.base.paths import is_uri
from store_io.explore.choice.by_queues import QueueChoice, choose_by_queues
from store_io.explore.choice.by_tables import needed, skipped_sentence
from store_io.explore.choice.led_out import entries_led_out
from store_io.explore.lost.segment_loss import NONE_SPARED
from store_io.explore.lost.sendable import resend_scan, sendable_rows
from store_io.explore.message_filter import ALL, Contents, MessageFilter
from store_io.explore.message_search import SearchTask, run_search, search
from store_io.explore.open_store import OpenStore, open_store, segments_at
from store_io.explore.redaction import Redaction
from store_io.explore.scans import COLUMNS, NOTE, MessageScan
from store_io.source.byte_source import StoreLocation

if TYPE_CHECKING:  # what shows a broker's view audits; it is loaded where that is asked for
    from jobs.runtime.session import Session
    from store_io.explore.lost.lost_places import LostPlaces

FORMATS, VIEWS, BODY_FORMS = ("table", "jsonl", "csv", RESEND), ("copy", "broker"), ("none", "text", "base64")
TABLE_LIMIT = 100
TASK_ROWS, TASK_BYTES = 10_000, 8 << 20  # that a task brings back at most; what is more is read here
WAVE_BYTES = 64 << 20  # that all tasks of a wave bring back at most
TABLE_COLUMNS = ("phy_offset", "topic", "queue_id", "queue_offset", "store_time", "total_size", "tags", "keys", "status")
LINE_COLUMNS = tuple(name for name in COLUMNS if name not in (*BODY_COLUMNS, LOST, "store_time_ms", "born_time_ms"))
PLACE = "phy_offset"
PIPE_WIDTH = 200
SENTENCE = 500  # letters of a reason

_OFFSET_ID = re.compile(r"[0-9A-Fa-f]{32}|[0-9A-Fa-f]{56}")


@dataclass(frozen=True)
class Query:
    """A checked command line.

    at: the physical offset that --phy-offset or offset_id, an id as RocketMQ prints it, names.
    lost: only what a start would lose.
    out: the file to write; None: standard output.
    scan: the whole log is to be read.
    tables: of earlier audits, which say what store times segments hold; None: they are not asked.
    last: only so many, the last.
    """

    wanted: MessageFilter
    contents: Contents
    at: int | None
    offset_id: str | None
    limit: int | None
    columns: tuple[str, ...]
    form: str
    body: str
    broker: bool
    redaction: Redaction
    trust_clock: bool
    lost: bool = False
    out: str | None = None
    scan: bool = False
    tables: str | None = None
    last: int | None = None

    @property
    def resend(self) -> bool:
        return self.form == RESEND

    @property
    def needs_audit(self) -> bool:
        """Whether what a start would lose must be known."""
        return self.lost or LOST in self.columns

    @property
    def most(self) -> int | None:
        """Return the number of messages that suffice, if only a queue and a range of its offsets are asked for.

        None: other conditions choose among the messages.
        """
        wanted = self.wanted
        free = self.contents == Contents() and not (self.lost or self.resend)
        free &= (wanted.phy_offsets, wanted.store_times, wanted.tags) == (ALL, ALL, None)
        return self.limit + 1 if free and self.limit is not None else None


def run(command: Command) -> int:
    """Print what is found; 0 whether or not there is anything."""
    store = single_store(command)
    query = read_query(command)
    if "--deploy-mode" in command.spark and "cluster" in command.spark:
        raise UsageError("query prints its answer where it is typed: --deploy-mode client")
    if query.out is not None:
        refuse_inside(query.out, "--out", store.roots)
        _refuse_existing(query.out)
    checksum.trust()
    start_quickly()
    leave_pandas_out()
    if store.release_from != NAMED and (query.broker or query.needs_audit):
        say(assumed_sentence(store.release, store.release_from))
    with ExitStack() as stack:
        written = _Written(query)
        written.take(_texts(store, query, LazySpark(stack, command.spark), stack))
    if written.more:
        say(f"{written.shown} shown, and there are more: raise --limit, or narrow the search")
    shown = written.shown
    topics, why = query.wanted.topics, []
    opened = (
        open_store(StoreLocation(store.path, store.parts), store.release, store.broker_conf) if _may_lack(query, shown) else None
    )
    if opened is not None:
        why.append("" if opened.segments() else NO_SEGMENT)
        why.append(unknown_topics(opened, topics) if topics is not None and (not shown or len(topics) > 1) else "")
    nothing = "no lost message is found" if query.lost else "no message is found"
    if query.at is not None:
        nothing += f" at physical offset {query.at}; explain shows what is there"
    if not shown and query.wanted.tags is not None:
        nothing += "; a tag is compared as a whole, capitals and all"
    reasons = "; ".join(filter(None, why))
    if reasons or not shown:
        say(": ".join(filter(None, ("" if shown else nothing, reasons))))
    other = query.broker or query.lost or opened is None or opened.rules.rocksdb_queues  # no file of a queue is asked
    led_out = 0 if other or opened is None else entries_led_out(opened, query.wanted)
    if led_out:
        has = f"the ConsumeQueues have {count_text(led_out, 'entry', 'entries')} there that"
        say(f"{has} {'leads' if led_out == 1 else 'lead'} to physical offsets that no segment of this copy holds")
    return 0


def _may_lack(query: Query, shown: int) -> bool:
    """Whether the copy is asked once more for what it lacks of an answer."""
    topics = query.wanted.topics
    return not shown or topics is not None and len(topics) > 1 or query.wanted.queue_offsets != ALL


def _refuse_existing(out: str) -> None:
    """Raise UsageError if no new file can be made. An earlier answer may be half sent, and its notes name its lines."""
    if os.path.lexists(out):
        raise UsageError(f"--out {out!r}: is there already; name a new file")
    if not os.path.isdir(os.path.dirname(out)):
        raise UsageError(f"--out {out!r}: there is no folder {os.path.dirname(out)!r}")


def _texts(store: StoreArgument, query: Query, spark: LazySpark, stack: ExitStack) -> Iterator[str | Row]:
    """Return the answer: rows, or lines if they are made already."""
    if query.broker:
        from jobs.messages.broker_rows import broker_rows

        return broker_rows(request_of(store), query, spark, stack)
    places = places_of(request_of(store), spark, query.resend) if query.needs_audit else None
    if places is not None and query.lost:
        say(loss_sentence(places))
    if query.resend:
        batches = copy_batches(store, query, spark, places)
        spared = NONE_SPARED if places is None else places.spared
        return (row_line(row) for batch in batches for row in sendable_rows(batch, query.redaction, spared))
    return copy_rows(store, query, spark, places)


class _Written:
    """Writes an answer, up to the limit.

    shown: how many messages.
    more: whether there are more.
    """

    def __init__(self, query: Query):
        self._query = query
        self.shown, self.more = 0, False

    def take(self, answer: Iterator[str | Row]) -> None:
        """Write it all: to the file, whole or not at all, or to standard output as it comes. Raises OutputFailed."""
        query = self._query
        if query.out is None:
            for text in self._made(answer):
                sys.stdout.write(text)
            return
        try:
            write_local(query.out, (text.encode("utf-8", "backslashreplace") for text in self._made(answer)))
        except OSError as problem:
            raise OutputFailed(f"{query.out}: cannot write: {problem.strerror or problem}") from None

    def _made(self, answer: Iterator[str | Row]) -> Iterator[str]:
        texts: list[str] = []
        output = _output(self._query, texts.append)
        for row in answer:
            if self._query.limit is not None and self.shown == self._query.limit:
                self.more = True
                break
            if isinstance(row, str):
                texts.append(row)
            else:
                output.add(row)
            self.shown += 1
            yield from texts
            texts.clear()
        output.finish()
        yield from texts


def say(sentence: str) -> None:
    """A sentence about the answer, beside it."""
    sys.stdout.flush()
    print(f"query: {sentence}", file=sys.stderr, flush=True)


# ---- arguments -----------------------------------------------------------------------------------------------------


def read_query(command: Command) -> Query:
    """The query that the options ask for. Raises UsageError."""
    options = command.options
    form = choice(options, "--format", FORMATS)
    body = choice(options, "--body", BODY_FORMS)
    broker = choice(options, "--view", VIEWS) == "broker"
    wanted = read_filter(options)
    if ("--from-queue-offset" in options or "--to-queue-offset" in options) and wanted.topics is None:
        raise UsageError("a queue offset means something in a topic: say --topic and, for one queue, --queue")
    at = read_number(options["--phy-offset"], "--phy-offset") if "--phy-offset" in options else None
    offset_id = options.get("--offset-msg-id")
    if offset_id is not None:
        if not _OFFSET_ID.fullmatch(offset_id):
            raise UsageError(f"--offset-msg-id {offset_id!r}: not 32 or 56 hexadecimal digits, as RocketMQ prints such an id")
        named = int(offset_id[-16:], 16)
        if named >= 1 << 63 or at not in (None, named):
            raise UsageError(f"--offset-msg-id {offset_id}: names physical offset {named}, which contradicts --phy-offset")
        at = named
    if at is not None:
        wanted = wanted.narrowed(MessageFilter(phy_offsets=(at, at + 1)))
    for option in ("--key", "--unique-key"):
        try:
            options.get(option, "").encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(f"{option} {options[option]!r}: not UTF-8, which keys are") from None
    unique_keys = frozenset({options["--unique-key"]}) if "--unique-key" in options else None
    contents = Contents(options.get("--key"), unique_keys, _needle(options.get("--body-contains")))
    if contents.key is not None and unique_keys is not None:
        raise UsageError("say either --key, which finds unique keys too, or --unique-key")
    if broker and (contents.key or unique_keys) and (wanted.topics is None or len(wanted.topics) != 1):
        raise UsageError("--view broker looks keys up by topic: say --topic, one of them")
    last = _last(options, broker)
    limit = _number_from_1(options, "--limit", TABLE_LIMIT if form == "table" and last is None else None)
    lost = "--lost" in command.flags
    columns, offset_id = _columns(options, form, body, lost), offset_id.upper() if offset_id else None
    redaction, trust_clock = redaction_of(command), "--trust-clock" in command.flags
    refuse_with_resend(options, form)
    if broker and (lost or form == RESEND or LOST in columns):
        raise UsageError(
            "--view broker shows what a start leaves: it cannot be combined with --lost, the column lost or --format resend"
        )
    scan = "--scan" in command.flags
    tables = tables_at("--tables", options["--tables"]) if "--tables" in options else None
    narrowing = [
        name for name, given in (("--view broker", broker), ("--trust-clock", trust_clock), ("--tables", tables)) if given
    ]
    if scan and narrowing:
        raise UsageError(f"--scan reads the whole log: it cannot be combined with {narrowing[0]}")
    if tables is not None and broker:
        raise UsageError("--tables says which segments of the copy to read: it cannot be combined with --view broker")
    if tables is not None and wanted.store_times == ALL:
        raise UsageError("--tables skips segments by store time: say --since or --until, too")
    out = absolute(options["--out"]) if "--out" in options else None
    if out is not None and is_uri(out):
        raise UsageError(f"--out {options['--out']!r}: a file of this machine, not a URI")
    return Query(
        wanted, contents, at, offset_id, limit, columns, form, body, broker, redaction, trust_clock, lost, out, scan, tables, last
    )


def _number_from_1(options: Mapping[str, str], option: str, default: int | None) -> int | None:
    text = options.get(option)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,12}", text) or not int(text):
        raise UsageError(f"{option} {text!r}: a number from 1 on")
    return int(text)


def _last(options: Mapping[str, str], broker: bool) -> int | None:
    last = _number_from_1(options, "--last", None)
    if last is None:
        return None
    if last > MOST_LAST:
        raise UsageError(f"--last {last}: at most {MOST_LAST}; --since or --from-phy-offset choose more")
    if "--limit" in options:
        raise UsageError("--last says how many, and so does --limit: say one of them")
    if broker:
        raise UsageError("--last means the end of the copy's log: it cannot be combined with --view broker")
    return last


def _needle(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not text.startswith("hex:"):
        return text.encode("utf-8", "surrogateescape")
    try:
        found = bytes.fromhex(text[4:])
    except ValueError:
        found = b""
    if not found:
        raise UsageError(f"--body-contains {text!r}: after hex: write pairs of hexadecimal digits")
    return found


def _columns(options: Mapping[str, str], form: str, body: str, lost: bool) -> tuple[str, ...]:
    names = (TABLE_COLUMNS if form == "table" else LINE_COLUMNS) + ((LOST,) if lost else ())
    if "--columns" in options:
        names = chosen_columns(options["--columns"], body, BODY_FORMS)
    if body != "none" and "body" not in names:
        more = ("body",) if form == "table" else ("body", "body_status")
        names += tuple(name for name in more if name not in names)
    return names


# ---- the copy ------------------------------------------------------------------------------------------------------


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


# ---- output --------------------------------------------------------------------------------------------------------


def _output(query: Query, write: Callable[[str], object]) -> Table | JsonLines | Csv:
    columns = query.columns + ((NOTE,) if query.broker else ())
    if query.form == "csv":
        return Csv(columns, query.body, write)
    if query.form != "table":
        return JsonLines(columns, query.body, write)
    here = query.out is None
    return Table(columns, query.body, output_width(PIPE_WIDTH) if here else PIPE_WIDTH, here and colour_wanted(), write)
