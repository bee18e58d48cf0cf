"""query STORE: messages that meet some conditions, as the copy has them or a broker would serve them.

With --lost, or the column of that name, the store is audited first; with --only-here both copies are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.cli.argument_places import refuse_inside
from jobs.cli.options import Command, single_store
from jobs.cli.parser import is_cluster_mode
from jobs.cli.stores import StoreArgument
from jobs.cli.terminal import colour_wanted, output_width
from jobs.messages.message_arguments import NO_SEGMENT, open_named, request_of, unknown_topics
from jobs.messages.message_query import Query, read_query, say, tell
from jobs.report.files.json_text import row_line
from jobs.report.texts.query_text import Csv, JsonLines, Table, loss_text, only_here_text
from jobs.runtime.output import OutputFailed, write_local
from jobs.runtime.spark_start import LazySpark
from jobs.tasks.threads_or_spark import SparkWorkers
from schemas.rows import NAMED, Row
from store_io.base.compiled.code_files import start_quickly
from store_io.base.crc import checksum
from store_io.base.errors import UsageError
from store_io.base.tasks import Workers
from store_io.base.wording import count_text
from store_io.messages.choice.by_queues import entries_led_out
from store_io.messages.lost.segment_loss import NONE_SPARED
from store_io.messages.lost.sendable import sendable_messages
from store_io.messages.message_answer import answer
from store_io.messages.message_filter import ALL
from store_io.messages.question import MessageSearch, Question, open_search
from store_io.messages.scans import NOTE
from store_io.model.premises import assumed_sentence

if TYPE_CHECKING:  # what audits is loaded where an audit is wanted: most questions want none
    from store_io.messages.lost.lost_places import LostPlaces

PIPE_WIDTH = 200


def run(command: Command) -> int:
    """Print what is found; 0 whether or not there is anything."""
    store = single_store(command)
    query = read_query(command)
    if is_cluster_mode(command.spark):
        raise UsageError("query prints its answer where it is typed: --deploy-mode client")
    other = query.only_here
    if other is not None and os.path.realpath(other) == os.path.realpath(store.path):
        raise UsageError(f"--only-here {other!r}: is this copy itself; name another one")
    if query.out is not None:
        refuse_inside(query.out, "--out", [*store.roots, *([other] if other is not None else [])])
        _refuse_existing(query.out)
    checksum.trust()
    start_quickly()
    if store.release_from != NAMED and (query.broker or query.needs_audit or other is not None):
        say(assumed_sentence(store.release, store.release_from))
    with LazySpark(command.spark) as spark:
        written = _Written(query)
        written.take(answered(store, query, SparkWorkers(spark)))
    if written.more:
        say(f"{written.shown} shown, and there are more: raise --limit, or narrow the search")
    shown, question = written.shown, query.question
    topics, why = question.wanted.topics, []
    opened = open_named(store) if _may_lack(query, shown) else None
    if opened is not None:
        why.append("" if opened.segments() else NO_SEGMENT)
        why.append(unknown_topics(opened, topics) if topics is not None and (not shown or len(topics) > 1) else "")
    nothing = "no lost message is found" if question.only_lost else "no message is found"
    nothing += "" if other is None else " that only this copy holds"
    if question.at is not None:
        nothing += f" at physical offset {question.at}; explain shows what is there"
    if not shown and question.wanted.tags is not None:
        nothing += "; a tag is compared as a whole, capitals and all"
    reasons = "; ".join(filter(None, why))
    if reasons or not shown:
        say(": ".join(filter(None, ("" if shown else nothing, reasons))))
    of_log = opened is not None and not query.broker and not question.only_lost
    led_out = entries_led_out(opened, question.wanted) if opened is not None and of_log else 0
    if led_out:
        has = f"the ConsumeQueues have {count_text(led_out, 'entry', 'entries')} there that"
        say(f"{has} {'leads' if led_out == 1 else 'lead'} to physical offsets that no segment of this copy holds")
    return 0


def _may_lack(query: Query, shown: int) -> bool:
    """Say whether the copy is asked once more for what it lacks of an answer."""
    wanted = query.question.wanted
    return not shown or wanted.topics is not None and len(wanted.topics) > 1 or wanted.queue_offsets != ALL


def _refuse_existing(out: str) -> None:
    """Raise UsageError if no new file can be made. An earlier answer may be half sent, and its notes name its lines."""
    if os.path.lexists(out):
        raise UsageError(f"--out {out!r}: is there already; name a new file")
    if not os.path.isdir(os.path.dirname(out)):
        raise UsageError(f"--out {out!r}: there is no folder {os.path.dirname(out)!r}")


def answered(store: StoreArgument, query: Query, workers: Workers) -> Iterator[str | Row]:
    """Return the answer: rows, or lines if they are made already."""
    if query.broker:
        from store_io.messages.served.served_rows import served_rows

        return map(query.redaction.row, served_rows(request_of(store), query.question, tell, workers))
    places = None
    if query.needs_audit:
        from store_io.messages.lost.spared import places_of

        places = places_of(request_of(store), workers, query.resend)
        if query.question.only_lost:
            say(loss_text(places))
    batches = _batches(store, query, places, workers)
    if query.resend:
        spared = NONE_SPARED if places is None else places.spared
        return (row_line(vars(one)) for batch in batches for one in sendable_messages(batch, query.redaction, spared))
    shown = list(query.columns)
    return (row for batch in batches for row in query.redaction.batch(batch).select(shown).to_pylist())


def _batches(store: StoreArgument, query: Query, places: LostPlaces | None, workers: Workers) -> Iterator[pa.RecordBatch]:
    """Yield the copy's messages, nothing hidden, perhaps with further columns. places: what a start takes, if that is asked."""
    search = replace(open_search(open_named(store), query.question), places=places)
    if query.tables is not None:
        from jobs.tables.earlier_times import earlier_times

        search = replace(search, earlier=earlier_times(query.tables, search.store, store.release))
    batches = answer(search, tell, workers) if query.only_here is None else _only_here(store, query.only_here, search, workers)
    for batch in batches:
        if query.offset_id is not None and query.offset_id not in batch.column("offset_msg_id").to_pylist():
            other = "has another id: it was stored by another broker, or the id is damaged"
            say(f"the message at physical offset {query.question.at} {other}")
        yield batch


def _only_here(store: StoreArgument, place: str, search: MessageSearch, workers: Workers) -> Iterator[pa.RecordBatch]:
    """Yield the messages that another copy, which is read by the same release and settings, does not hold."""
    from store_io.messages.only_here import OnlyHereSearch, held_alone

    other = replace(store, path=place, parts=())
    alone = held_alone(request_of(store), request_of(other), workers)
    say(only_here_text(alone, place))
    found = OnlyHereSearch(search, open_search(open_named(other), Question()), alone)
    yield from found.batches(tell, workers)
    if found.held:
        say(f"{count_text(found.held, 'message')} of these not listed: held at another place there, or listed before")


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
            if self.shown == self._query.question.limit:
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
