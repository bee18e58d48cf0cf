"""The Spark data sources on consumer groups and transactions: rocketmq.offsets and rocketmq.transactions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from jobs.cli.stores import StoreArgument
from jobs.sources.conditions import Condition, wanted_texts
from jobs.sources.store_source import StoreReader, StoreSource
from schemas.rows import MappedFile
from store_io.messages.groups.offset_rows import OffsetScan, offsets_not_there, scan_offsets
from store_io.messages.groups.transaction_rows import TransactionScan, scan_transactions, stretches
from store_io.messages.open_store import OpenStore

PART_FILES = 4096  # so many files of a copy are worth a task of their own; each task parses the table of offsets
MOST_PARTS = 16


class OffsetsSource(StoreSource):
    """How far consumer groups and delay levels have come."""

    source = "offsets"
    by_release = finds_notes = True

    def make_reader(self, store: OpenStore, argument: StoreArgument, arrow: pa.Schema) -> StoreReader:
        scan = OffsetScan(store.location, argument.release, argument.broker_conf, tuple(arrow.names))
        parts = min(MOST_PARTS, 1 + len(store.listing.files) // PART_FILES)
        return OffsetsReader(arrow, scan, parts)


class OffsetsReader(StoreReader):
    """By topics. A task lists the store again: queues are too many to be sent."""

    def __init__(self, arrow: pa.Schema, scan: OffsetScan, count: int) -> None:
        super().__init__(arrow)
        self.scan, self.count = scan, count

    def notes(self) -> list[str]:
        place = self.scan.location.root
        return [*super().notes(), *(f"rocketmq.offsets: {place}: {why}" for why in offsets_not_there(self.scan))]

    def take_over(self, condition: Condition) -> None:
        groups, kinds = (wanted_texts(condition, name) for name in ("group", "kind"))
        if groups is not None:
            self.scan = replace(self.scan, groups=groups if self.scan.groups is None else groups & self.scan.groups)
        elif kinds is not None:
            self.scan = replace(self.scan, kinds=kinds if self.scan.kinds is None else kinds & self.scan.kinds)
        else:
            super().take_over(condition)

    def parts(self) -> list[InputPartition]:
        return [InputPartition(part) for part in range(self.count)]

    def batches(self, part: int) -> Iterator[pa.RecordBatch]:
        return scan_offsets(replace(self.scan, wanted=self.wanted).of(part, self.count))


class TransactionsSource(StoreSource):
    """Half messages, and what became of them."""

    source = "transactions"
    by_release = True

    def make_reader(self, store: OpenStore, argument: StoreArgument, arrow: pa.Schema) -> StoreReader:
        return TransactionsReader(arrow, TransactionScan(store.location, store.rules, tuple(arrow.names)), store.segments())


class TransactionsReader(StoreReader):
    """A stretch of the log and what is after it, a task."""

    def __init__(self, arrow: pa.Schema, scan: TransactionScan, segments: list[MappedFile]) -> None:
        super().__init__(arrow)
        self.scan, self.listed = scan, segments

    def parts(self) -> list[InputPartition]:
        found = []
        for files, own in stretches(self.listed):
            if any(self.wanted.may_be_in(file.start, file.size) for file in files[:own]):
                found.append(InputPartition((files, own)))
        return found

    def batches(self, part: tuple[tuple[MappedFile, ...], int]) -> Iterator[pa.RecordBatch]:
        files, own = part
        return scan_transactions(replace(self.scan, wanted=self.wanted).of(files, own))
