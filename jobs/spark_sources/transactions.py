"""rocketmq.transactions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from jobs.command_line.stores import StoreArgument
from jobs.spark_sources.store_source import StoreReader, StoreSource
from schemas.rows import MappedFile
from store_io.messages.groups.transaction_rows import TransactionScan, scan_transactions, stretches
from store_io.messages.open_store import OpenStore


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
