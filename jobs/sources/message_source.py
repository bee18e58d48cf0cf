"""rocketmq.messages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from jobs.cli import argument_places
from jobs.cli.message_filters import read_time
from jobs.cli.stores import StoreArgument
from jobs.runtime.source_notes import say
from jobs.sources.conditions import as_contents
from jobs.sources.store_source import StoreReader, StoreSource
from schemas.rows import DEFAULT
from schemas.sources import BODY_COLUMNS, LOST
from store_io.base.errors import UsageError
from store_io.messages.choice.by_pieces import ScanPart, parts_of, written_bytes
from store_io.messages.choice.by_tables import EarlierTimes, needed, skipped_sentence
from store_io.messages.message_filter import ALL, Contents, MessageFilter, Range
from store_io.messages.open_store import OpenStore, SegmentTimes, segment_times
from store_io.messages.redaction import NONE, TEXT_COLUMNS, Redaction, read_redaction
from store_io.messages.scans import DEFAULT_COLUMNS, MAX_BODY_BYTES, MessageScan

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from store_io.messages.lost.lost_places import LostPlaces

_OPTIONS = frozenset("body decompress unpack max_body_bytes since until trust_clock tables lost redact redact_salt_file".split())


class MessagesSource(StoreSource):
    """The messages that the audit accepts."""

    source = "messages"
    own_options = _OPTIONS
    by_release = True  # 4.9.0 and before read properties in another way
    cores: int | None = None  # of the session that it is registered in; None: not known

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

    def make_reader(self, store: OpenStore, argument: StoreArgument, arrow: pa.Schema) -> StoreReader:
        segments = segment_times(store) if self.trust_clock else [SegmentTimes(file, None, None) for file in store.segments()]
        scan = MessageScan(
            store.location, "", 0, 0, tuple(arrow.names), MessageFilter(store_times=self.times), self.body == "decoded",
            self.unpack, store.rules, self.max_body, only_lost=self.lost,
        )  # fmt: skip
        cores = max(1, (self.cores or os.cpu_count() or 1) // len(self.stores))
        places, earlier = self._places(store, argument, arrow.names), self._earlier(store, argument)
        return MessagesReader(arrow, scan, segments, self.redaction, cores, places, earlier)

    def _earlier(self, store: OpenStore, argument: StoreArgument) -> EarlierTimes | None:
        """Return the times of segments that earlier audits know, if they are to be asked."""
        if self.tables is None:
            return None
        from jobs.tables.earlier_times import earlier_times

        return earlier_times(self.tables, store, argument.release)

    def _places(self, store: OpenStore, argument: StoreArgument, names: Sequence[str]) -> LostPlaces | None:
        """Return the messages that a start would take, if they are asked for."""
        if not self.lost and LOST not in names:
            return None
        from store_io.audit.audit_store import run_audit
        from store_io.base.crc import checksum
        from store_io.messages.lost.lost_places import lost_places
        from store_io.model.audit_request import AuditRequest

        checksum.trust()
        return lost_places(run_audit(AuditRequest("store", store.location, argument.release, argument.broker_conf)))


class MessagesReader(StoreReader):
    def __init__(
        self,
        arrow: pa.Schema,
        scan: MessageScan,
        segments: list[SegmentTimes],
        redaction: Redaction,
        cores: int,
        places: LostPlaces | None = None,
        earlier: EarlierTimes | None = None,
    ) -> None:
        super().__init__(arrow)
        self.scan, self.listed, self.redaction, self.cores = scan, segments, redaction, cores
        self.places, self.earlier = places, earlier
        self.contents = Contents()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "places": None, "earlier": None}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take over conditions on contents, too; none on a column that is concealed, as Spark sees other texts there."""
        concealed = TEXT_COLUMNS if self.redaction.mode != NONE else frozenset()
        left, others = [], []
        for condition in filters:
            found = as_contents(condition)
            if not concealed.isdisjoint(getattr(condition, "attribute", ())):
                left.append(condition)
            elif found is None:
                others.append(condition)
            else:
                contents, exact = found
                self.contents = self.contents.narrowed(contents)
                left += [] if exact else [condition]
        return [*left, *super().pushFilters(others)]

    def parts(self) -> list[InputPartition]:
        wanted = self.wanted.narrowed(self.scan.wanted)
        found = [times.file for times in self.listed if times.may_hold(wanted.store_times)]
        found = [f for f in found if wanted.may_be_in(f.start, f.size)]
        if self.earlier is not None and wanted.store_times != ALL:
            kept = needed(found, self.earlier, wanted.store_times)
            say([f"rocketmq.messages: {skipped_sentence(self.earlier, len(found) - len(kept), len(found))}"])
            found = kept
        if self.places is not None and self.scan.only_lost:
            found = [f for f in found if self.places.of(f.path)]
        # A search for bytes needs no pieces: hardly a row is made.
        cores = 1 if self.contents.sought[1] else self.cores
        parts = parts_of(found, written_bytes(self.scan.location, found, cores), cores, len(self.arrow))
        parts = [part for part in parts if wanted.may_be_in(*part.bytes)]
        if self.places is not None:
            parts = [replace(part, loss=self.places.of(part.file.path)) for part in parts]
        return [InputPartition(part) for part in parts]

    def batches(self, part: ScanPart) -> Iterator[pa.RecordBatch]:
        from store_io.messages.message_search import search

        wanted = self.wanted.narrowed(self.scan.wanted).narrowed(MessageFilter(phy_offsets=part.phy_offsets))
        scan = replace(self.scan, wanted=wanted).of(part.file, part.loss)
        yield from map(self.redaction.batch, search(scan, self.contents, look_first=False))
