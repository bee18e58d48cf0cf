"""query STORE: messages that meet some conditions, as the copy has them or a broker would serve them.

With --lost, or the column of that name, the store is audited first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from jobs.cli.argument_places import refuse_inside
from jobs.cli.options import Command, single_store
from jobs.cli.stores import StoreArgument
from jobs.cli.terminal import colour_wanted, output_width
from jobs.messages.audited import loss_sentence, places_of, request_of
from jobs.messages.copy_rows import copy_batches, copy_rows
from jobs.messages.message_arguments import NO_SEGMENT, unknown_topics
from jobs.messages.message_query import Query, read_query, say
from jobs.report.files.json_text import row_line
from jobs.report.texts.query_text import Csv, JsonLines, Table
from jobs.report.texts.text import count_text
from jobs.runtime.output import OutputFailed, write_local
from jobs.runtime.spark_start import LazySpark, leave_pandas_out
from schemas.rows import NAMED, Row
from store_io.base.compiled.code_files import start_quickly
from store_io.base.crc import checksum
from store_io.base.errors import UsageError
from store_io.messages.choice.by_queues import entries_led_out
from store_io.messages.lost.segment_loss import NONE_SPARED
from store_io.messages.lost.sendable import sendable_rows
from store_io.messages.message_filter import ALL
from store_io.messages.open_store import open_store
from store_io.messages.scans import NOTE
from store_io.model.premises import assumed_sentence
from store_io.source.byte_source import StoreLocation

PIPE_WIDTH = 200


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
    with LazySpark(command.spark) as spark, ExitStack() as stack:
        written = _Written(query)
        written.take(_texts(store, query, spark, stack))
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
    """Say whether the copy is asked once more for what it lacks of an answer."""
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


def _output(query: Query, write: Callable[[str], object]) -> Table | JsonLines | Csv:
    columns = query.columns + ((NOTE,) if query.broker else ())
    if query.form == "csv":
        return Csv(columns, query.body, write)
    if query.form != "table":
        return JsonLines(columns, query.body, write)
    here = query.out is None
    return Table(columns, query.body, output_width(PIPE_WIDTH) if here else PIPE_WIDTH, here and colour_wanted(), write)
