"""rocketmq.messages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from jobs.cli import argument_places
from jobs.cli.message_filters import read_time
from jobs.cli.stores import StoreArgument
from jobs.messages.message_arguments import request_of
from jobs.report.texts.query_text import narrowing_text
from jobs.runtime.source_notes import say
from jobs.sources.conditions import Condition, as_contents
from jobs.sources.store_source import StoreReader, StoreSource
from schemas.rows import DEFAULT
from schemas.sources import BODY_COLUMNS, LOST
from store_io.base.errors import UsageError
from store_io.messages.choice.by_pieces import ScanPart
from store_io.messages.message_filter import Contents, MessageFilter, Range
from store_io.messages.open_store import OpenStore
from store_io.messages.question import MessageSearch, Narrowing, Question, open_search
from store_io.messages.redaction import NONE, TEXT_COLUMNS, Redaction, read_redaction
from store_io.messages.scans import DEFAULT_COLUMNS, MAX_BODY_BYTES, MessageScan

_OPTIONS = frozenset("body decompress unpack max_body_bytes since until trust_clock tables lost redact redact_salt_file".split())


class MessagesSource(StoreSource):
    """The messages that the audit accepts."""

    source = "messages"
    own_options = _OPTIONS
    by_release = True  # 4.9.0 and before read properties in another way

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.body = self.given.get("body", "decoded" if self.flag("decompress") else "none").strip().lower()
        if self.body not in ("none", "raw", "decoded"):
            raise UsageError(f"option body={self.given['body']!r}: none, raw or decoded")
        if self.flag("decompress") and self.body != "decoded":
            raise UsageError(f"options decompress=true and body={self.body}: say one of them")
        self.lost, self.trust_clock = self.flag("lost"), self.flag("trust_clock")
        self.unpack = self.flag("unpack", self.lost)
        self.max_body = MAX_BODY_BYTES
        if "max_body_bytes" in self.given:
            text = self.given["max_body_bytes"].strip()
            if not text.isdecimal() or not 0 < int(text) < 1 << 31:
                raise UsageError(f"option max_body_bytes={text!r}: a number from 1 to {(1 << 31) - 1}")
            self.max_body = int(text)
        mode, salt_file = self.given.get("redact", "none").strip(), self.given.get("redact_salt_file")
        salt = None if salt_file is None else argument_places.read_salt(salt_file, "redact_salt_file")
        self.redaction = read_redaction(None if mode == "none" else mode, salt)
        low, high = (read_time(self.given[name], name) if name in self.given else None for name in ("since", "until"))
        if low is not None and high is not None and low >= high:
            raise UsageError(f"since {self.given['since']} and until {self.given['until']}: the range is empty")
        self.times: Range = (low, high)
        self.tables = argument_places.tables_at("option tables", self.given["tables"]) if "tables" in self.given else None

    def default_columns(self) -> tuple[str, ...]:
        return DEFAULT_COLUMNS + (() if self.body == "none" else BODY_COLUMNS) + ((LOST,) if self.lost else ())

    def check_columns(self, names: Sequence[str]) -> None:
        super().check_columns(names)
        if (self.lost or LOST in names) and any(store.release_from == DEFAULT for store in self.stores):
            asked = "option lost" if self.lost else f"column {LOST!r}"
            raise UsageError(f"{asked}: what a start would lose depends on the release; say it with the option release")

    def types(self, names: Sequence[str]) -> StructType:
        self.check_columns(names)
        return super().types(names)

    def most_rows(self) -> int | None:
        """Return how many rows all stores can hold; None too if more may come of a file than the file's bytes."""
        return None if self.unpack or self.body == "decoded" else super().most_rows()

    def make_reader(self, store: OpenStore, argument: StoreArgument, arrow: pa.Schema) -> StoreReader:
        question = Question(
            MessageFilter(store_times=self.times), columns=tuple(arrow.names), decompress=self.body == "decoded",
            unpack=self.unpack, max_body_bytes=self.max_body, only_lost=self.lost, trust_clock=self.trust_clock,
        )  # fmt: skip
        search = open_search(store, question)
        if question.needs_audit:
            from store_io.base.crc import checksum
            from store_io.messages.lost.spared import places_of

            checksum.trust()
            search = replace(search, places=places_of(request_of(argument)))
        if self.tables is not None:
            from jobs.tables.earlier_times import earlier_times

            search = replace(search, earlier=earlier_times(self.tables, store, argument.release))
        return MessagesReader(arrow, search, self.redaction, max(1, (self.cores or os.cpu_count() or 1) // len(self.stores)))


def _tell(fact: Narrowing) -> None:
    say([f"rocketmq.messages: {narrowing_text(fact)}"])


class MessagesReader(StoreReader):
    def __init__(self, arrow: pa.Schema, search: MessageSearch, redaction: Redaction, cores: int) -> None:
        super().__init__(arrow)
        self.search, self.redaction, self.cores = search, redaction, cores
        self.contents = Contents()
        self.sent: MessageScan | None = None  # what a task has in place of the search

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "search": None, "sent": self.sent or self.narrowed().scan}

    def narrowed(self) -> MessageSearch:
        """Return the search with the conditions that were taken over, too."""
        return replace(self.search, question=self.search.question.narrowed(self.wanted, self.contents))

    def take_over(self, condition: Condition) -> None:
        """Take over conditions on contents, too; none on a column that is concealed, as Spark sees other texts there."""
        if self.redaction.mode != NONE and condition.column in TEXT_COLUMNS:
            return
        contents = as_contents(condition)
        if contents is None:
            super().take_over(condition)
        else:
            self.contents = self.contents.narrowed(contents)

    def parts(self) -> list[InputPartition]:
        return [InputPartition(part) for part in self.narrowed().pieces(_tell, self.cores)]

    def batches(self, part: ScanPart) -> Iterator[pa.RecordBatch]:
        from store_io.messages.message_search import search

        yield from map(
            self.redaction.batch, search(part.scan(self.sent or self.narrowed().scan), self.contents, look_first=False)
        )
